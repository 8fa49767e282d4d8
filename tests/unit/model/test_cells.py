"""Cells as rows over nodes: integrals, adjoints, grouping, and that order does not matter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import gp4c
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells

NONE, GAMMA = EFFECTS[None], EFFECTS["gamma"]


@pytest.fixture(scope="module")
def panel():
    return gp4c.load_dataset("bladder").where(treatment="placebo")


def curve(x):
    """A smooth positive function on the unit window."""
    return 1 + 0.5 * np.sin(7 * x)


@pytest.mark.parametrize("effect", [NONE, GAMMA])
def test_rows_are_integrals(panel, effect):
    cells = observe_cells(panel, None, panel.window, LAWS["poisson"], effect)
    nodes = cells.on_nodes(10, 6)
    values = nodes.apply(curve(nodes.nodes)[:, None])[:, 0]
    for k in range(0, len(cells.start), 7):
        assert_allclose(values[k], quad(curve, cells.start[k], cells.stop[k])[0], rtol=1e-8)
    total = cells.number @ values[nodes.n_cells :] if effect.varies else values[-1]
    rows = panel.exposure * (panel.stop - panel.start) / 53
    assert_allclose(
        nodes.apply(np.ones((len(nodes.nodes), 1)))[nodes.n_cells :, 0] @ cells.number
        if effect.varies
        else nodes.apply(np.ones((len(nodes.nodes), 1)))[-1, 0],
        cells.rate * rows.sum(),
    )
    assert total > 0


@pytest.mark.parametrize("effect", [NONE, GAMMA])
@pytest.mark.parametrize("dense", [True, False])
def test_the_adjoint_is_the_transpose(panel, effect, dense, monkeypatch):
    monkeypatch.setattr("gp4c.model.cells._DENSE", 10**7 if dense else 0)
    cells = observe_cells(panel, None, panel.window, LAWS["poisson"], effect)
    nodes, rng = cells.on_nodes(7, 4), np.random.default_rng(0)
    x = rng.standard_normal((len(nodes.nodes), 1))
    y = rng.standard_normal((1, nodes.n_cells + nodes.n_parts))
    assert_allclose((y @ nodes.apply(x))[0, 0], (nodes.adjoint(y) @ x)[0, 0], rtol=1e-10)


@pytest.mark.parametrize("law", ["poisson", "bursts"])
@pytest.mark.parametrize("effect", [NONE, GAMMA])
def test_the_order_of_rows_does_not_matter(panel, law, effect):
    frame = panel.to_frame().sample(frac=1.0, random_state=3)
    shuffled = gp4c.PanelCounts.from_frame(frame, window=panel.window)
    first, second = (
        observe_cells(p, None, panel.window, LAWS[law], effect) for p in (panel, shuffled)
    )
    for name in ("start", "stop", "power", "row_cell", "number", "owner_power", "span_start"):
        assert_allclose(getattr(first, name), getattr(second, name))
    assert first.constant == pytest.approx(second.constant, rel=1e-14)


@pytest.mark.parametrize("law", ["poisson", "bursts"])
@pytest.mark.parametrize("effect", [NONE, GAMMA])
def test_pooling_changes_no_likelihood(panel, law, effect):
    """A constant rate: the pooled cells against the sum over single subjects."""
    from gp4c.posterior.subject_counts import SubjectCounts

    law = LAWS[law]
    cells = observe_cells(panel, None, panel.window, law, effect)
    nodes = cells.on_nodes(5, 4)
    linear = nodes.apply(np.full((len(nodes.nodes), 1), 1.3))
    params = np.array([0.3] * len(effect.parameters) + [0.8] * len(law.parameters))[:, None]
    cell, owner = linear[: nodes.n_cells], linear[nodes.n_cells :]
    row = cells.rows.factor[:, None] * cell[cells.row_cell]
    ours = CountLikelihood(cells, law, effect).value(cell, row, owner, params)
    single = SubjectCounts.of(panel, law, effect)
    rate = 1.3 * cells.rate / 53
    each = single.log_likelihoods(rate * (single.stop - single.start)[:, None], params)
    assert_allclose(ours[0], each.sum(), rtol=1e-10)


def test_exact_times_are_points_and_ties_are_one_point():
    import pandas as pd

    table = pd.DataFrame({"subject": [1, 1, 1, 2], "time": [2.0, 2.0, 5.0, 7.0]})
    events = gp4c.RecurrentEvents.from_frame(table, window=(0.0, 10.0))
    cells = observe_cells(None, events, events.window, LAWS["bursts"], NONE)
    assert cells.start.tolist() == cells.stop.tolist() == [0.2, 0.5, 0.7]
    assert cells.power.tolist() == [1.0, 1.0, 1.0]
    assert len(cells.weight) == 0  # a point has no extent, so no remainder depends on the mean
    assert cells.counts.tolist() == [1.0, 2.0]
    nodes = cells.on_nodes(4, 4)
    values = nodes.apply(curve(nodes.nodes)[:, None])[:, 0]
    assert_allclose(values[:3], curve(cells.start))
