"""The place of the truth in the mixture of Gaussians and in the posterior itself.

With the hyper-parameters known, draws of the mixture weighted by likelihood × prior / mixture are
draws of the posterior itself. The spread of Φ⁻¹(rank) of the true rate is compared between the
two on the same data sets: what differs is due to the approximation, the rest is chance.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp
from scipy.stats import norm

RESULTS = Path(__file__).parent / "results" / "importance_ranks.json"
#: data sets of the prior study that its tables do not use
FIRST, N_SETS = 100_000, 1200
N_DRAWS = 2000
#: the proposal is this much wider than the mixture
WIDER = 1.05
#: least effective share of the draws with which a data set counts
LEAST_EFFECTIVE = 0.05


def ranks(number: int) -> tuple[list[float], list[float], float] | None:
    """Ranks of the truth in the mixture and in the posterior, and the effective share of draws.

    None without events.
    """
    from benchmarks.calibration.cases import prior_case
    from benchmarks.calibration.known import fit_known, known_problem
    from benchmarks.calibration.measure import TIMES

    from gp4c.inference.importance import log_likelihood
    from gp4c.inference.threads import one_blas_thread

    with one_blas_thread():
        case = prior_case(number)
        if case.panel.n_events == 0:
            return None
        posterior, (problem, hyper) = fit_known(case).posterior_, known_problem(case)
        work = problem.workspace(hyper.length_scale)
        rng = np.random.default_rng(number)
        components, share = posterior.components, posterior.weights / posterior.weights.sum()
        who = rng.choice(len(components), N_DRAWS, p=share)
        normals = WIDER * rng.standard_normal((work.size, N_DRAWS))
        v = np.column_stack([c.mean for c in components])[:, who]
        for k, component in enumerate(components):
            v[:, who == k] += component.root @ normals[:, who == k]
        log_q = [
            np.log(w) - _half_square(c, v) - np.linalg.slogdet(c.root)[1]
            for c, w in zip(components, share, strict=True)
        ]
        log_weight = log_likelihood(work, hyper, v) - (v**2).sum(axis=0) / 2
        log_weight -= logsumexp(log_q, axis=0)
        weight = np.exp(log_weight - logsumexp(log_weight))
        truth = np.sqrt(case.truth(TIMES) / posterior.scale)[:, None]
        x = posterior.unit(TIMES)
        B = work.prior.features(x)
        left = np.sqrt(hyper.variance * np.maximum(1 - (B**2).sum(axis=1), 0.0))[:, None]
        f = hyper.mean + np.sqrt(hyper.variance) * (B @ v)
        f += left * rng.standard_normal(f.shape)
        exact = (np.abs(f) < truth) @ weight
        mean, deviation = posterior._deviations(TIMES)
        inside = norm.cdf((truth.T - mean) / deviation) - norm.cdf((-truth.T - mean) / deviation)
        return (share @ inside).tolist(), exact.tolist(), float(1 / (weight @ weight) / N_DRAWS)


def _half_square(component: Any, v: Any) -> Any:
    away = np.linalg.solve(component.root, v - component.mean[:, None]) / WIDER
    return (away**2).sum(axis=0) / 2


def root_and_error(squares: Any) -> list[float]:
    """Root of the mean over data sets, and its standard error."""
    root = float(np.sqrt(squares.mean()))
    error = float(squares.std()) / np.sqrt(len(squares)) / (2 * root)
    return [round(root, 4), round(error, 4)]


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    work = Parallel(n_jobs=2, batch_size=4)
    numbers = range(FIRST, FIRST + N_SETS)
    found = [row for row in work(delayed(ranks)(number) for number in numbers) if row is not None]
    enough = np.array([share > LEAST_EFFECTIVE for _, _, share in found])
    cut = 1 / N_DRAWS
    approximate, exact = (
        (norm.ppf(np.clip([row[k] for row in found], cut, 1 - cut)) ** 2).mean(axis=1)[enough]
        for k in (0, 1)
    )
    gap = (approximate - exact) / 2
    table = {
        "data_sets": int(enough.sum()),
        "left_out": int((~enough).sum()),
        "median_effective_share": round(float(np.median([share for _, _, share in found])), 3),
        "spread_of_the_mixture": root_and_error(approximate),
        "spread_of_the_posterior": root_and_error(exact),
        "difference": [round(float(gap.mean()), 5), round(float(gap.std() / len(gap) ** 0.5), 5)],
    }
    RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    print(table)


if __name__ == "__main__":
    main()
