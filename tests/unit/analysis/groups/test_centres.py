"""Centres: random effects against quadrature, whole centres permuted, one sentence for mistakes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, poisson

import gp4c
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.estimators.regression import centre_regression
from gp4c.estimators.regression.centre_regression import DEVIATIONS, CentreFit, mixed
from gp4c.exceptions import PanelDataError


def trial(*, whole: bool, seed: int = 3, n_centres: int = 8, n: int = 6, visits: int = 3):
    """Centres whose rates differ (σ = 0.6), half of them or of their subjects in arm b."""
    rng = np.random.default_rng(seed)
    rows = []
    for c in range(n_centres):
        level = 0.8 * np.exp(0.6 * rng.standard_normal())
        for k in range(n):
            arm = "ab"[(c if whole else k) % 2]
            effect = rng.gamma(4.0, 0.25)
            for i in range(visits):
                count = rng.poisson(level * effect)
                rows.append((f"{c}-{k}", float(i), i + 1.0, count, arm, f"centre {c}"))
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count", "arm", "centre"])
    return gp4c.PanelCounts.from_frame(table)


def test_the_evidence_is_that_of_quadrature(monkeypatch):
    """Each subject seen once: only Λ(T) counts, so that a flat prior of ln Λ(T) and quadrature
    over the effects of centres give the same ratio of evidences."""
    panel = trial(whole=False, visits=1, n=10)
    monkeypatch.setattr(centre_regression, "DEVIATIONS", (0.0, 0.5))
    centres = np.unique(panel.covariates["centre"], return_inverse=True)[1]
    model = gp4c.GP4C(effect=None, bursts=False)
    rows = np.zeros((panel.n_intervals, 1))
    rows[::2], rows[1::2] = 1.0, -1.0
    fits = centre_regression._fits(model, panel, rows, centres, lambda text: None)
    z, weights = np.polynomial.hermite_e.hermegauss(24)
    level, beta = np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-1, 1, 41))
    total = {}
    for sigma in (0.0, 0.5):
        joint = norm.logpdf(beta, scale=centre_regression_scale(panel, rows))
        for c in range(int(centres.max()) + 1):
            mine = centres[panel.subject_index] == c
            means = level[..., None, None] + beta[..., None, None] * rows[mine, 0]
            means = np.exp(means + sigma * z[:, None])
            each = poisson.logpmf(panel.count[mine], means).sum(axis=-1)
            joint = joint + logsumexp(each, b=weights / weights.sum(), axis=-1)
        total[sigma] = logsumexp(joint)
    expected = total[0.5] - total[0.0]
    assert fits[1].log_evidence - fits[0].log_evidence == pytest.approx(expected, abs=0.3)


def centre_regression_scale(panel, rows):
    """Deviation of the prior of a coefficient."""
    from gp4c.estimators.engine_fit import EngineData

    return float(EngineData.with_covariates(panel, rows).scale[0])


def fit_of(evidence: float, beta: float) -> CentreFit:
    one = np.array([beta])
    return CentreFit(
        evidence, one, np.array([[0.04]]), np.array([[0.09]]), np.array([beta, -beta, 0.0]),
        np.full(3, 0.01), np.full(4000, 0.5),
    )  # fmt: skip


def test_a_clear_deviation_takes_its_own_fit():
    evidence = [-50.0] * len(DEVIATIONS)
    evidence[3] = 0.0  # σ = 0.5
    fits = [fit_of(value, float(k)) for k, value in enumerate(evidence)]
    found = mixed(fits, np.random.default_rng(0))
    assert np.median(found.sigma) == pytest.approx(0.5, abs=0.05)
    assert found.log_odds > 40
    assert (found.n_centres, found.degrees) == (3, 1.0)
    between = np.expm1(np.median(found.sigma) ** 2)
    assert np.median(found.share) == pytest.approx(
        between / (between + 0.5 + 0.5 * between), rel=0.05
    )
    assert abs(found.beta[0] - 3.0) < 0.3


def test_equal_evidence_leaves_the_prior():
    fits = [fit_of(-7.0, 0.0) for _ in DEVIATIONS]
    found = mixed(fits, np.random.default_rng(0))
    assert found.log_odds == pytest.approx(0.0, abs=1e-9)
    expected = centre_regression.PRIOR_SCALE * norm.ppf([0.6, 0.75, 0.9])  # half-normal quantiles
    np.testing.assert_allclose(np.quantile(found.sigma, [0.2, 0.5, 0.8]), expected, atol=5e-3)
    assert found.robust_covariance[0, 0] == pytest.approx(0.09)


def test_fits_that_differ_widen_the_mixture():
    fits = [fit_of(-7.0, float(k)) for k in range(len(DEVIATIONS))]
    found = mixed(fits, np.random.default_rng(0))
    assert found.covariance[0, 0] > 0.04 + 0.1


@pytest.fixture(scope="module", params=[True, False], ids=["whole centres", "within centres"])
def compared(request):
    model = gp4c.GP4C(effect="gamma", bursts=False, n_inducing=6)
    panel = trial(whole=request.param)
    found = gp4c.compare(panel, "arm", model, cluster="centre", n_permutations=499)
    return found, request.param


def test_the_test_permutes_what_was_randomised(compared):
    found, whole = compared
    assert found.tested.permutes_centres is whole
    if whole:
        assert found.tested.overall.n_labellings == 70  # 8 centres, 4 of them in arm b
        assert "ways to label the centres" in str(found)
    else:
        assert "within 8 centres of centre" in str(found)


def test_intervals_are_wider_where_centres_were_randomised(compared):
    found, whole = compared
    (row,) = found.adjusted().itertuples()
    assert row.errors == "robust by centre, t with 6 degrees of freedom"
    assert row.low < 1.0 < row.high  # the arms do not differ
    assert bool(np.log(row.high / row.low) > 1.2) is whole
    assert len(found.centres.to_frame()) == 8
    assert 0.0 < found.centres.share < 1.0
    assert "random effect for each centre" in str(found)
    assert found.hypotheses is None


def test_neither_order_nor_names_matter():
    panel = trial(whole=True)
    frame = panel.to_frame().sample(frac=1.0, random_state=1)
    frame["centre"] = frame["centre"].str.replace("centre", "site")
    other = gp4c.PanelCounts.from_frame(frame)
    one, two = (
        PanelTest.of(each, "arm", cluster="centre").overall.p_value for each in (panel, other)
    )
    assert one == two


def test_subjects_of_one_centre_count_as_one():
    """The test of whole centres is that of a panel with one subject for each centre."""
    panel = trial(whole=True)
    merged = gp4c.PanelCounts.from_frame(
        panel.to_frame()
        .groupby(["centre", "arm", "start", "stop"], as_index=False)["count"].sum()
        .assign(subject=lambda t: t["centre"], exposure=6.0)
    )  # fmt: skip
    clustered = PanelTest.of(panel, "arm", cluster="centre").overall
    plain = PanelTest.of(merged, "arm").overall
    assert clustered.p_value == pytest.approx(plain.p_value)
    assert clustered.statistic == pytest.approx(plain.statistic)


def test_bad_centres_get_one_sentence():
    few = trial(whole=False, n_centres=3)
    with pytest.raises(PanelDataError, match=r"has 3 levels; a random effect takes 4 to 200"):
        gp4c.compare(few, by="arm", cluster="centre")
    with pytest.raises(PanelDataError, match="there is no covariate 'site' of subjects"):
        gp4c.compare(few, by="arm", cluster="site")
