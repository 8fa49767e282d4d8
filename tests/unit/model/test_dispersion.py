"""Dispersion of totals: by hand, and when it counts as bad."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.model.dispersion import BAD_DEVIATION, BAD_RATIO, Dispersion, poisson_dispersion


def test_three_subjects_by_hand():
    # (3 − 1)² + (0 − 2)² + (2 − 2)² = 8 over 5 expected; √(1 + 2 + 2·(2 + 8)) = √23
    found = poisson_dispersion(np.array([3.0, 0.0, 2.0]), np.array([1.0, 2.0, 2.0]))
    assert_allclose(found.ratio, 8 / 5)
    assert_allclose(found.deviation, 3 / np.sqrt(23))


def test_less_than_one_expected_event_still_counts():
    found = poisson_dispersion(np.array([2.0, 0.0]), np.array([0.25, 0.25]))
    assert_allclose(found.ratio, (1.75**2 + 0.25**2) / 0.5)


@pytest.mark.parametrize(
    ("ratio", "deviation", "bad"),
    [(1.6, 3.1, True), (1.6, 2.9, False), (1.4, 9.0, False), (BAD_RATIO, 9.0, False),
     (9.0, BAD_DEVIATION, False)],
)  # fmt: skip
def test_bad_is_both_large_and_beyond_chance(ratio, deviation, bad):
    assert Dispersion(ratio, deviation).is_bad is bad
