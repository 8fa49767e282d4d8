"""Parts from outside the package, through the API, the command line and the report."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import gp4c


@pytest.fixture(scope="module")
def parts():
    """The toy parts, as long as these tests run."""
    import importlib
    import sys
    from pathlib import Path

    from gp4c.estimators.base import ESTIMATORS
    from gp4c.model.kernels import KERNELS
    from gp4c.model.laws import EFFECTS, LAWS

    sys.path.insert(0, str(Path(__file__).parent))
    registries = LAWS, EFFECTS, KERNELS, ESTIMATORS
    known = [set(registry) for registry in registries]
    yield importlib.import_module("toy_parts")
    sys.path.pop(0)
    sys.modules.pop("toy_parts")
    for registry, before in zip(registries, known, strict=True):
        for name in set(registry) - before:
            del registry[name]


@pytest.fixture(scope="module")
def panel():
    return gp4c.load_dataset("bladder").where(treatment="thiotepa")


def test_a_law_given_by_its_probability_alone_gives_the_same_answers(parts, panel, tmp_path):
    toy = gp4c.GP4C(effect="gamma", bursts="toy_bursts").fit(panel)
    own = gp4c.GP4C(effect="gamma", bursts=True).fit(panel)
    assert toy.law_ == "toy_bursts"
    assert abs(toy.log_evidence_ - own.log_evidence_) < 0.1
    assert_allclose(toy.cumulative(50.0), own.cumulative(50.0), rtol=0.03)
    assert_allclose(toy.dispersion_, own.dispersion_, rtol=0.05)
    assert "a toy" in str(toy.summary())
    toy.save(tmp_path / "toy.json")
    assert gp4c.load_model(tmp_path / "toy.json").cumulative(50.0) == toy.cumulative(50.0)
    assert toy.forecast(51.0, 60.0).mean > 0


def test_nobody_but_the_law_knows_what_its_parameter_means(parts, panel, tmp_path):
    model = gp4c.GP4C(effect=None, bursts="toy_shifted").fit(panel)
    own = gp4c.GP4C(effect=None, bursts=True).fit(panel)
    assert_allclose(model.law_parameters_, own.law_parameters_ + 1.0, atol=0.1)
    assert_allclose(np.log(model.dispersion_ - 1.0), model.law_parameters_[0] - 1.0, atol=1e-6)
    assert "shifted by 1.000" in str(model.summary())
    model.save(tmp_path / "shifted.json")
    again = gp4c.load_model(tmp_path / "shifted.json")
    assert_allclose(again.law_parameters_, model.law_parameters_)


def test_a_law_that_inflates_zeros_is_refused(parts):
    body = {"name": "toy_inflated", "has_remainder": lambda self, count: count >= 0}
    with pytest.raises(TypeError, match="zero-inflated"):
        type("Inflated", (parts.NegativeBinomial,), body)


def test_an_effect_without_a_closed_form_is_fitted_described_and_forecast(parts, panel, tmp_path):
    model = gp4c.GP4C(effect="toy_lognormal", bursts=False).fit(panel)
    gamma = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
    assert abs(model.log_evidence_ - gamma.log_evidence_) < 5
    summary = model.summary()
    assert "log-normal" in summary["subject effects"].text
    # the quantiles are those of the law itself, not of a gamma law with the same variance
    v = np.log1p(model.frailty_variance_)
    most, half = np.exp(np.sqrt(v) * np.array([1.2816, 0.0]) - v / 2)
    words = f"more than {most:.2g} times the mean rate, half have less than {half:.2g} times"
    assert words in summary["in other words"].text
    model.save(tmp_path / "toy.json")
    again = gp4c.load_model(tmp_path / "toy.json")
    assert again.cumulative(50.0) == model.cumulative(50.0)
    assert again.forecast(51.0, 60.0, subjects="all", random_state=1).mean > 0


def test_derivatives_of_an_effect_are_those_of_its_density(parts):
    effect, y, psi, h = (
        parts.LogNormalEffect(),
        np.linspace(-3, 2, 7)[:, None],
        np.array([[0.3]]),
        1e-4,
    )
    first, second = effect.derivatives(y, psi)
    by_psi, by_psi_twice, crossed = effect.parameter_derivatives(y, psi)

    def slope(of, at, step):
        return (of(at + step) - of(at - step)) / (2 * step)

    assert_allclose(first, slope(lambda x: effect.log_density(x, psi), y, h), rtol=1e-6)
    assert_allclose(second, slope(lambda x: effect.derivatives(x, psi)[0], y, h), rtol=1e-6)
    assert_allclose(by_psi[0], slope(lambda p: effect.log_density(y, p), psi, h), rtol=1e-6)
    twice = slope(lambda p: effect.parameter_derivatives(y, p)[0][0], psi, h)
    assert_allclose(by_psi_twice[0, 0], twice, rtol=1e-6)
    assert_allclose(crossed[0], slope(lambda p: effect.derivatives(y, p)[0], psi, h), rtol=1e-6)


def test_a_kernel_needs_its_correlation_only(parts, panel):
    model = gp4c.GP4C(kernel="toy_rational").fit(panel)
    assert 3 < model.cumulative(50.0) < 15
    bound = gp4c.GP4C(kernel="toy_rational", count_term="pointwise", effect="gamma").fit(panel)
    assert 3 < bound.cumulative(50.0) < 15


def test_the_command_line_finds_parts_by_their_entry_points(parts, panel, tmp_path, monkeypatch):
    from gp4c.cli.program import app

    loaded = []
    entry = SimpleNamespace(name="toys", load=lambda: loaded.append("toys"))
    monkeypatch.setattr("gp4c.parts.entry_points", lambda group: [entry])
    table = tmp_path / "visits.csv"
    panel.to_frame().to_csv(table, index=False)
    done = CliRunner().invoke(app, ["fit", str(table), "--bursts", "toy_bursts", "--json"])
    assert done.exit_code == 0, done.output
    assert loaded
    assert json.loads(done.stdout)
    assert '"toy_bursts"' in done.output
    effect = CliRunner().invoke(
        app, ["fit", str(table), "--effect", "toy_lognormal", "--bursts", "no"]
    )
    assert effect.exit_code == 0, effect.output
    assert "log-normal effects, a toy" in effect.output
    page = CliRunner().invoke(
        app, ["report", str(table), "--bursts", "toy_bursts", "--out", str(tmp_path / "page"), "-q"]
    )
    assert page.exit_code == 0, page.output
    assert "a toy" in next((tmp_path / "page").glob("*.html")).read_text()


@pytest.fixture
def command_line(parts, panel, tmp_path, monkeypatch):
    """The command line with a table in the folder, and the toys as somebody's entry point."""
    from gp4c.cli.program import app

    entry = SimpleNamespace(name="toys", load=lambda: parts)
    monkeypatch.setattr("gp4c.parts.entry_points", lambda group: [entry])
    monkeypatch.chdir(tmp_path)
    panel.to_frame().to_csv("visits.csv", index=False)
    return lambda words: CliRunner().invoke(app, words.split())


