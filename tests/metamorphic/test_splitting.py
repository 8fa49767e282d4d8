"""A visit more, between two others, at which nothing had happened.

The likelihood of a Poisson process with counts does not change when an interval without events
is split, so neither do the models that use it, frailties and covariates included. Others change,
for reasons that are tested here as well.
"""

from __future__ import annotations

import pandas as pd
import pytest
from fixed_hyper import fit_at
from numpy.testing import assert_allclose
from relations import CASES, TIMES, answers, assert_same, baseline, names, panel_of, study

import gp4c
from tolerances import ROUNDING

#: where the maximum of an objective is that rounds at 1e-14 nat
SAME_ARGUMENT = {"rtol": 1e-7, "atol": 1e-8}
#: one short, one long interval without events, and one at the end of the window
ZEROS = [("s03", 0.0, 0.75), ("s10", 3.125, 9.0), ("s05", 15.0, 15.5)]


def split(table: pd.DataFrame) -> pd.DataFrame:
    """Some intervals without events in two, at times at which nobody else was seen."""
    for subject, start, middle in ZEROS:
        here = (table["subject"] == subject) & (table["start"] == start)
        row = table[here].iloc[0]
        assert row["count"] == 0
        parts = pd.DataFrame([row, row]).assign(start=[start, middle], stop=[middle, row["stop"]])
        table = pd.concat([table[~here], parts], ignore_index=True)
    return table


@pytest.mark.parametrize("effect", [None, "weight", "gamma"])
@pytest.mark.parametrize("count_term", ["exact", "pointwise", "lemma2"])
def test_at_fixed_hyper_parameters_nothing_changes(count_term: str, effect: str | None) -> None:
    whole, parts = (
        fit_at(panel_of(table), count_term=count_term, effect=effect)
        for table in (study(), split(study()))
    )
    # the objective rounds at 1e-14 nat, which says where its maximum is to the root of that: 1e-7
    # posterior deviations; how much of it shows depends on the processor and on NumPy
    assert_same(answers(parts, TIMES), answers(whole, TIMES), SAME_ARGUMENT)
    assert_allclose(parts.objective_, whole.objective_, **ROUNDING)


@pytest.mark.parametrize("name", names("splitting"))
def test_estimators_of_the_likelihood_give_the_same_answer(name: str) -> None:
    parts, whole = CASES[name].fit(split(study())), baseline(name)
    found, expected = answers(parts, TIMES), answers(whole, TIMES)
    if hasattr(whole, "bootstrap_"):  # samples are drawn in an order of content: others, as good
        del found["cumulative band"], expected["cumulative band"]
    # an optimised fit stops at a predicted gain of 1e-6 nat: where its path rounds otherwise,
    # curves may differ by what that gain moves them, not more
    assert_same(found, expected, {"rtol": 1e-5, "atol": 1e-7})
    assert_allclose(parts.objective_, whole.objective_, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("model", [gp4c.NPMPLE(), gp4c.NPMPLGF()], ids=repr)
def test_pseudo_likelihoods_count_every_visit(model) -> None:
    """NPMPLE and NPMPLGF are exempt, because a visit is an observation to them.

    Cumulative counts are treated as independent, so a visit without news repeats the total so
    far with the weight of a new subject: one more visit of a busy subject raises the curve.
    """
    rows = [("busy", 0.0, 4.0, 9), ("busy", 4.0, 8.0, 0), ("calm", 0.0, 8.0, 1)]
    more = [rows[0], ("busy", 4.0, 6.0, 0), ("busy", 6.0, 8.0, 0), rows[2]]
    columns = ["subject", "start", "stop", "count"]
    one, two = (
        type(model)(**model.get_params()).fit(
            panel_of(pd.DataFrame(r, columns=columns), (0.0, 8.0))
        )
        for r in (rows, more)
    )
    if isinstance(model, gp4c.NPMPLE):
        # totals 9 at 4, and 9 and 1 at 8: pooled (9 + 9 + 1)/3; then one 9 more
        assert_allclose([one.cumulative(8.0), two.cumulative(8.0)], [19 / 3, 28 / 4])
    assert two.cumulative(8.0) > one.cumulative(8.0) + 0.05


def test_local_em_smooths_cells_between_visits() -> None:
    """LocalEM is exempt, because its smoother starts from cells between visit times.

    Within a cell events count as evenly spread; a visit more, of anybody, makes two cells of
    one, whose densities are estimated apart. So the curve moves, and the mass of intervals with
    events moves least.
    """
    rows = [("busy", 0.0, 8.0, 9), ("busy", 8.0, 12.0, 1), ("calm", 0.0, 8.0, 0)]
    more = [*rows[:2], ("calm", 0.0, 2.0, 0), ("calm", 2.0, 8.0, 0)]
    columns = ["subject", "start", "stop", "count"]
    one, two = (
        gp4c.LocalEM(bandwidth=2.0).fit(panel_of(pd.DataFrame(r, columns=columns), (0.0, 12.0)))
        for r in (rows, more)
    )
    assert abs(one.intensity(1.0) - two.intensity(1.0)) > 0.005
    assert_allclose(one.cumulative(8.0), two.cumulative(8.0), rtol=0.01)
