"""The judge judged by forward simulation: no likelihood is evaluated on the other side.

Draws of the prior whose simulated counts happen to be those seen are draws of the posterior. Their
share among all is the evidence. Seeds are fixed, so a failure is a change of the code.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.special import gammaln
from scipy.stats import ks_2samp

from gp4c.data.panel import PanelCounts
from gp4c.inference.engine.landscape import Task
from gp4c.inference.sampler.judge import sample_posterior
from gp4c.inference.sampler.target import CurveTarget
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells
from tolerances import STANDARD_ERRORS

LENGTH, U = 0.3, -0.4
EDGES = np.array([0.0, 0.6, 1.0])
SEEN = np.array([[2, 0], [0, 1]])  # of two subjects


def two_subjects(law, effect):
    columns = {
        "subject": np.repeat([1, 2], 2),
        "start": np.tile(EDGES[:-1], 2),
        "stop": np.tile(EDGES[1:], 2),
        "count": SEEN.ravel(),
    }
    panel = PanelCounts.from_frame(columns)
    cells = observe_cells(panel, None, (0.0, 1.0), LAWS[law], EFFECTS[effect])
    return Task(CountLikelihood(cells, LAWS[law], EFFECTS[effect]), KERNELS["se"], 4)


def squares(target, x):
    """f² on 41 even points."""
    k, mean = np.exp(U) / np.hypot(1, np.exp(U)), 1 / np.hypot(1, np.exp(U))
    h = mean + k * target.landscape.prior.features(np.linspace(0, 1, 41)) @ x[: target.size]
    return np.exp(x[target.size]) * h**2


def matching(target, law, effect, n, rng):
    """Prior draws, and which of them simulate the counts seen."""
    x = target.draw_prior(n, rng).x
    params = x[target.size + 1 :]
    psi, theta = np.split(params, [len(EFFECTS[effect].parameters)])
    places, rate = np.rint(40 * EDGES).astype(int), SEEN.sum() / 2
    f2 = squares(target, x)
    means = [rate * simpson(f2[a : b + 1], dx=1 / 40, axis=0) for a, b in pairwise(places)]
    match = np.ones(n, dtype=bool)
    for counts in SEEN:
        effects = np.ones(n)
        if effect == "gamma":
            alpha = np.exp(psi[0])
            effects = rng.standard_gamma(alpha) / alpha
        for count, mean in zip(counts, means, strict=True):
            match &= LAWS[law].draw(effects * mean, theta, rng) == count
    return x[:, match], match.mean()


@pytest.mark.parametrize(
    ("law", "effect"),
    [("poisson", None), ("poisson", "gamma"), ("bursts", None), ("bursts", "gamma")],
)
def test_tempering_arrives_at_what_forward_simulation_gives(law, effect):
    """Kolmogorov–Smirnov tests at 1e-4 of level, parameters and the curve; and the evidence."""
    task = two_subjects(law, effect)
    target = CurveTarget(task.landscape(np.log(LENGTH)), U)
    rng, n = np.random.default_rng(7), 40_000
    parts = [matching(target, law, effect, n, rng) for _ in range(8)]
    exact = np.concatenate([x for x, _ in parts], axis=1)
    share = np.mean([match for _, match in parts])
    draws, report = sample_posterior(
        task, length_scale=LENGTH, u=U, n_draws=3000, n_populations=6, random_state=9,
        correlation=0.2,
    )  # fmt: skip
    evidence = report.log_evidence - gammaln(SEEN + 1.0).sum()
    error = np.hypot(report.log_evidence_error, np.sqrt(1 / (share * 8 * n)))
    assert error < 0.05
    assert abs(evidence - np.log(share)) < STANDARD_ERRORS * error
    found = np.concatenate([bundle.x for bundle in draws.bundles], axis=1)
    for row in range(target.size, len(found)):
        assert ks_2samp(found[row], exact[row]).pvalue > 1e-4
    for one, other in zip(squares(target, found)[::8], squares(target, exact)[::8], strict=True):
        assert ks_2samp(one, other).pvalue > 1e-4
