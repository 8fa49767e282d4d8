"""Bursts, frailties and the choice between laws, as a summary says them."""

import pytest

import gp4c
from gp4c.exceptions import FitWarning
from gp4c.model.laws.choice_words import choice_words
from gp4c.reporting.summary import summarise

ORDER = [
    "Fitted to", "Result", "Shape of the curve", "Differences between subjects",
    "Differences between visits", "Choice of the model", "The fit beside its data", "Fit",
]  # fmt: skip


@pytest.fixture(scope="module")
def thiotepa():
    return gp4c.load_dataset("bladder").where(treatment="thiotepa")


@pytest.fixture(scope="module")
def default(thiotepa):
    return gp4c.GP4C(random_state=0).fit(thiotepa)


def test_every_section_comes_once_and_in_order(default):
    sections = [row.section for row in summarise(default).rows]
    assert list(dict.fromkeys(sections)) == ORDER
    assert sections == sorted(sections, key=ORDER.index)


def test_the_default_is_described_in_plain_words(default):
    summary = summarise(default)
    size, dispersion = default.burst_size_, default.dispersion_
    assert summary["bursts"].text == (
        f"events come in bursts of {size:.2g} on average (variance {dispersion:.2g} times the mean)"
    )
    assert summary["bursts"].value == dispersion
    assert summary["subject effects"].text == "subjects differ (gamma frailty)"
    assert summary["frailty variance"].value == default.frailty_variance_
    assert summary["posterior"].text == (
        f"{default.posterior_.size:,} weighted draws, {default.effective_draws_:,.0f} effective; "
        f"Pareto k {default.pareto_k_:.2f} (reliable below 0.7)"
    )
    assert summary["bands"].text == (
        f"from {default.posterior_.size:,} drawn curves, worth {default.effective_draws_:,.0f} "
        "independent ones"
    )
    assert summary["log evidence"].value == default.log_evidence_
    row = summary["length scale"]
    assert row.low < row.value < row.high
    assert "flat within its band" in row.text  # at 95%, but not at 50%:
    assert "80% interval" in summarise(default, level=0.5)["length scale"].text
    text = str(summary)
    assert "ELBO" not in text
    assert "inducing inputs" not in text
    assert "nats" not in text


def test_a_variational_fit_names_its_bound(thiotepa):
    with pytest.warns(FitWarning, match="leave out count_term"):
        model = gp4c.GP4C(effect="gamma", count_term="pointwise").fit(thiotepa)
    summary = summarise(model)
    assert summary["posterior"].text == "variational, hyper-parameters at their best values"
    assert summary["ELBO"].value == model.elbo_
    assert summary["inducing inputs"].value == model.n_inducing_
    assert summary["bursts"].text == "events come one by one"
    assert any("as much within subjects as the fitted model" in line for line in summary.remarks)


@pytest.mark.parametrize(
    ("evidences", "text"),
    [
        ({("bursts", "gamma"): 0.0}, "as asked"),
        (
            {("bursts", "gamma"): 0.0, ("poisson", None): -20.0},
            "the data favour bursts with subject effects over single events without subject "
            "effects (odds above 1000 to 1)",
        ),
        (
            {("bursts", "gamma"): 0.0, ("bursts", None): 0.1},
            "the data hardly tell bursts with subject effects from bursts without subject effects "
            "(odds 1.1 to 1)",
        ),
        (
            {("bursts", "gamma"): 0.0, ("poisson", "gamma"): 1.5},
            "bursts with subject effects, to be safe: the data lean to single events with subject "
            "effects without ruling it out (odds 4.5 to 1)",
        ),
    ],
)
def test_why_a_law_was_chosen(evidences, text):
    assert choice_words(("bursts", "gamma"), evidences) == text
