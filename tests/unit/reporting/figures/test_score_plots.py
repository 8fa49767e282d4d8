"""The picture of held-out scores shows what the table says."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

from gp4c.analysis.validation import score_differences
from gp4c.reporting.figures.score_plots import plot_scores

mpl.use("agg")
SCORES = pd.DataFrame({"a $x$": [-5.0, -7.0, -6.0], "b": [-4.0, -6.5, -5.0]})


def test_the_best_model_is_on_top_and_others_are_relative_to_it():
    ax = plot_scores(SCORES)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", r"a \$x\$"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    means = np.asarray(ax.containers[0].lines[0].get_xdata(), dtype=float)
    assert_allclose(means, score_differences(SCORES)["difference"])
    folds = ax.get_lines()[1].get_xdata()
    assert_allclose(np.sort(folds), [-1.0, -1.0, -0.5])
    mpl.pyplot.close("all")


def test_another_reference_can_be_chosen():
    ax = plot_scores(SCORES, reference="a $x$")
    assert_allclose(float(ax.containers[0].lines[0].get_xdata()[0]), 2.5 / 3)
    mpl.pyplot.close("all")
