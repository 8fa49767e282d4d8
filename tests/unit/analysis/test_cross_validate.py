"""Cross-validation: the same splits for all, whatever labels, order and number of processes."""

import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gp4c
from gp4c.analysis.validation import cross_validate, score_differences

MODELS = {
    "constant": gp4c.HomogeneousPoisson(),
    "constant + gamma": gp4c.HomogeneousPoisson(effect="gamma"),
    "LocalEM": gp4c.LocalEM(bandwidth=8.0),
}


@pytest.fixture(scope="module")
def panel():
    return gp4c.load_dataset("bladder").where(treatment="placebo")


@pytest.fixture(scope="module")
def scores(panel):
    return cross_validate(MODELS, panel)


def test_folds_hold_everybody_out_once(scores, panel):
    assert scores.shape == (5, 3)
    assert scores.index.name == "split"
    assert sum(scores.attrs["n_subjects"]) == panel.n_subjects
    assert sum(scores.attrs["n_events"]) == panel.n_events
    each = scores.attrs["subject_scores"]
    for name in MODELS:
        assert_allclose([sum(split) for split in each[name]], scores[name], rtol=1e-10)


def test_scores_are_those_of_a_fit_by_hand(panel):
    found = cross_validate({"m": MODELS["constant"]}, panel, n_splits=2, random_state=3)
    drawn = np.random.default_rng(3).permutation(panel.n_subjects)
    test = panel.content_order()[np.array_split(drawn, 2)[0]]
    train = np.setdiff1d(np.arange(panel.n_subjects), test)
    model = gp4c.HomogeneousPoisson().fit(panel[train])
    assert_allclose(found.loc[0, "m"], model.score(panel[test]), rtol=1e-12)
    assert not hasattr(MODELS["constant"], "rate_")  # the model given stays unfitted


def test_labels_row_order_and_processes_change_nothing(scores, panel):
    frame = panel.to_frame()
    names = {label: f"p{k * 37 % 101}" for k, label in enumerate(panel.subjects)}
    frame["subject"] = frame["subject"].map(names)
    shuffled = gp4c.PanelCounts.from_frame(
        frame.sample(frac=1.0, random_state=1), window=panel.window
    )
    again = cross_validate(MODELS, shuffled, n_jobs=2)
    assert_allclose(again.to_numpy(), scores.to_numpy(), rtol=1e-7)


def test_threads_give_the_same_and_leave_filters_of_warnings_alone(scores, panel):
    before = list(warnings.filters)
    with joblib.parallel_config(backend="threading", n_jobs=4):
        threaded = cross_validate(MODELS, panel)
    assert_array_equal(threaded, scores)
    assert warnings.filters == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Dask's own dependencies
def test_a_dask_cluster_gives_the_same(panel):
    distributed = pytest.importorskip("distributed")
    models = {**MODELS, "GP4C": gp4c.GP4C(count_term="pointwise", hyper="optimize")}
    here = cross_validate(models, panel, n_splits=2)
    with (
        distributed.Client(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ),
        joblib.parallel_config(backend="dask"),
    ):
        there = cross_validate(models, panel, n_splits=2)
    assert_array_equal(there, here)
    assert there.attrs == here.attrs


def test_differences_are_paired_with_their_errors(scores):
    table = score_differences(scores, reference="constant").set_index("model")
    better = scores["constant + gamma"] - scores["constant"]
    assert_allclose(table.loc["constant + gamma", "difference"], better.mean())
    each = scores.attrs["subject_scores"]
    paired = np.concatenate(each["constant + gamma"]) - np.concatenate(each["constant"])
    # sum over all subjects is five times the mean per split
    error = np.sqrt(len(paired) * paired.var(ddof=1)) / 5
    assert_allclose(table.loc["constant + gamma", "standard_error"], error)
    assert table.loc["constant + gamma", "splits_won"] == (better > 0).mean()
    assert score_differences(scores)["model"][0] == scores.mean().idxmax()
    assert score_differences(scores)["difference"].max() == 0.0
    with pytest.raises(ValueError, match="there is no model 'x'"):
        score_differences(scores, reference="x")


def test_random_splits_widen_the_error_for_their_overlap(panel):
    found = cross_validate(MODELS, panel, n_splits=8, test_size=1 / 3)
    assert set(found.attrs["n_subjects"]) == {round(panel.n_subjects / 3)}
    row = score_differences(found, reference="constant").set_index("model").loc["LocalEM"]
    spread = (found["LocalEM"] - found["constant"]).std()
    assert_allclose(row["standard_error"], spread * np.sqrt(1 / 8 + 1 / 2))


class Scorer:
    """An estimator with a score and nothing else."""

    def __init__(self, value=1.0):
        self.value = value

    def get_params(self):
        return {"value": self.value}

    def fit(self, panel):
        return self

    def score(self, panel):
        return self.value * panel.n_events


def test_any_estimator_with_a_score_will_do(panel):
    found = cross_validate({"a": Scorer(), "b": Scorer(2.0)}, panel, n_splits=4)
    assert "subject_scores" not in found.attrs
    assert_allclose(found["a"], found.attrs["n_events"])
    row = score_differences(found).set_index("model").loc["a"]
    assert_allclose(row["standard_error"], found["a"].std() * np.sqrt(1 / 4 + 1 / 3))


def test_one_model_goes_by_the_name_of_its_class(panel):
    alone = cross_validate(gp4c.HomogeneousPoisson(), panel)
    named = cross_validate({"HomogeneousPoisson": gp4c.HomogeneousPoisson()}, panel)
    assert_array_equal(alone, named)
    assert list(alone.columns) == list(named.columns)


def test_impossible_splits_are_refused(panel):
    for options in ({"n_splits": 1}, {"n_splits": 1000}, {"test_size": 1.5}):
        with pytest.raises(ValueError, match=r"must be between"):
            cross_validate(MODELS, panel, **options)
    with pytest.raises(ValueError, match="no model"):
        cross_validate({}, panel)
