"""Free weights: parameters of subjects, with nothing left to integrate."""

import numpy as np

import gp4c
from gp4c.model.laws import EFFECTS


def test_given_their_weights_subjects_are_equal():
    law, nothing = EFFECTS["weight"], np.zeros((0, 3))
    assert law.is_free
    assert not law.varies
    assert law.parameters == ()
    assert np.all(law.draw(nothing, np.ones(3), np.ones(3), np.random.default_rng(0)) == 1)


def test_a_fit_with_weights_says_so_in_the_words_of_the_part():
    from gp4c.reporting.page.report_method import method_paragraph
    from gp4c.reporting.remarks import warnings_of

    panel = gp4c.load_dataset("bladder").where(treatment="thiotepa")
    model = gp4c.GP4CW(count_term="pointwise", n_inducing=6).fit(panel)
    law = model.effect_law_
    assert law is EFFECTS["weight"]
    assert law.method in method_paragraph(model)
    assert law.caution in list(warnings_of(model))
    assert f"{law.title}, mean 1" in str(model.summary())
