"""Jacobians of rows: summed by subject, and multiplied with themselves, as written out in full."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.inference.engine.terms import point_terms
from gp4c.inference.engine.terms.point_terms import RowJacobian

N_CELLS, N_ROWS, N_SUBJECTS, N_SETS = 7, 40, 9, 3


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return RowJacobian(
        rng.normal(size=(N_CELLS, 5)),
        rng.integers(N_CELLS, size=N_ROWS),
        rng.gamma(2.0, size=N_ROWS),
    )


@pytest.mark.parametrize("most_dense", [0, 10**6])
def test_sums_by_subject_are_those_of_the_lines(rows, monkeypatch, most_dense):
    monkeypatch.setattr(point_terms, "_DENSE", most_dense)
    rng = np.random.default_rng(1)
    weights, subject = rng.normal(size=(N_ROWS, N_SETS)), rng.integers(N_SUBJECTS, size=N_ROWS)
    expected = np.zeros((N_SETS, N_SUBJECTS, 5))
    for n in range(N_SETS):
        for j in range(N_ROWS):
            line = rows.factor[j] * rows.base[rows.place[j]]
            expected[n, subject[j]] += weights[j, n] * line
    assert_allclose(rows.sums(weights, subject, N_SUBJECTS), expected, atol=1e-12)


@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])  # 0: weights of both signs
def test_products_agree_with_the_whole_jacobian(rows, sign):
    weight = np.random.default_rng(2).normal(size=N_ROWS)
    weight = sign * np.abs(weight) if sign else weight
    lines = rows.whole()
    assert_allclose(rows.weighted(weight), lines.T @ np.diag(weight) @ lines, atol=1e-12)
    assert_allclose(rows.sum(weight), weight @ lines, atol=1e-12)


def test_no_rows_add_nothing():
    none = RowJacobian(np.ones((2, 3)), np.zeros(0, dtype=np.intp), np.zeros(0))
    assert_allclose(none.weighted(np.zeros(0)), np.zeros((3, 3)))
