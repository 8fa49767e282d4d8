"""Polynomials in a subject's effect: covariances over it without its nodes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.model import effect_integral
from gp4c.model.effect_integral import RULE, EffectIntegral, EffectRows
from gp4c.model.laws import EFFECTS, LAWS


@pytest.fixture
def nodes():
    """Three subjects with few and many events, at two points."""
    count = np.array([90.0, 40.0, 7.0, 3.0, 2.0])
    rows = EffectRows(np.array([2.0, 2.0, 1.0]), count, np.array([0, 0, 1, 1, 2]))
    integral = EffectIntegral(rows, LAWS["bursts"], EFFECTS["gamma"])
    row = np.array([60.0, 50.0, 3.0, 2.0, 0.5])[:, None] * np.array([1.0, 1.3])
    owner = np.array([120.0, 6.0, 1.0])[:, None] * np.array([1.0, 1.3])
    return integral.at_nodes(row, owner, np.zeros((1, 2)), np.ones((1, 2)))


def deviations(values, weight):
    """Covariance over the nodes as it is written."""
    away = values - (weight * values).sum(axis=2, keepdims=True)
    return (weight * away * away).sum(axis=2)


def test_all_degrees_give_the_covariance_over_the_nodes(nodes, monkeypatch):
    monkeypatch.setattr(effect_integral, "_DEGREES", len(RULE.nodes) - 1)
    values = np.random.default_rng(0).standard_normal(nodes.y.shape)
    along = np.einsum("khcn,hcn->khc", nodes.polynomials, values)
    assert_allclose((along**2).sum(axis=0), deviations(values, nodes.weight), rtol=1e-9)


def test_four_degrees_are_enough_for_what_is_smooth(nodes):
    values = nodes.remainder.slope[[0, 2, 4]]  # one row of each subject
    along = np.einsum("khcn,hcn->khc", nodes.polynomials, values)
    assert_allclose((along**2).sum(axis=0), deviations(values, nodes.weight), rtol=1e-3)
    powers = np.array([nodes.y**k for k in range(3)])
    products = np.einsum("khcn,phcn->kphc", nodes.polynomials, powers)
    assert_allclose(products[2:, :2], 0.0, atol=1e-9)  # no lower power along a higher degree
    assert_allclose(products[3, 2], 0.0, atol=1e-8)
