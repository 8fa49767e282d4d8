"""The evidence with hyper-parameters integrated out, against a dense grid over the free ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from gp4c.design.kernels import KERNELS
from gp4c.inference.estep import e_step
from gp4c.inference.hyper import Optimum, Problem, free_coordinates, solve_q
from gp4c.inference.importance import log_evidence
from gp4c.inference.integrate import integrate
from gp4c.inference.priors import weak_prior
from gp4c.inference.search import search
from gp4c.inference.signs import flip
from gp4c.inference.sparse_prior import Hyper
from problems import observed, visits_panel

#: where the rate 1 + sin 6x that the panel is drawn from touches zero, and its root may cross it
TOUCHES = np.pi / 4


def _of_both_signs(at: Optimum) -> float:
    """Log evidence of f as it is and turned where the rate touches zero, if that is another f."""
    sites = flip(at.work, at.estep.evaluation.sites(), np.array([TOUCHES]))
    start = at.work.from_sites(at.hyper, sites)
    same = log_evidence(at, 256)
    turned = None if start is None else e_step(at.work, at.hyper, start, 1e-2)
    if turned is None or turned.evaluation.mean[-1] * at.estep.evaluation.mean[-1] > 0:
        return same
    return float(np.logaddexp(same, log_evidence(replace(at, estep=turned), 256)))


@pytest.mark.parametrize("mean", [1.0, 0.6])
def test_with_a_fixed_mean_two_hyper_parameters_are_integrated_out(mean):
    data = observed(visits_panel(9, 8, 4, level=4.0))
    task = Problem(data, KERNELS["se"], "pointwise", n_inducing=8)
    lengths = np.linspace(np.log(task.smallest_length_scale(8)), np.log(2.0), 12)
    variances = np.linspace(-7.0, 3.5, 16)
    values = np.empty((len(lengths), len(variances)))
    for i, length_scale in enumerate(np.exp(lengths)):
        work, near = task.workspace(float(length_scale)), None
        for j, variance in enumerate(np.exp(variances)):
            hyper = Hyper(float(length_scale), float(variance), mean)
            near = solve_q(work, hyper, near, 1e-2)
            prior, _ = weak_prior(hyper.to_vector())
            values[i, j] = _of_both_signs(Optimum(hyper, work, near, prior, (), True)) + prior
    # the trapezoid rule, as the length-scale is cut off at both ends
    ends = np.zeros(len(lengths))
    ends[[0, -1]] = np.log(0.5)
    steps = np.log((lengths[1] - lengths[0]) * (variances[1] - variances[0]))
    brute = logsumexp(values + ends[:, None]) + steps
    peaks = search(task, mean=mean, log_prior=weak_prior)
    found = integrate(task, peaks, free=free_coordinates(task, mean), log_prior=weak_prior)
    assert abs(found.log_evidence - brute) < 0.25  # noise of importance sampling, a coarse grid
    assert abs(sum(part.weight for part in found.parts) - 1) < 1e-9
