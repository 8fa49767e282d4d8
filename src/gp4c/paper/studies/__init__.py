"""Single trials: data, fits and scores. Whatever changes a number of a trial is in this folder.

A study is a function of JSON settings that returns a JSON record; it derives every random number
from its settings, so that the same settings give the same record.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gp4c.paper.store import Record

#: study -> module and function; loaded when needed
_HOMES = {
    "choices": ("synthetic", "choices_trial"),
    "inducing": ("synthetic", "inducing_trial"),
    "subjects": ("synthetic", "subjects_trial"),
    "synthetic-curves": ("trial_curves", "synthetic_curves"),
    "split": ("real", "split_trial"),
    "bladder-curves": ("trial_curves", "bladder_curves"),
}


def study(name: str) -> Callable[..., Record]:
    """Return the function of a study."""
    module, function = _HOMES[name]
    return getattr(import_module(f"{__name__}.{module}"), function)  # type: ignore[no-any-return]
