"""GP4CMixture: GP4CW as its case of one basis, bases that come back, scores written out."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import poisson
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.exceptions import GP4CError
from gp4c.reporting.figures.count_checks import check_counts
from gp4c.reporting.page.html_report import Report
from mixed_panels import WINDOW, courses, two_courses
from tolerances import BIT_FOR_BIT, SAME_MAXIMUM, STANDARD_ERRORS

pytestmark = pytest.mark.filterwarnings("ignore::gp4c.exceptions.FitWarning")
T = np.linspace(*WINDOW, 200)


@pytest.fixture(scope="module")
def data():
    return two_courses(seed=0, n_subjects=80)


@pytest.fixture(scope="module")
def model(data):
    return gp4c.GP4CMixture(n_bases=2, n_starts=6).fit(data[0])


@pytest.mark.parametrize("count_term", ["lemma2", "pointwise"])
def test_one_basis_is_gp4cw(count_term):
    panel = two_courses(seed=2, n_subjects=25)[0]
    weights = gp4c.GP4CW(count_term=count_term).fit(panel)
    mixture = gp4c.GP4CMixture(n_bases=1, count_term=count_term, tol=1e-6).fit(panel)
    assert_allclose(mixture.objective_, weights.objective_, **SAME_MAXIMUM)
    assert_allclose(mixture.intensity(T), weights.intensity(T), rtol=2e-3)
    assert_allclose(mixture.weights_[:, 0], weights.subject_effects_, rtol=2e-3)
    assert_allclose(mixture.elbo_, weights.elbo_, rtol=0.0, atol=1e-3)
    for one, other in zip(mixture.intensity_band(T), weights.intensity_band(T), strict=True):
        assert_allclose(one, other, rtol=5e-3, atol=1e-4)
    own, error = mixture.score_with_error(panel, new_subjects=False)
    theirs, their_error = weights.score_with_error(panel)
    assert abs(own - theirs) < STANDARD_ERRORS * np.hypot(error, their_error) + 0.01


def test_bases_come_back(model, data):
    # relative L1 with each basis at the scale of its mean weight; both were measured below 0.11
    truth = courses(T) * data[1].mean(axis=0)[:, None]
    found = np.stack([model.basis(T, 0), model.basis(T, 1)])
    pairs = ((0, 1), (1, 0))
    error = min(
        max(np.abs(found[p[k]] - truth[k]).sum() / truth[k].sum() for k in (0, 1)) for p in pairs
    )
    assert error < 0.15


def test_weights_have_mean_one_and_the_larger_basis_comes_first(model, data):
    assert_allclose(model.weights_.mean(axis=0), 1.0, rtol=1e-12)
    assert model.shares_[0] >= model.shares_[1]
    expected = (model.weights_ * model.basis_expected_).sum(axis=1)
    assert_allclose(expected, model.subject_totals_, atol=1e-4)  # as with one weight
    assert_allclose(model.shares_.sum(), 1.0)


def test_order_labels_and_unit_of_time_change_no_answer(data, model):
    panel, _ = data
    order = np.random.default_rng(3).permutation(panel.n_subjects)
    frame = panel[order].to_frame()
    frame["subject"] = "s" + frame["subject"].astype(str)
    frame["start"], frame["stop"] = 7.0 * frame["start"], 7.0 * frame["stop"]
    other = gp4c.PanelCounts.from_frame(frame, window=(0.0, 70.0))
    again = gp4c.GP4CMixture(n_bases=2, n_starts=6).fit(other)
    assert_allclose(7.0 * again.intensity(7.0 * T), model.intensity(T), rtol=1e-3)
    place = {str(label): k for k, label in enumerate(again.subjects_)}
    rows = [place[f"s{label}"] for label in model.subjects_]
    assert_allclose(again.weights_[rows], model.weights_, rtol=1e-2, atol=1e-3)


def test_curves_of_subjects_add_up_their_bases(model):
    label, k = model.subjects_[5], 5
    expected = model.weights_[k] @ np.stack([model.basis(T, 0), model.basis(T, 1)])
    assert_allclose(model.intensity(T, subjects=label), expected, rtol=1e-12)
    both = model.cumulative(T, subjects=list(model.subjects_[:2]))
    assert both.shape == (2, len(T))
    low, high = model.cumulative_band(10.0, subjects=label)
    assert low < model.cumulative(10.0, subjects=label) < high
    assert_allclose(model.intensity(T), model.basis(T, 0) + model.basis(T, 1), rtol=1e-12)


def test_the_honest_score_is_the_mixture_written_out(model):
    panel = two_courses(seed=9, n_subjects=6)[0]
    rng = np.random.default_rng(0)
    draws = model.posterior_.sample_parts(panel.start, panel.stop, 400, rng)
    law = model.weight_law
    total = np.empty((400, panel.n_subjects))
    for s in range(400):
        rates = law.weights @ draws[:, s]  # points, rows
        logs = poisson.logpmf(panel.count, rates)
        for k in range(panel.n_subjects):
            own = logs[:, panel.subject_index == k].sum(axis=1)
            total[s, k] = logsumexp(own + np.log(law.masses))
    expected = logsumexp(total.sum(axis=1)) - np.log(400)
    value, error = model.score_with_error(panel, constant=True)
    spread = np.exp(total.sum(axis=1) - expected).std() / np.sqrt(400)
    assert abs(value - expected) < STANDARD_ERRORS * np.hypot(error, spread)


def test_refitted_weights_flatter(model):
    panel = two_courses(seed=9, n_subjects=6)[0]
    assert model.score(panel, new_subjects=False) > model.score(panel) + 1.0
    joint = model.score(panel, new_subjects=False)
    apart = model.score_subjects(panel, new_subjects=False)
    assert len(apart) == 6
    assert abs(joint - apart.sum()) < 3.0  # the curves are well known: nearly the same


def test_forecasts_of_new_and_known_subjects(model, data):
    found = model.forecast(2.0, 8.0, subjects=None, n_draws=20_000)
    bases = [model.posterior_.parts[k].expected_integral(np.array([2.0]), np.array([8.0]))[0]
             for k in (0, 1)]  # fmt: skip
    assert_allclose(found.mean, model.weight_law.mean @ bases, rtol=1e-9)
    error = found.draws.std() / np.sqrt(20_000)
    assert abs(found.draws.mean() - found.mean) < STANDARD_ERRORS * error
    # a subject with many late events is forecast to have more of them than one without
    order = np.argsort(model.weights_[:, 1 if model.basis(7.0, 1) > model.basis(7.0, 0) else 0])
    few, many = model.subjects_[order[0]], model.subjects_[order[-1]]
    means = model.forecast(6.0, 8.0, subjects=[few, many]).mean
    assert means[1] > 3.0 * means[0]
    everyone = model.forecast(0.0, 10.0, subjects="all").mean
    assert abs(everyone / data[0].n_events - 1.0) < 0.1


def test_saved_models_answer_alike(model, tmp_path, data):
    model.save(tmp_path / "m.json")
    again = gp4c.load_model(tmp_path / "m.json")
    assert_allclose(again.basis(T, 1), model.basis(T, 1), **BIT_FOR_BIT)
    assert_allclose(again.weights_, model.weights_, **BIT_FOR_BIT)
    assert again.score(data[0][:5], n_draws=50) == model.score(data[0][:5], n_draws=50)
    assert again.elbo_ == model.elbo_
    assert str(again.summary()) == str(model.summary())


def test_what_it_says(model, data, tmp_path):
    text = " ".join(str(model.summary()).split())
    assert "basis 1" in text
    assert f"{model.shares_[0]:.0%} of the events" in text
    assert "cross_validate says how many" in text
    table = model.weight_table()
    assert list(table.columns[:3]) == ["subject", "events", "weight_1"]
    assert_allclose(table[["share_1", "share_2"]].sum(axis=1), 1.0)
    page = Report({"all": model}, data[0]).html()
    assert "What the rate is made of" in page
    assert "combination of basis intensities" in page
    assert check_counts(model, data[0]).n_subjects == 80


def test_plots(model):
    import matplotlib as mpl

    mpl.use("agg")
    ax = model.plot_bases()
    assert len(ax.get_legend().get_texts()) >= 2
    bars = model.plot_weights()
    heights = sum(bar.get_height() for bar in bars.patches)
    assert_allclose(heights, model.subject_totals_.sum(), rtol=1e-3)
    assert model.plot() is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [({"n_bases": 0}, "n_bases"), ({"n_bases": 2.5}, "n_bases"), ({"b": 2.0}, "b must be"),
     ({"count_term": "tight"}, "count_term"), ({"n_starts": 0}, "n_starts")],
)  # fmt: skip
def test_wrong_arguments_are_named(options, words, data):
    with pytest.raises(ValueError, match=words):
        gp4c.GP4CMixture(**options).fit(data[0])


def test_more_bases_than_subjects_with_events_are_refused(data):
    with pytest.raises(GP4CError, match="n_bases=3 needs at least"):
        gp4c.GP4CMixture(n_bases=3).fit(data[0][:2])


def test_unknown_bases_and_subjects_are_named(model):
    with pytest.raises(ValueError, match="0 to 1"):
        model.basis(1.0, 2)
    with pytest.raises(Exception, match="nobody"):
        model.intensity(1.0, subjects="nobody")
    with pytest.raises(GP4CError, match="ArviZ"):
        model.to_arviz()


def test_a_basis_that_the_data_do_not_ask_for_has_no_events():
    # the rate of these counts is flat: two equal bases would share the events at random
    panel = gp4c.load_dataset("skin", event="basal").where(treatment="dfmo")
    mixture = gp4c.GP4CMixture(n_bases=2, n_starts=4).fit(panel)
    assert mixture.shares_[0] > 0.99
    assert "n_bases=1 says as much" in " ".join(str(mixture.summary()).split())


def test_the_command_line_fits_it(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    data[0][:30].to_frame().to_csv("visits.csv", index=False)

    def run(line):
        return CliRunner().invoke(program, shlex.split(line))

    done = run("fit visits.csv --model mixture --bases 2 --out out")
    assert done.exit_code == 0, done.output
    assert {"weights.csv", "bases.png", "weights.png", "fit.json"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
    assert gp4c.load_model("out/fit.json").n_bases == 2
    said = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert "Basis intensities" in said["fits"][0]["summary"]
    wrong = run("fit visits.csv --bases 3")
    assert wrong.exit_code == 2
    assert "--model mixture" in wrong.output
