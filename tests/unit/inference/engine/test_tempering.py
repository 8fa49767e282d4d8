"""The fall-back where f crosses zero: identities, moves that keep the posterior, small cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

import gp4c
from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.engine import tempering
from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.surrogate import Surrogate, _stretches
from gp4c.inference.engine.tempering import (
    POPULATION,
    _terrain,
    affordable_population,
    glide,
    needs_tempering,
    temper,
)
from gp4c.inference.engine.terrain import Draws, Product, Terrain
from gp4c.inference.engine.turns import turned_modes
from gp4c.inference.engine.weigh import weigh
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells


def task_of(panel, law="poisson", effect=None, z=None, n_inducing=None):
    laws = LAWS[law], EFFECTS[effect]
    cells = observe_cells(panel, None, panel.window, *laws, z)
    return Task(CountLikelihood(cells, *laws), KERNELS["se"], n_inducing)


@pytest.fixture(scope="module")
def small():
    """Three subjects: so few data that draws of the prior reach the posterior."""
    panel, _ = gp4c.simulate_panel(
        lambda t: 6 * np.cos(np.pi * t) ** 2, window=(0.0, 1.0), n_subjects=3, n_intervals=4,
        random_state=3,
    )  # fmt: skip
    return task_of(panel, n_inducing=8)


@pytest.fixture(scope="module")
def terrain(small):
    return Terrain.over(small, np.linspace(-2.2, -0.4, 7), np.arange(-4.5, 2.9, 0.4))


@pytest.fixture(scope="module")
def exact(terrain):
    """Draws of the posterior by brute force, from draws of the prior, and its log evidence."""
    rng = np.random.default_rng(0)
    draws = terrain.from_prior(60_000, rng)
    weights = np.exp(draws.value - draws.value.max())
    assert weights.sum() ** 2 / (weights**2).sum() > 500
    evidence = logsumexp(draws.value) - np.log(draws.size)
    grid = logsumexp(terrain.log_prior_row) + logsumexp(terrain.log_prior_column)
    chosen = draws.take(rng.choice(draws.size, 6000, p=weights / weights.sum()))
    return chosen, evidence + grid


def summaries(terrain, draws):
    """Means that every move must leave as they are, with their standard errors."""
    h = np.sqrt(terrain.rates_at_inputs(draws))
    all_of_it = np.array([*h, draws.row, draws.column, draws.x[terrain.size], draws.value])
    return all_of_it.mean(axis=1), all_of_it.std(axis=1) / np.sqrt(draws.size)


def test_products_of_thin_matrices_are_the_matrices(small):
    terrain = Terrain.over(replace(small, n_inducing=None), np.log([0.05, 0.3, 1.0]), np.zeros(1))
    rng = np.random.default_rng(5)
    row = rng.integers(0, len(terrain.landscapes), 40)
    values = rng.standard_normal((terrain.size, 40))
    thin = [Product.of(land.features) for land in terrain.landscapes]
    assert any(isinstance(one, Product) for one in thin)
    expected = [terrain.landscapes[i].features @ v for i, v in zip(row, values.T, strict=True)]
    np.testing.assert_allclose(terrain.by_row(thin, row, values), np.transpose(expected), atol=1e-7)
    back = terrain.by_row([one.T for one in thin], row, np.transpose(expected))
    expected_back = [
        terrain.landscapes[i].features.T @ h for i, h in zip(row, expected, strict=True)
    ]
    np.testing.assert_allclose(back, np.transpose(expected_back), atol=1e-6)


class TestSurrogate:
    beta = 0.7

    def test_joint_density_is_the_same_in_both_factorisations(self, terrain):
        """N(v) N(G | v) = p(G) N(η) |∂η/∂v|: nothing is lost by holding (G, η) fixed."""
        surrogate = Surrogate.of(terrain)
        draws = terrain.from_prior(40, np.random.default_rng(1))
        data = surrogate.imagine(draws, self.beta, np.random.default_rng(2))
        noise = np.random.default_rng(2).standard_normal(data.shape)
        mean, log_data = surrogate.seen(data, draws, self.beta)
        eta = surrogate.residual(draws, mean, self.beta)
        _, root = surrogate.widths(draws, self.beta)
        v = draws.x[: terrain.size]
        left = -0.5 * (v**2).sum(axis=0) - 0.5 * (noise**2).sum(axis=0)
        right = log_data - 0.5 * (eta**2).sum(axis=0) + np.log(root).sum(axis=0)
        np.testing.assert_allclose(left, right, rtol=1e-9)

    def test_values_invert_residuals_and_the_jacobian_is_the_widths(self, terrain):
        surrogate = Surrogate.of(terrain)
        draw = terrain.from_prior(1, np.random.default_rng(3))
        data = surrogate.imagine(draw, self.beta, np.random.default_rng(4))
        mean, _ = surrogate.seen(data, draw, self.beta)
        eta = surrogate.residual(draw, mean, self.beta)
        v = surrogate.values(eta, draw, mean, self.beta)
        np.testing.assert_allclose(v, draw.x[: terrain.size], atol=1e-10)
        step = 1e-5
        columns = [
            surrogate.values(eta + step * e[:, None], draw, mean, self.beta) - v
            for e in np.eye(terrain.size)
        ]
        jacobian = np.concatenate(columns, axis=1) / step
        _, root = surrogate.widths(draw, self.beta)
        assert np.linalg.slogdet(jacobian)[1] == pytest.approx(-np.log(root).sum(), abs=1e-6)

    def test_a_turn_goes_back_with_the_same_chance(self):
        """Where a turn ends depends on |G| alone."""
        data = np.random.default_rng(0).standard_normal((9, 500)) * 3
        sign = _stretches(np.abs(data), np.random.default_rng(5))
        again = _stretches(np.abs(sign * data), np.random.default_rng(5))
        np.testing.assert_array_equal(sign, again)
        assert set(np.unique(sign)) == {-1.0, 1.0}


class TestSlopes:
    @pytest.mark.parametrize(
        ("law", "effect"), [("poisson", None), ("poisson", "gamma"), ("bursts", "gamma")]
    )
    def test_gradient_agrees_with_differences(self, law, effect):
        panel, _ = gp4c.simulate_panel("square_wave", n_subjects=6, random_state=0)
        z = np.random.default_rng(0).standard_normal((6, 2))[panel.subject_index]
        task = task_of(panel, law, effect, z, n_inducing=9)
        terrain = Terrain.over(task, np.array([-1.6, -1.3]), np.array([-0.5, 0.0]))
        draws = terrain.from_prior(3, np.random.default_rng(1))
        value, gradient = terrain.slopes(draws.row, draws.column, draws.x)
        coarse = effect is not None and law == "bursts"  # a rougher rule for effects
        np.testing.assert_allclose(value, draws.value, rtol=1e-3 if coarse else 1e-10)
        step = 1e-5
        for i in range(len(draws.x)):
            moved = [draws.x.copy(), draws.x.copy()]
            moved[0][i] += step
            moved[1][i] -= step
            up, down = (terrain.evaluated(draws.row, draws.column, x).value for x in moved)
            scale = np.abs(gradient).max()
            np.testing.assert_allclose(
                gradient[i], (up - down) / (2 * step), rtol=2e-2 if coarse else 1e-5,
                atol=(2e-2 if coarse else 1e-6) * scale,
            )  # fmt: skip


class TestMoves:
    """Every move leaves the posterior as it is."""

    def moved(self, terrain, draws, name):
        surrogate, rng = Surrogate.of(terrain), np.random.default_rng(7)
        accepted = []
        for _ in range(12):
            if name == "glide":
                draws, share = glide(surrogate, draws, 1.0, 0.4, 4, rng)
            elif name == "shift":
                draws, share = surrogate.shift(draws, 1.0, rng, np.zeros(len(terrain.landscapes)))
            else:
                draws, share = surrogate.turn(draws, 1.0, rng)
            accepted.append(share)
        assert np.mean(accepted) > 0.05
        return draws

    @pytest.mark.parametrize("name", ["glide", "shift", "turn"])
    def test_posterior_stays(self, terrain, exact, name):
        before, error = summaries(terrain, exact[0])
        after, _ = summaries(terrain, self.moved(terrain, exact[0], name))
        np.testing.assert_array_less(np.abs(after - before), 6 * error)

    def test_values_stay_with_their_draws(self, terrain, exact):
        draws = self.moved(terrain, exact[0].take(np.arange(300)), "turn")
        again = terrain.evaluated(draws.row, draws.column, draws.x)
        np.testing.assert_allclose(draws.value, again.value, rtol=1e-10)


class TestTemper:
    def test_agrees_with_brute_force(self, small, terrain, exact, monkeypatch):
        from gp4c.inference.engine import tempering

        monkeypatch.setattr(tempering, "_terrain", lambda source: terrain)
        found = temper(small, 3000, np.random.default_rng(1))
        assert found.log_evidence == pytest.approx(exact[1], abs=0.15)
        mean, error = summaries(terrain, exact[0])
        x = np.concatenate([sheaf.x for sheaf in found.sheaves], axis=1)
        places = [(sheaf.point.i, sheaf.point.j, sheaf.x.shape[1]) for sheaf in found.sheaves]
        row, column = (np.repeat([p[k] for p in places], [p[2] for p in places]) for k in (0, 1))
        value = np.concatenate([sheaf.target for sheaf in found.sheaves])
        ours, _ = summaries(terrain, Draws(row, column, x, value))
        np.testing.assert_array_less(np.abs(ours - mean), 8 * error)
        assert 300 < found.effective <= found.size
        assert found.weights.sum() == pytest.approx(1.0)

    def test_finds_what_the_weights_miss(self):
        """Thiotepa with frailty and without bursts: most of the mass is at other patterns."""
        panel = gp4c.load_dataset("bladder").where(group="A")
        lattice = find_modes(task_of(panel, "poisson", "gamma"))
        weighted = weigh(lattice, 2000, np.random.default_rng(0))
        assert turned_modes(lattice.best.mode)
        assert needs_tempering(weighted, turned=True)
        assert weighted.pareto_k > 0.7
        found = temper(lattice, 1000, np.random.default_rng(0), population=300)
        assert found.log_evidence > weighted.log_evidence
        # 12,000 draws in three long runs: -157.7, -157.9, -158.2
        assert found.log_evidence == pytest.approx(-158.0, abs=3.0)

    def test_has_a_budget_and_says_when_it_is_too_small(self, monkeypatch):
        panel = gp4c.load_dataset("bladder").where(group="A")
        work = _terrain(task_of(panel)).work
        lattice = find_modes(task_of(panel))
        assert affordable_population(lattice) <= POPULATION
        monkeypatch.setattr(tempering, "_BUDGET", 300 * work)
        assert 250 <= affordable_population(lattice) <= 500
        monkeypatch.setattr(tempering, "_BUDGET", 10 * work)
        assert affordable_population(lattice) == 0
        with pytest.warns(ConvergenceWarning, match="Pareto k is|may touch zero"):
            model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        assert not model.converged_

    def test_is_not_needed_where_the_curve_stays_away_from_zero(self):
        panel, _ = gp4c.simulate_panel("square_wave", random_state=1)
        lattice = find_modes(task_of(panel))
        weighted = weigh(lattice, 4000, np.random.default_rng(0))
        assert not needs_tempering(weighted, bool(turned_modes(lattice.best.mode)))

    def test_a_task_will_do_where_no_mode_was_found(self, small):
        found = temper(replace(small, n_inducing=6), 50, np.random.default_rng(0), population=60)
        assert np.isfinite(found.log_evidence)
        assert found.size >= 50
