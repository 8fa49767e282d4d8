"""Integrals per subject: one dense matrix, or interval by interval, against numerical integrals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.integrate import quad

import gp4c.inference.variational.subject_integrals as subject_integrals
import gp4c.model.quadrature as quadrature
from gp4c.inference.variational.subject_integrals import SubjectIntegrals
from gp4c.model.quadrature import Grid, IntervalIntegrals
from tolerances import ROUNDING

START, STOP = np.array([0.0, 0.1, 0.45]), np.array([0.3, 0.9, 0.5])
#: two subjects: the first seen in the first and, twice, in the last interval
SEEN = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])


def maps(monkeypatch: pytest.MonkeyPatch, dense: bool) -> tuple[Grid, SubjectIntegrals]:
    monkeypatch.setattr(subject_integrals, "_DENSE", 10**6 if dense else 0)
    grid = Grid.on(np.linspace(0.0, 1.0, 6), 9)
    return grid, SubjectIntegrals(IntervalIntegrals(grid, START, STOP), sparse.csr_array(SEEN))


@pytest.mark.parametrize("dense", [True, False])
def test_integrals_of_each_subject(monkeypatch: pytest.MonkeyPatch, dense: bool) -> None:
    grid, subjects = maps(monkeypatch, dense)
    pieces = [
        quad(lambda x: np.exp(np.sin(3 * x)), a, b)[0] for a, b in zip(START, STOP, strict=True)
    ]
    found = subjects.apply(np.exp(np.sin(3 * grid.nodes)))
    assert_allclose(found, SEEN @ pieces, rtol=1e-9)


@pytest.mark.parametrize("dense", [True, False])
def test_the_transpose_is_the_adjoint(monkeypatch: pytest.MonkeyPatch, dense: bool) -> None:
    grid, subjects = maps(monkeypatch, dense)
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=len(grid.nodes)), rng.normal(size=2)
    assert_allclose(
        weights @ subjects.apply(values), subjects.transpose(weights) @ values, **ROUNDING
    )


def test_intervals_mapped_often_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 6), 9)
    values, weights = np.cos(grid.nodes), np.array([1.0, -2.0, 0.5])
    once, often = (IntervalIntegrals(grid, START, STOP, often) for often in (False, True))
    assert often._matrix is not None
    assert_allclose(often.apply(values), once.apply(values), **ROUNDING)
    assert_allclose(often.transpose(weights), once.transpose(weights), **ROUNDING)
    monkeypatch.setattr(quadrature, "_DENSE", 0)
    assert IntervalIntegrals(grid, START, STOP, often=True)._matrix is None
