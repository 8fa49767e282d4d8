"""GP4CClasses: who is in which class, what population and classes answer, files, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gp4c
from gp4c.estimators.mixtures.classes.class_choice import ClassChoice
from gp4c.exceptions import PanelDataError

OPTIONS = {"effect": None, "bursts": False, "random_state": 0}
RATES = ((0.5, 2.5), (6.0, 1.0))


def two_classes(seed: int = 0, n: int = 24, rates=RATES) -> tuple[gp4c.PanelCounts, np.ndarray]:
    """Rates that are linear over [0, 4], five visits each; subjects in random order."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(rates), size=n)
    edges = np.column_stack([np.zeros(n), np.sort(rng.uniform(0.3, 4.0, (n, 5)), axis=1)])
    a, b = np.array(rates)[truth].T[:, :, None]
    mean = np.diff(a * edges + (b - a) * edges**2 / 8, axis=1)
    frame = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n), 5),
            "start": edges[:, :-1].ravel(),
            "stop": edges[:, 1:].ravel(),
            "count": rng.poisson(mean).ravel(),
            "arm": np.repeat(np.where(truth == 1, "b", "a"), 5),
        }
    )  # fmt: skip
    panel = gp4c.PanelCounts.from_frame(frame, window=(0.0, 4.0))
    return panel, truth


@pytest.fixture(scope="module")
def fitted() -> tuple[gp4c.GP4CClasses, gp4c.PanelCounts, np.ndarray]:
    panel, truth = two_classes()
    model = gp4c.GP4CClasses(n_classes="auto", max_classes=2, n_refits=1, **OPTIONS)
    return model.fit(panel), panel, truth


def test_finds_the_classes_and_says_so(fitted) -> None:
    model, _, truth = fitted
    assert model.n_classes_ == 2
    assert (model.membership_.argmax(axis=1) == truth).mean() >= 0.95
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1.0, atol=1e-6)
    assert model.shares_ == pytest.approx(np.bincount(truth) / len(truth), abs=0.1)
    assert model.cumulative(4.0, label=0) < model.cumulative(4.0, label=1)
    low, high = model.cumulative_band(4.0, label=1)
    assert low < 14.0 < high  # the true number
    assert "yes: 2 classes" in model.summary()["are there subgroups?"].text
    assert model.stability_.min() > 0.9
    frame = model.choice_.to_frame()
    assert frame["held_out_gain"][1] > 5


def test_population_is_the_mean_of_the_classes(fitted) -> None:
    model, _, _ = fitted
    draws, t = model.posterior_, np.array([1.0, 3.0])
    by_class = [model.class_curve(c).intensities(t) for c in (0, 1)]
    # draw by draw: shares times curves
    mean = sum(
        (draws.share[m] * draws.intensities(t)[:, m]) @ draws.parent_weights for m in draws.members
    )
    np.testing.assert_allclose(model.intensity(t), mean, rtol=1e-5)
    assert by_class[0].shape[1] == by_class[1].shape[1]
    low, high = model.intensity_band(t)
    assert np.all((low < mean) & (mean < high))
    # the band is of the mean curve: much narrower than the distance between the classes
    apart = np.abs(model.intensity(t, label=1) - model.intensity(t, label=0))
    assert (high - low)[0] < apart[0]


def test_forecasts_mix_by_membership(fitted) -> None:
    model, _, _ = fitted
    known = model.forecast(3.0, 4.0, subjects=[0, 1, 2, 3], exposure=1.0, n_draws=4000)
    by_class = np.array([model.expected_counts(3.0, 4.0, label=c) for c in (0, 1)])
    expected = model.membership_[:4] @ by_class
    np.testing.assert_allclose(known.mean, expected, rtol=0.03)
    new = model.forecast(3.0, 4.0, subjects=None)
    assert new.mean == pytest.approx(model.expected_counts(3.0, 4.0), rel=1e-6)
    assert new.draws.var() > 1.02 * new.mean  # a subject of unknown class varies more


def test_scores_and_memberships_of_other_subjects(fitted) -> None:
    model, _, _ = fitted
    other, truth = two_classes(seed=9)
    probabilities = model.predict_membership(other)
    assert (probabilities.argmax(axis=1) == truth).mean() >= 0.9
    one = gp4c.GP4C(**OPTIONS).fit(two_classes()[0])
    assert model.score(other) > one.score(other) + 5
    draws = model._log_likelihood_draws(other, 500, False)
    by_hand = logsumexp(draws.sum(axis=1)) - np.log(500)
    assert model.score(other, n_draws=500) == pytest.approx(by_hand)


def test_saved_models_answer_the_same(fitted, tmp_path) -> None:
    model, _, _ = fitted
    model.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    assert again.cumulative(3.0, label=1) == model.cumulative(3.0, label=1)
    assert again.intensity_band(2.0) == model.intensity_band(2.0)
    np.testing.assert_array_equal(again.membership_, model.membership_)
    first, second = (m.forecast(4.0, 5.0, subjects=[1]).mean for m in (model, again))
    np.testing.assert_array_equal(first, second)
    assert str(again.summary()) == str(model.summary())


