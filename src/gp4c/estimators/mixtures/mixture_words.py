"""What a fitted mixture says of its bases and weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.timeaxis import TimeAxis

if TYPE_CHECKING:
    from gp4c.estimators.mixtures.mixture_bases import MixtureBases

Fact = tuple[str, str, str, float]

_SECTION = "Basis intensities"
#: times at which the highest rate is looked for
_TIMES = 401
#: share of a subject's events that makes a basis its main one
_MAIN = 0.8
#: share of all events below which a basis is one too many
_NOTHING = 0.01
#: nats within which two starts reached the same bound
_SAME_BOUND = 0.5


def basis_facts(model: MixtureBases) -> list[Fact]:
    """Rows of a summary; none for one basis, which is the curve itself."""
    return list(_facts(model)) if model.weights_.shape[1] > 1 else []


def _facts(model: MixtureBases) -> Iterator[Fact]:
    unit = model.time_unit_ or "units of time"
    axis, (low, high) = TimeAxis.of(model), model.window_
    times = np.linspace(low, high, _TIMES)
    own = model.weights_ * model.basis_expected_
    share = own / own.sum(axis=1, keepdims=True)
    seen = model.subject_totals_ > 0
    for k, part in enumerate(model.posterior_.parts):
        rate = part.intensity(times)
        peak = times[int(np.argmax(rate))]
        main = int((share[seen, k] >= _MAIN).sum())
        top = axis.date(peak) or f"{peak:.3g} {unit}"
        words = (
            f"{model.shares_[k]:.0%} of the events; highest at {top}; varies on a "
            f"scale of about {model.length_scales_[k]:.2g} {unit}; main basis (at least "
            f"{_MAIN:.0%} of the events) of {main} of the {int(seen.sum())} subjects with events"
        )
        if model.shares_[k] < _NOTHING:
            words = f"less than {_NOTHING:.0%} of the events: n_bases={k} says as much"
        yield _SECTION, f"basis {k + 1}", words, float(model.shares_[k])
    agreed = int((model.starts_ > model.starts_[0] - _SAME_BOUND).sum())
    words = f"{agreed} of {len(model.starts_)} different starts reached the best fit"
    if len(model.starts_) > agreed:
        behind = model.starts_[0] - model.starts_[agreed]
        words += f"; the log probability of the next is {behind:.1f} lower"
    yield _SECTION, "starts", words, float(agreed)
