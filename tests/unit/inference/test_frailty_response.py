"""The level of a fitted curve is as uncertain as frailties and counts make it."""

import numpy as np
from numpy.testing import assert_allclose

import gp4c
from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Optimum, Problem, solve_q
from gp4c.inference.response import frailty_response
from gp4c.inference.sparse_prior import Hyper
from problems import observed, visits_panel


def test_the_level_has_the_variance_of_frailties_and_counts():
    # K subjects seen throughout: Var ln Λ = 1/N + 1/(K α) for N events; one without the other
    # would be a third of the standard deviation
    panel = gp4c.simulate_panel(
        ([0, 50], [0.05, 0.25]), window=(0, 50), n_subjects=40, n_intervals=5, frailty=0.8,
        random_state=4,
    )[0]  # fmt: skip
    model = gp4c.GP4C(count_term="pointwise", hyper="optimize", effect="gamma").fit(panel)
    theory = np.sqrt(1 / panel.n_events + 1 / (panel.n_subjects * model.frailty_shape_))
    span = np.array([0.0]), np.array([50.0])
    deviation = np.sqrt(model.posterior_.integral_variance(*span))
    relative = deviation / model.posterior_.expected_integral(*span)
    assert_allclose(relative, theory, rtol=0.15)
    assert theory > 2.5 / np.sqrt(panel.n_events)


def solved(effect, count_term="pointwise"):
    data = observed(visits_panel(5, 12, 3, level=3.0, frailty=1.0, with_exposure=True))
    task = Problem(data, KERNELS["se"], count_term, effect=effect, n_inducing=6)
    hyper = Hyper(0.4, 0.3, 0.9, 1.3 if effect else np.inf)
    work = task.workspace(hyper.length_scale)
    return Optimum(hyper, work, solve_q(work, hyper, None, 1e-9), 0.0, (), True)


def test_the_precision_loses_what_unknown_frailties_hide():
    # Σ_k (α + m_k)/(α + R_k)² ∇R_k ∇R_kᵀ, the slopes of R_k(v) by differences
    at = solved("gamma")
    q, hyper, exposure = at.estep.q, at.hyper, at.work.likelihood.exposure
    variance = at.estep.evaluation.variance

    def expected(v):
        f = hyper.mean + np.sqrt(hyper.variance) * at.work.features @ v
        return exposure.expected(f**2 + variance)

    step = 1e-5 * np.eye(at.work.size)
    slopes = np.array([(expected(q.mean + h) - expected(q.mean - h)) / 2e-5 for h in step]).T
    R = expected(q.mean)
    weights = (hyper.shape + exposure.totals) / (hyper.shape + R) ** 2
    found = frailty_response(at)
    assert_allclose(found.mean, q.mean, rtol=1e-9)
    assert_allclose(
        q.precision - found.precision, slopes.T @ (weights[:, None] * slopes), rtol=1e-5, atol=1e-7
    )


def test_without_frailty_or_with_the_paper_s_bound_nothing_changes():
    for at in (solved(None), solved("gamma", "lemma2")):
        assert frailty_response(at) is at.estep.q
