"""What a forecast says of itself, and which fits go by way of sums."""

from __future__ import annotations

import pytest

import gp4c

QUICK = {"hyper": "optimize", "count_term": "pointwise", "n_inducing": 6}


@pytest.fixture(scope="module")
def model() -> gp4c.GP4C:
    panel = gp4c.simulate_panel(3.0, window=(0, 10), n_subjects=8, n_intervals=3, random_state=3)[0]
    return gp4c.GP4C(effect=None, **QUICK).fit(panel)


def test_only_what_lies_beyond_the_window_needs_a_note(model: gp4c.GP4C) -> None:
    assert model.forecast(2.0, 10.0).note == ""
    for start, stop in ((5.0, 12.0), (-3.0, 4.0)):
        assert "Beyond" in model.forecast(start, stop).note


def test_means_from_ten_on_have_no_decimals(model: gp4c.GP4C) -> None:
    many, few = model.forecast(0.0, 10.0), model.forecast(4.0, 5.0)
    assert many.mean > 10 > few.mean
    assert str(many).startswith(f"{many.mean:.0f} (")
    assert str(few).startswith(f"{few.mean:.2g} (")
