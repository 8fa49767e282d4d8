"""Simulated panels with two types of events whose effects are correlated."""

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import gamma

from gp4c import PanelCounts


def simulated_types(
    n_subjects=60, rho=0.7, rates=(0.5, 0.3), variances=(1.0, 1.0), seed=0, n_visits=5
):
    """Counts of two Poisson types over (0, 10]; effects are gammas with a Gaussian copula."""
    rng = np.random.default_rng(seed)
    scores = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n_subjects)
    frames = []
    for k in range(n_subjects):
        ends = np.sort(rng.uniform(0, 10, n_visits))
        start = np.concatenate([[0.0], ends[:-1]])
        frame = {"subject": k, "start": start, "stop": ends, "arm": "ab"[k % 2]}
        for e, (name, rate) in enumerate(zip(("first", "second"), rates, strict=True)):
            if variances[e] > 0:
                effect = gamma.ppf(ndtr(scores[k, e]), 1 / variances[e], scale=variances[e])
            else:
                effect = 1.0
            frame[name] = rng.poisson(rate * effect * (ends - start))
        frames.append(pd.DataFrame(frame))
    table = pd.concat(frames, ignore_index=True)
    return PanelCounts.from_frame(table, count=["first", "second"], window=(0, 10))