def test_an_estimator_of_another_package_is_fitted_saved_and_described(parts, panel, tmp_path):
    model = parts.WeibullMoments().fit(panel)
    # two equations, two unknowns: as many events are expected as were seen
    rows = panel.exposure * model.expected_counts(panel.start, panel.stop)
    assert_allclose(rows.sum(), panel.n_events)
    model.save(tmp_path / "toy.json")
    again = gp4c.load_model(tmp_path / "toy.json")
    assert type(again) is parts.WeibullMoments
    assert again.cumulative(50.0) == model.cumulative(50.0)
    assert again.score(panel) == model.score(panel)
    assert "Weibull growth" in str(again.summary())
    assert again.forecast(50.0, 60.0, random_state=1).mean > 0


def test_the_command_line_takes_an_estimator_of_another_package(command_line, tmp_path):
    done = command_line("fit visits.csv --model toy-weibull --out out")
    assert done.exit_code == 0, done.output
    assert "Weibull growth" in done.output
    assert (tmp_path / "out" / "curves.csv").is_file()
    page = command_line("report visits.csv --model toy-weibull --out page -q")
    assert page.exit_code == 0, page.output
    assert "matched to two moments (a toy)" in (tmp_path / "page" / "report.html").read_text()
    ahead = command_line("forecast out/fit.json --to 60 --json")
    assert ahead.exit_code == 0, ahead.output
    wrong = command_line("fit visits.csv --model toy-weibull --effect gamma")
    assert wrong.exit_code == 2
    assert "takes --effect auto, none" in wrong.output


def test_a_file_with_values_that_the_estimator_does_not_expect_is_refused(parts, panel):
    model = parts.WeibullMoments().fit(panel)
    model.power_ = -1.0
    with pytest.raises(gp4c.exceptions.ModelFileError, match="'power_' is not positive"):
        model.save("nowhere.json")


def test_two_estimators_cannot_share_a_name_in_files(parts):
    with pytest.raises(TypeError, match="there is an estimator GP4C in gp4c"):
        type("GP4C", (gp4c.HomogeneousPoisson,), {"title": "another", "__module__": "elsewhere"})


def test_an_unknown_law_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="bursts must be 'auto', True, False, 'bursts'"):
        gp4c.GP4C(bursts="no_such_law").fit(gp4c.load_dataset("bladder"))
