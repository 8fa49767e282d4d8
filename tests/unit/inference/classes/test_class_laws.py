"""Laws within classes: the path over them, and what one law hands to another."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.unit.inference.classes.test_class_landscape import point, space_of

from gp4c.inference.classes.class_climb import climb_classes
from gp4c.inference.classes.class_fit import ClassFitter, known_parameters
from gp4c.inference.classes.class_laws import evidences_towards_best
from gp4c.inference.classes.class_search import ClassSearch

GRID = [("poisson", None), ("poisson", "gamma"), ("bursts", None), ("bursts", "gamma")]


@pytest.mark.parametrize("order", list(product(range(3), repeat=4))[::5])
def test_the_path_ends_where_no_single_change_helps(order: tuple[int, ...]) -> None:
    value = dict(zip(GRID, order, strict=True))
    asked: list[tuple[str, str | None]] = []

    def evidence(names: tuple[str, str | None]) -> float:
        asked.append(names)
        return float(value[names])

    known = evidences_towards_best(GRID, evidence)
    assert len(asked) == len(set(asked)) == len(known)
    best = max(known, key=lambda names: known[names])
    near = [names for names in GRID if names[0] == best[0] or names[1] == best[1]]
    assert value[best] == max(value[names] for names in near)


def test_both_together_are_not_searched_if_each_alone_is_worse() -> None:
    value = dict(zip(GRID, (0.0, -1.0, -2.0, 5.0), strict=True))
    assert set(evidences_towards_best(GRID, value.__getitem__)) == set(GRID[:3])
    assert evidences_towards_best(GRID[2:3], value.__getitem__) == {GRID[2]: -2.0}


def test_parameters_move_between_laws_by_name() -> None:
    both, frail = space_of("bursts", "gamma"), space_of("poisson", "gamma")
    rich, poor = (space.land.task.likelihood for space in (both, frail))
    params = point(both)[-2:]  # ln shape of the effects, ln excess of the bursts
    assert known_parameters(params, rich, poor) == pytest.approx(params[:1])
    back = known_parameters(params[:1], poor, rich)
    assert back == pytest.approx([params[0], np.log(0.5)])  # the prior mean of an excess
    # the same counts under another law: the density is that of the law asked for from the start
    law, effect = frail.data.counts.law, frail.data.counts.effect
    x = point(frail)[:, None]
    other = both.data.under(law, effect)
    space = type(frail)(other, other.task("se", None).landscape(np.log(0.4)), frail.u, 2)
    assert space.log_density(x) == pytest.approx(frail.log_density(x), rel=1e-12)


def test_a_mode_found_under_one_law_leads_to_one_under_another() -> None:
    poor, rich = space_of("poisson", None), space_of("poisson", "gamma")
    start = np.zeros(poor.dimension)
    start[poor.levels()] = [-0.5, 0.5]
    mode = climb_classes(poor, start)
    search = ClassSearch(rich.data, rich.land.task)
    fitter = ClassFitter(search, mode, (0.4, 0.4), 0, lambda text: None)
    found = fitter.carried_from(mode)
    assert found.found
    assert found.space.data.laws == ("poisson", "gamma")
    begun = np.append(mode.x, 0.0)[:, None]  # the ln shape at its prior mean
    at_mode = found.space.log_density(found.x[:, None])
    assert at_mode > rich.log_density(begun) + 0.1
    # more frailty than at the mode, or less, is less probable
    for change in (-1.0, 1.0):
        beside = found.x.copy()
        beside[-1] += change
        assert found.space.log_density(beside[:, None]) < at_mode