def test_order_and_names_of_subjects_change_nothing() -> None:
    panel, _ = two_classes(n=10)
    rng = np.random.default_rng(4)
    order = rng.permutation(panel.n_subjects)
    options = OPTIONS | {"n_classes": 2, "n_refits": 0}
    first = gp4c.GP4CClasses(**options).fit(panel)
    second = gp4c.GP4CClasses(**options).fit(panel[order])
    assert second.log_evidence_ == pytest.approx(first.log_evidence_, abs=1e-8)
    np.testing.assert_allclose(
        second.membership_[np.argsort(second.subjects_.astype(int))],
        first.membership_[np.argsort(first.subjects_.astype(int))], atol=1e-6,
    )  # fmt: skip


def test_covariates_of_membership() -> None:
    panel, truth = two_classes(n=20)
    model = gp4c.GP4CClasses(n_classes=2, membership="arm", n_refits=0, **OPTIONS).fit(panel)
    assert (model.membership_.argmax(axis=1) == truth).all()
    odds = model.effects_over_shares()
    assert odds["odds_ratio"][0] > 3  # arm b makes class 1 likely
    assert odds["low"][0] > 1
    counts = panel.where(arm="b")
    assert model.predict_membership(counts)[:, 1].min() > 0.5


def test_one_class_is_the_default_fit() -> None:
    panel, _ = two_classes(n=10, rates=((1.0, 2.0),))
    model = gp4c.GP4CClasses(n_classes=1, **OPTIONS).fit(panel)
    plain = gp4c.GP4C(**OPTIONS).fit(panel)
    assert model.n_classes_ == 1
    assert model.log_evidence_ == plain.log_evidence_
    assert model.cumulative(3.0, label=0) == plain.cumulative(3.0)
    assert model.membership_.shape == (10, 1)


def test_laws_are_weighed_again_with_classes() -> None:
    # two levels are frailty to a single class; within two classes nothing is left
    panel, truth = two_classes(seed=3, n=24, rates=((0.7, 0.7), (4.0, 4.0)))
    options = {"bursts": False, "n_refits": 0, "random_state": 0}
    model = gp4c.GP4CClasses(n_classes=2, **options).fit(panel)
    single = gp4c.GP4C(bursts=False, random_state=0).fit(panel)
    assert single.effect_ == "gamma"
    assert model.effect_ is None
    assert (model.membership_.argmax(axis=1) == truth).mean() >= 0.9
    # one class counts with its best law, two with the average over both
    two = np.array([model.evidences_["poisson"], model.evidences_["poisson + gamma"]])
    assert model.choice_.log_evidence == pytest.approx(
        [max(single.evidences_.values()), np.log(np.exp(two - two.max()).mean()) + two.max()]
    )
    # a fit that is told a law starts elsewhere and has other draws
    told = gp4c.GP4CClasses(n_classes=2, effect="gamma", **options).fit(panel)
    assert told.log_evidence_ == pytest.approx(two[1], abs=0.3)
    assert told.effect_choice_ == "as asked"
    assert "over" in model.effect_choice_ or "hardly" in model.effect_choice_


def test_the_answer_may_be_no() -> None:
    no = ClassChoice(*(np.array(v) for v in ([1.0, 2.0], [-10.0, -11.0], [-9.0, -9.5], [0, 1.0],
                                             [0.0, 0.0], [100.0, 100.0])))  # fmt: skip
    assert no.chosen == 1
    assert no.answer().startswith("no: one class")
    unclear = ClassChoice(no.n_classes, np.array([-10.0, -8.5]), *(no.held_out,) * 4)
    assert unclear.chosen == 1
    assert unclear.answer().startswith("not clearly")


def test_refusals(fitted) -> None:
    model, panel, _ = fitted
    with pytest.raises(ValueError, match="there is no class 2; there are 0, 1"):
        model.intensity(1.0, label=2)
    with pytest.raises(ValueError, match="n_classes must be a number from 1 to 6"):
        gp4c.GP4CClasses(n_classes=0).fit(panel)
    with pytest.raises(ValueError, match="'auto'"):
        gp4c.GP4CClasses(n_classes="two").fit(panel)
    with pytest.raises(ValueError, match="a level of its own"):
        gp4c.GP4CClasses(effect="weight").fit(panel)
    with pytest.raises(PanelDataError, match="3 classes need at least 6 subjects; there are 4"):
        gp4c.GP4CClasses(n_classes=3).fit(panel[:4])
    with pytest.raises(PanelDataError, match="cannot be ranked"):
        model.unit_ranking()
    with pytest.raises(ValueError, match="label=0"):
        model.to_arviz()
