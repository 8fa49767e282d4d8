"""Fitted curves behind the figures of single trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.paper.studies.measure import fit_record
from gp4c.paper.studies.real import estimators as real_estimators
from gp4c.paper.studies.real import real_panel, split_of
from gp4c.paper.studies.synthetic import WINDOW, estimators, synthetic_trial
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gp4c.estimators.base import PanelEstimator
    from gp4c.paper.store import Record

POINTS = 301
#: the paper's "75% credible interval" is the range from its 25% to its 75% quantile
LEVELS = (0.5, 0.75)
#: most splits looked at for one that holds out all of the largest counts
_MOST_SPLITS = 1000


def curve(model: PanelEstimator, window: tuple[float, float]) -> Record:
    """The rate of a fitted model on an even grid, with bands where it has a posterior."""
    times = np.linspace(*window, POINTS)
    found: Record = {"rate": _rounded(model.intensity(times))}
    if isinstance(model, GaussianProcessModel):
        for level in LEVELS:
            low, high = model.intensity_band(times, level=level)
            found[str(level)] = [_rounded(low), _rounded(high)]
    return found


def _rounded(values: ArrayLike) -> list[float]:
    """Six digits, more than a picture shows, keep the records small."""
    return [float(f"{value:.6g}") for value in np.asarray(values)]


def synthetic_curves(*, set: str, draw: int, trial: int, seed: int, names: Sequence[str]) -> Record:
    """Curves of some estimators on one trial of a synthetic set, and the true rate."""
    data = synthetic_trial(set, draw, trial, seed)
    made = estimators(data.fit_seed)
    found = {}
    with one_blas_thread():
        for name in names:
            model = made[name]()
            fit_record(model, data.train)
            found[name] = curve(model, WINDOW)
    times = np.linspace(*WINDOW, POINTS)
    return {"times": times.tolist(), "truth": _rounded(data.truth(times)), "curves": found}


def bladder_split(seed: int) -> int:
    """Number of the first 2/3 to 1/3 split of Bladder A that holds out every count of 8 or more.

    The paper shows a split of which it says that the count 8 never occurs in the training set.
    """
    for trial in range(_MOST_SPLITS):
        train, _, _ = split_of("Bladder A", "2/3", trial, seed)
        if train.count.max() < 8:
            return trial
    raise RuntimeError(f"none of {_MOST_SPLITS} splits holds out every count of 8 or more")


def bladder_curves(*, seed: int) -> Record:
    """Curves and per-subject test likelihoods on one split of Bladder A."""
    import gp4c

    trial = bladder_split(seed)
    train, test, fit_seed = split_of("Bladder A", "2/3", trial, seed)
    made = real_estimators(fit_seed)
    window = real_panel("Bladder A").window
    found, scores = {}, {}
    with one_blas_thread():
        for name in ("LocalEM", "GP4C", "GP4CW", "default"):
            model = made[name]()
            fit_record(model, train)
            found[name] = curve(model, window)
            scores[name] = np.asarray(model.score_subjects(test)).tolist()
            if isinstance(model, gp4c.GP4CW):
                scores["GP4CW honest"] = model.score_subjects(
                    test, new_subjects=True, n_draws=500
                ).tolist()
    return {
        "trial": trial,
        "train": [str(label) for label in train.subjects],
        "test": [str(label) for label in test.subjects],
        "test_events": np.bincount(test.subject_index, test.count, test.n_subjects).tolist(),
        "times": np.linspace(*window, POINTS).tolist(),
        "curves": found,
        "scores": scores,
    }
