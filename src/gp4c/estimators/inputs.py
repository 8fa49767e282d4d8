"""What ``fit`` takes, said before anything fails on what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp4c.data.checks import check_choice as check_choice
from gp4c.data.events import RecurrentEvents
from gp4c.data.panel import PanelCounts
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.quantiles import BAND_KINDS

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.gp_base import GaussianProcessModel


def check_panel(model: PanelEstimator, data: object) -> None:
    """Refuse what is no panel in memory, with what makes one of it."""
    if isinstance(data, PanelCounts):
        return
    from gp4c.data.tables.sources import PanelSource  # only where it is in question

    name = type(model).__name__
    if isinstance(data, PanelSource):
        raise TypeError(
            f"{name} needs all rows in memory (gp4c.read_panel); of the estimators only GP4C and "
            "GP4CW fit data that are read in parts"
        )
    refuse_events(model, data)
    raise TypeError(
        f"{name}.fit takes a PanelCounts, not {_kind(data)}; PanelCounts.from_frame(frame) and "
        "gp4c.read_panel(path) make one"
    )


def refuse_events(model: PanelEstimator, data: object) -> None:
    """Refuse event times where counts are needed."""
    if isinstance(data, RecurrentEvents):
        raise TypeError(
            f"{type(model).__name__}.fit takes counts, not event times; GP3 fits event times, "
            "GP4C.fit(panel, events=...) both, and events.to_panel(visits) counts them"
        )


def check_events(model: PanelEstimator, data: object) -> None:
    """Refuse what is no set of event times."""
    if not isinstance(data, RecurrentEvents):
        raise TypeError(
            f"{type(model).__name__}.fit takes RecurrentEvents, not {_kind(data)}; "
            "RecurrentEvents.from_frame(frame) makes them, and GP4C fits counts"
        )


def _kind(data: object) -> str:
    return "None" if data is None else f"a {type(data).__name__}"


def check_level(level: float) -> None:
    """Raise a clear error unless a level is strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")


def check_band(level: float, kind: str) -> None:
    """Check level and kind of a band."""
    check_level(level)
    check_choice("kind", kind, BAND_KINDS)


def check_shared_parameters(model: GaussianProcessModel) -> None:
    """Check what GP4C and GP3 have in common."""
    check_choice("kernel", model.kernel, tuple(KERNELS))
    check_choice("effect", model.effect, ("auto", *EFFECTS))
    check_choice("bursts", model.bursts, ("auto", True, False, *LAWS))
    check_choice("hyper", model.hyper, ("optimize", "integrate"))
    if isinstance(model.mean, str) and model.mean != "learn":
        raise ValueError(f"mean must be 'learn' or a number, not {model.mean!r}")
    if model.n_inducing is not None and model.n_inducing < 2:
        raise ValueError(f"n_inducing must be at least 2, not {model.n_inducing!r}")
