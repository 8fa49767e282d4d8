"""What a model file may hold: result classes and the fitted attributes of estimators."""

import math

import pytest

from gp4c.files.saved_schema import FIELDS
from gp4c.parts import estimators


def of(name, field, value, sizes=None):
    return FIELDS[name][field](value, {} if sizes is None else sizes)


def test_results_of_samplers_have_no_finite_limits_where_a_run_may_have_none():
    for field in ("log_evidence", "log_evidence_error", "acceptance", "unexplained"):
        for value in (math.nan, math.inf, -2.0):
            assert of("SamplerReport", field, value) is None
    assert of("CurveGroup", "length_scale", 0.0) == "is not positive"
    assert of("CurveGroup", "length_scale", math.inf) == "is not finite"
    assert of("CurveDraws", "groups", ()) == "is not a list of values"


def test_a_posterior_has_a_prior_that_is_known():
    assert of("Posterior", "length_scale", 0.0) == "is not positive"
    assert of("Posterior", "kernel", "rbf") == "is none of the known choices"


@pytest.mark.parametrize("kind", list(estimators()), ids=lambda kind: kind.__name__)
def test_estimators_save_what_all_have_and_what_they_add(kind):
    found = set(kind.saved_attributes())
    assert {"window_", "time_unit_", "subjects_"} < found
    assert found >= set(kind.saved)
