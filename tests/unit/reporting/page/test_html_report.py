"""The report is one closed file: its policy names its scripts, its text cannot run."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import gp4c
from gp4c.analysis.compare_groups import compare
from gp4c.analysis.words.comparison_words import conclusions
from gp4c.estimators.forecasts.count_forecast import forecast
from gp4c.reporting.figures.observed_numbers import observed_numbers
from gp4c.reporting.page.html_report import Report
from gp4c.reporting.page.report_figures import from_zero
from gp4c.reporting.page.report_method import method_paragraph
from gp4c.reporting.page.report_page import embedded_json

ATTACK = "</script><script>document.title='x'</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def report(visits, smooth):
    return Report({"all subjects": smooth}, panel=visits, title="Visits", level=0.9, seed=7)


@pytest.fixture(scope="module")
def html(report):
    return report.html()


def scripts_of(html):
    return re.findall(r"<script([^>]*)>(.*?)</script>", html, flags=re.DOTALL)


def figures_of(html):
    (data,) = [body for attributes, body in scripts_of(html) if "application/json" in attributes]
    return json.loads(data)


class Outline(HTMLParser):
    """Headings, ids, links and every element with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def hashes(texts):
    return {base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in texts}


def test_the_policy_names_exactly_the_scripts_and_style_sheets_that_are_there(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html).group(1)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    scripts = [body for attributes, body in scripts_of(html) if "json" not in attributes]
    styles = re.findall(r"<style[^>]*>(.*?)</style>", html.split("<body>")[0], flags=re.DOTALL)
    assert len(scripts) == 2
    assert sum(map(bool, styles)) == 1  # ours; others are empty
    for rule, texts in (("script-src", scripts), ("style-src", [*styles, ""])):
        sources = rules.pop(rule).split()
        assert {source[len("'sha256-") : -1] for source in sources} == hashes(texts)
    assert rules == {
        "default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"
    }  # fmt: skip


def test_nothing_is_loaded_from_elsewhere_and_the_file_is_small(html):
    assert len(html.encode()) < 6_000_000
    outline = Outline(html)
    for tag, attributes in outline.elements:
        assert tag not in {"link", "iframe", "object", "base", "form"}
        assert "src" not in attributes or attributes["src"].startswith("data:image/png")
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        if tag == "a":
            assert attributes["href"].startswith("#")


def test_the_page_has_an_outline_and_words_for_its_figures(html):
    outline = Outline(html)
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len(outline.all("h1")) == 1
    assert all(a["href"][1:] in ids for a in outline.all("a"))
    assert all(image["alt"] for image in outline.all("img"))
    plots = [a for a in outline.all("div") if a.get("role") == "img"]
    assert {a["id"] for a in plots} == set(figures_of(html)["figures"])
    assert all(a["aria-label"] for a in plots)
    assert outline.all("html")[0]["lang"] == "en"


def test_the_figures_hold_the_models_numbers_at_every_level(html, smooth):
    content = figures_of(html)
    assert content["level"] == "0.9"
    (series,) = content["figures"]["cumulative"]["series"]
    assert set(series["bands"]) == {"0.5", "0.8", "0.9", "0.95"}
    times = np.array(series["x"])[1:]
    np.testing.assert_allclose(series["y"][1:], smooth.cumulative(times), rtol=2e-5)
    low, _ = smooth.cumulative_band(times, 0.8)
    np.testing.assert_allclose(series["bands"]["0.8"][0][1:], low, rtol=2e-5)


def test_the_page_says_what_the_summary_says(html, report, visits):
    text = re.sub(r"<[^>]+>", " ", html)
    for row in report.summaries["all subjects"].rows:
        assert row.quantity in text
    assert f"{visits.n_subjects} subjects, {visits.n_intervals} intervals" in text
    assert f"gp4c {gp4c.__version__}" in text
    assert "Ding, H., Lee, Y., Sato, I. and Sugiyama, M. (2018)" in text


def test_the_same_analysis_gives_the_same_file(report, html, tmp_path):
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html


def test_text_of_users_stays_text(visits):
    frame = visits.to_frame().rename(columns={"arm": ATTACK})
    frame[ATTACK] = ATTACK + frame[ATTACK]
    panel = gp4c.PanelCounts.from_frame(frame, time_unit=ATTACK)
    names = sorted(panel.covariates[ATTACK].unique())
    models = {name: gp4c.HomogeneousPoisson().fit(panel.where(**{ATTACK: name})) for name in names}
    html = Report(models, panel=panel, by=ATTACK, title=ATTACK, command=ATTACK).html()
    assert len(scripts_of(html)) == 3
    assert Outline(html).all("img") == [a for a in Outline(html).all("img") if "alt" in a]
    assert "onerror=alert(1)>" not in html
    series = figures_of(html)["figures"]["rate"]["series"]
    assert "<" not in series[0]["name"]


