"""The level of a fitted curve is as uncertain as frailties and counts make it."""

import numpy as np
from numpy.testing import assert_allclose

import gp4c


def test_the_level_has_the_variance_of_frailties_and_counts():
    # K subjects seen throughout: Var ln Λ = 1/N + 1/(K α) for N events; one without the other
    # would be a third of the standard deviation
    panel = gp4c.simulate_panel(
        ([0, 50], [0.05, 0.25]), window=(0, 50), n_subjects=40, n_intervals=5, frailty=0.8,
        random_state=4,
    )[0]  # fmt: skip
    model = gp4c.GP4C(count_term="pointwise", hyper="optimize", effect="gamma").fit(panel)
    theory = np.sqrt(1 / panel.n_events + 1 / (panel.n_subjects * model.frailty_shape_))
    span = np.array([0.0]), np.array([50.0])
    deviation = np.sqrt(model.posterior_.integral_variance(*span))
    relative = deviation / model.posterior_.expected_integral(*span)
    assert_allclose(relative, theory, rtol=0.15)
    assert theory > 2.5 / np.sqrt(panel.n_events)
