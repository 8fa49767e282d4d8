"""What a posterior says of a subject that it has not seen: leave-one-out by importance weights.

The posterior without subject k has weights w_s / p(y_k | s). They are Pareto-smoothed; a k̂ above
0.7 says that leaving the subject out changes the posterior too much for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.pareto import pareto_smoothed

Floats = NDArray[np.float64]


def leave_one_out(log_likelihood: Floats, log_weights: Floats) -> tuple[Floats, Floats]:
    """ln p(y_k | the other subjects) of every subject, and k̂ of its weights.

    Parameters
    ----------
    log_likelihood : (K, S)
        ln p(y_k | draw s).
    log_weights : (S,)
        Posterior weights of the draws.
    """
    predicted, tails = np.empty(len(log_likelihood)), np.empty(len(log_likelihood))
    known = np.isfinite(log_weights)
    for k, each in enumerate(log_likelihood[:, known]):
        smoothed, tails[k] = pareto_smoothed(log_weights[known] - each)
        predicted[k] = logsumexp(smoothed + each) - logsumexp(smoothed)
    return predicted, tails
