"""The summary of a fit to several types of events."""

import gp4c
from typed_panels import simulated_types


def test_the_summary_has_each_type_their_ratio_and_the_correlation():
    model = gp4c.GP4C(effect="gamma", bursts=False, hyper="optimize").fit(simulated_types(40))
    summary = model.summary()
    assert summary["event types"].text == "first, second"
    each = summary["first"].value + summary["second"].value
    assert abs(each - summary["all types"].value) < 1e-9
    assert summary["first / second"].low < summary["first / second"].value
    assert summary["first and second"].value == float(model.effect_correlation_)
    assert "who has more first events has more second ones" in " ".join(str(summary).split())