def test_groups_are_compared_and_forecast(visits):
    quick = gp4c.GP4C(effect="gamma", bursts=False)
    found = compare(visits, "arm", quick, n_permutations=19)
    stops = np.array([13.0, 14.0])
    forecasts = {
        name: (stops, forecast(model, np.full(2, 12.0), stops, "all", n_draws=500))
        for name, model in found.models.items()
    }
    report = Report(found.models, visits, "arm", found, forecasts)
    html = report.html()
    shown = figures_of(html)["figures"]
    assert {"ratio-cumulative-0", "ratio-rate-0", "fan", "pit-1"} <= set(shown)
    (series,) = shown["ratio-cumulative-0"]["series"]
    expected = found.ratio(series["x"][-1], curve="cumulative")
    assert series["y"][-1] == pytest.approx(expected, rel=1e-4)
    assert len(shown["fan"]["series"]) == 2
    assert f"p = {found.p_value:.4f}" in html
    assert conclusions(found)[1] in html
    assert "nats" not in " ".join(conclusions(found))
    assert "The probabilities weigh three accounts of the curves" in html


@pytest.mark.parametrize(
    "model",
    [gp4c.LocalEM(bandwidth=2.0), gp4c.NPMPLE(), gp4c.NPMPLGF(), gp4c.NPMLE(effect="gamma")],
    ids=repr,
)
def test_every_estimator_has_a_report(model, visits):
    html = Report({"all": model.fit(visits)}, panel=visits).html()
    assert type(model).__name__ in html
    assert ("rate" in figures_of(html)["figures"]) == hasattr(model, "bandwidth_")
    assert Outline(html).all("input") == []  # there are no bands to switch


def test_the_method_paragraph_follows_the_fit(smooth, stepwise, arms, visits):
    text = method_paragraph(smooth, by="arm")
    assert "gamma frailties with mean 1" in text
    assert "maximise the bound" in text
    assert "Each level of arm" in text
    assert "same rate" in method_paragraph(arms["a"])
    assert "30 bootstrap samples" in method_paragraph(stepwise)
    weights = method_paragraph(gp4c.GP4CW(n_inducing=8).fit(visits))
    assert "weight of its own" in weights
    assert "b = 0.3" in weights


def test_the_method_of_the_default_names_laws_and_draws(visits):
    model = gp4c.GP4C(bursts=True).fit(visits)
    text = method_paragraph(model)
    assert "the square of a Gaussian process (squared exponential covariance" in text
    assert "bursts: given the rate, counts of a subject are those of a negative-binomial" in text
    assert "The distribution of subject effects was chosen by the evidence (" in text
    draws = (
        f"({model.posterior_.size:,} draws, worth {model.effective_draws_:,.0f} independent ones)"
    )
    assert f"computed by importance sampling around its modes {draws}." in text
    assert "nats" not in text


def test_values_cannot_end_the_element_they_stand_in():
    text = embedded_json({"a": "</script><!--", "b": "&\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--", "b": "&\u2028"}


def test_a_fan_begins_with_no_events_where_the_forecast_does():
    times, median = np.array([11.0, 12.0]), np.array([3, 7])
    drawn, middle, bands = from_zero(10.0, times, median, {0.5: (median - 1, median + 1)})
    assert drawn.tolist() == [10.0, 11.0, 12.0]
    assert middle.tolist() == [0, 3, 7]
    assert [edge.tolist() for edge in bands[0.5]] == [[0, 2, 6], [0, 4, 8]]


def test_observed_subjects_stand_below_the_curves_of_groups(arms, visits):
    report = Report(arms, visits, "arm")
    html = report.html()
    expected = observed_numbers({arm: visits.where(arm=arm) for arm in "ab"})
    for figure in ("rate", "cumulative"):
        shown = figures_of(html)["figures"][figure]
        assert shown["ticks"] == expected.times.tolist()
        rows = {row["name"]: row["numbers"] for row in shown["observed"]["rows"]}
        assert rows == {name: numbers.tolist() for name, numbers in expected.numbers.items()}
    assert html.count("<caption>Subjects observed</caption>") == 2
    off = Report(arms, visits, "arm", observed=False).html()
    assert "observed" not in figures_of(off)["figures"]["rate"]
    assert "Subjects observed" not in off


def test_one_curve_has_no_numbers_below(html):
    assert "observed" not in figures_of(html)["figures"]["rate"]


def test_groups_are_described_in_the_data_section(arms, visits):
    html = Report(arms, visits, "arm").html()
    for row in visits.table("arm").rows:
        assert all(f">{cell}<" in html for cell in row)
