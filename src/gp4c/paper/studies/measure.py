"""Fit one estimator and judge it as the paper does (Section 5 and Appendix D)."""

from __future__ import annotations

import time
import warnings
import zlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.exceptions import ConvergenceWarning, GP4CWarning
from gp4c.posterior.scoring import log_mean_exp

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator
    from gp4c.paper.store import Record

Floats = NDArray[np.float64]

#: the paper's draws of f per score; ours, whose Monte-Carlo error is small
PAPER_DRAWS, MANY_DRAWS = 50, 4000
#: points on which the paper takes the integrated squared error, and on which we look at bands
GRID_POINTS, BAND_POINTS = 3001, 301
#: seed of the choice of the paper's 50 draws among the many
_CHOICE_SEED = 1


def seeds(seed: int, label: str, count: int = 3) -> list[int]:
    """Independent seeds for the parts of one trial, a function of the run's seed and a label."""
    sequence = np.random.SeedSequence([seed, zlib.crc32(label.encode())])
    return [int(state) for state in sequence.generate_state(count)]


def fit_record(model: PanelEstimator, data: PanelCounts | RecurrentEvents) -> Record:
    """Fit `model` in place; CPU seconds of this thread and whether it converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GP4CWarning)
        began = time.thread_time()
        model.fit(data)  # type: ignore[arg-type]  # GP3 takes event times
        seconds = time.thread_time() - began
    stopped = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return {"seconds": seconds, "converged": not stopped}


def score_record(
    model: PanelEstimator,
    test: PanelCounts,
    *,
    new_subjects: bool = False,
    n_draws: int = MANY_DRAWS,
) -> dict[str, float]:  # fmt: skip
    """L_test in its variants, Σ ln m! left out.

    ``l_test`` is Appendix D's formula with many draws of the posterior (too low where few of them
    agree with the counts; ``model.score`` is not), ``l_test_error`` its Monte-Carlo standard
    error, ``l_test_50`` the same formula with the paper's number of draws, ``l_test_subjects``
    the sum of the subjects' own log-means (what the published program prints). They agree for
    estimators that plug in one curve.
    """
    if not isinstance(model, GaussianProcessModel):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GP4CWarning)  # a floor under the curve, documented
            value = float(model.score(test))
        return {
            "l_test": value, "l_test_error": 0.0, "l_test_50": value, "l_test_subjects": value
        }  # fmt: skip
    draws = model._log_likelihood_draws(test, n_draws, new_subjects)
    total = draws.sum(axis=1)
    value, error = (float(part) for part in log_mean_exp(total))
    few = np.random.default_rng(_CHOICE_SEED).choice(n_draws, min(PAPER_DRAWS, n_draws), False)
    return {
        "l_test": value,
        "l_test_error": error,
        "l_test_50": float(log_mean_exp(total[few])[0]),
        "l_test_subjects": float(log_mean_exp(draws)[0].sum()),
    }


def curve_record(
    model: PanelEstimator, truth: Callable[[Floats], ArrayLike], window: tuple[float, float]
) -> dict[str, float]:
    """Integrated squared error of E λ (Simpson on 3001 points), width and coverage of bands."""
    from scipy.integrate import simpson

    times = np.linspace(*window, GRID_POINTS)
    error = (np.asarray(model.intensity(times)) - np.asarray(truth(times))) ** 2
    found = {"mise": float(simpson(error, x=times))}
    if isinstance(model, GaussianProcessModel):
        few = np.linspace(*window, BAND_POINTS)
        true_rate = np.asarray(truth(few))
        for level in (0.5, 0.75):
            low, high = model.intensity_band(few, level=level)
            found[f"width_{level}"] = float(np.mean(high - low))
            found[f"inside_{level}"] = float(np.mean((low <= true_rate) & (true_rate <= high)))
    return found
