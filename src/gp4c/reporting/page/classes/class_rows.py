"""Latent classes in words: rows of a summary, remarks, and the section of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from gp4c.data.timeaxis import TimeAxis
from gp4c.reporting.row import Row
from gp4c.reporting.words import estimate, percent, when

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses

SECTION = "Subgroups"
#: mean probability of the most probable class below which subjects are not told apart, share of
#: subjects that refits must keep, and share of a class that rests on few subjects
_UNSURE, _STABLE, _SMALL = 0.8, 0.8, 0.1


def class_rows(model: PanelEstimator, level: float) -> Iterator[Row]:
    """Are there subgroups, which, how sure, how stable; nothing of models without classes."""
    if not _has_classes(model):
        return
    choice = model.choice_
    if len(choice.n_classes) > 1:
        yield Row(SECTION, "are there subgroups?", choice.answer(), int(model.n_classes_))
        yield Row(SECTION, "held-out subjects", choice.held_out_words(model.n_classes_))
    if model.n_classes_ == 1:
        return
    end, (low, high) = model.window_[1], model.shares_band(level)
    for c in range(model.n_classes_):
        value = float(model.cumulative(end, label=c))
        first, last = (float(edge) for edge in model.cumulative_band(end, level, label=c))
        yield Row(
            SECTION, f"class {c}",
            f"{percent(round(float(model.shares_[c]), 2))} of subjects "
            f"({percent(round(float(low[c]), 2))} to {percent(round(float(high[c]), 2))}); "
            f"{estimate(value)} events by {when(end, TimeAxis.of(model))} "
            f"({percent(level)} band {estimate(first)} to {estimate(last)})", value,
            low=first, high=last,
        )  # fmt: skip
    sure = float(model.membership_.max(axis=1).mean())
    yield Row(
        SECTION, "how sure", f"the most probable class of a subject has probability {sure:.2f} on "
        "average", sure,
    )  # fmt: skip
    yield Row(SECTION, "how stable", _stability(model))


def _has_classes(model: PanelEstimator) -> TypeGuard[GP4CClasses]:
    """Whether a fit has latent classes; their module, slow to load, is loaded only then."""
    if "n_classes_" not in vars(model):
        return False
    from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses

    return isinstance(model, GP4CClasses)


def _stability(model: GP4CClasses) -> str:
    agreeing, starts = model.starts_
    text = f"{agreeing} of {starts} starts end at these classes"
    if len(model.stability_):
        least = percent(round(float(model.stability_.min()), 2))
        text += (
            f"; without a fifth of the subjects at least {least} of the others stay in their class "
            f"({len(model.stability_)} refits)"
        )
    return text


def class_remarks(model: PanelEstimator) -> Iterator[str]:
    """What to beware of in a fit with classes."""
    if not _has_classes(model) or model.n_classes_ == 1:
        return
    if model.choice_.chosen < model.n_classes_:
        yield (
            f"the evidence does not ask for {model.n_classes_} classes: {model.choice_.answer()}; "
            "they may be a way to cut subjects who differ gradually"
        )
    if float(model.membership_.max(axis=1).mean()) < _UNSURE:
        yield (
            "many subjects cannot be told to be in one class: use probabilities of membership, not "
            "labels, in further analyses"
        )
    if len(model.stability_) and float(model.stability_.min()) < _STABLE:
        yield "the classes change when a fifth of the subjects is left out"
    if float(model.shares_.min()) < _SMALL:
        yield "the smallest class rests on few subjects"
