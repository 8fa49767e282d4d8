"""Parts from other packages: laws of counts, laws of effects, kernels.

A part joins its registry when its class is defined (`LAWS` and `EFFECTS` of `gp4c.model.laws`,
`KERNELS` of `gp4c.model.kernels`). A package that brings parts names its module as an entry point
of the group ``gp4c.parts``; the command line imports all of them before it fits or reads a model.
"""

from __future__ import annotations

from importlib.metadata import entry_points

GROUP = "gp4c.parts"


def load_parts() -> list[str]:
    """Import the modules that other packages name; their names."""
    found = entry_points(group=GROUP)
    for one in found:
        one.load()
    return [one.name for one in found]
