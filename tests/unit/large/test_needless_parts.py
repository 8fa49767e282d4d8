"""What one part more of a law is worth at the curve of the simpler one."""

import numpy as np
import pytest
from large_panels import irregular_frame, irregular_panel

import gp4c
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.posterior_fit import fit_posterior, task_for
from gp4c.large.expanded_cells import ManyRows
from gp4c.large.needless_parts import needless_parts, odds_of_part
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells, panel_rows

PLAIN = LAWS["poisson"], EFFECTS[None]
FRAILTY, BURSTS = (LAWS["poisson"], EFFECTS["gamma"]), (LAWS["bursts"], EFFECTS[None])
BOTH = LAWS["bursts"], EFFECTS["gamma"]
LAWS_OF_ALL = [BOTH, BURSTS, FRAILTY, PLAIN]


def rows_and_mode(panel, simple=PLAIN):
    rows, n_subjects = panel_rows(panel, panel.window, None)
    task = task_for(observe_cells(panel, None, panel.window, *simple), *simple)
    return ManyRows.of(rows, n_subjects, panel.window), find_modes(task, rounds=1).best.mode


@pytest.mark.parametrize("laws", [FRAILTY, BURSTS])
def test_log_odds_are_the_difference_of_evidences(laws):
    """Against the evidences of two fits, each integrated over its own curves.

    Some are higher: the gain is kept where it is not taken, and its curve is no parabola. A part
    that is asked for is so never given up.
    """
    panel = irregular_panel(n_subjects=400, seed=4)
    many, mode = rows_and_mode(panel)
    evidence = [
        fit_posterior(
            lambda *pair: observe_cells(panel, None, panel.window, *pair), [one]
        ).weighted.log_evidence
        for one in (laws, PLAIN)
    ]
    assert -0.3 < odds_of_part(many, mode, laws) - (evidence[0] - evidence[1]) < 1.0


def test_nothing_is_needless_where_subjects_differ():
    many, mode = rows_and_mode(irregular_panel(n_subjects=400, frailty=2.0))
    assert needless_parts(many, mode, LAWS_OF_ALL[:-1]) == {}
    assert odds_of_part(many, mode, FRAILTY) > 20


def test_parts_are_needless_together_if_each_is():
    frame = irregular_frame(n_subjects=3000, seed=1)
    frame["count"] = frame["count"].clip(upper=4)  # less dispersed than any of these laws
    many, mode = rows_and_mode(gp4c.PanelCounts.from_frame(frame, window=(0, 60)))
    found = needless_parts(many, mode, LAWS_OF_ALL[:-1])
    assert set(found) == {BOTH, BURSTS, FRAILTY}
    assert found[BOTH] == pytest.approx(found[BURSTS] + found[FRAILTY])


def test_two_parts_more_are_not_judged_at_once():
    many, mode = rows_and_mode(irregular_panel(n_subjects=50))
    assert odds_of_part(many, mode, BOTH) == np.inf
    assert odds_of_part(many, mode, PLAIN) == np.inf
