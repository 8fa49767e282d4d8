"""Integrals over all that was seen of each subject, of functions given at the nodes of a grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.quadrature import IntervalIntegrals
from gp4c.model.table_integrals import TableIntegrals

Floats = NDArray[np.float64]

#: most numbers of the map as one dense matrix, which is several times faster when it is small,
#: and of what it is made from
_DENSE, _ON_THE_WAY = 300_000, 3_000_000


class SubjectIntegrals:
    """The linear map from values at grid nodes to weighted integrals per subject.

    Parameters
    ----------
    integrals : IntervalIntegrals or TableIntegrals
        Over the different intervals.
    by_subject : (K, J) sparse
        How often each subject was seen in each interval.
    """

    def __init__(self, integrals: IntervalIntegrals | TableIntegrals, by_subject: sparse.csr_array):
        self._integrals, self._by_subject = integrals, by_subject
        self._by_interval = by_subject.T
        self._matrix: Floats | None = None
        n_nodes = len(integrals.grid.nodes)
        n_subjects, n_intervals = by_subject.shape
        if n_subjects * n_nodes <= _DENSE and n_intervals * n_nodes <= _ON_THE_WAY:
            self._matrix = np.asarray(by_subject @ integrals.apply(np.eye(n_nodes)))

    def apply(self, values: Floats) -> Floats:
        """Integrals per subject of functions given at the nodes, (Q,) or (Q, S)."""
        if self._matrix is not None:
            return np.asarray(self._matrix @ values)
        return np.asarray(self._by_subject @ self._integrals.apply(values))

    def transpose(self, coefficients: Floats) -> Floats:
        """Weights at the nodes of Σ_k coefficients[k] · (integral of subject k)."""
        if self._matrix is not None:
            return np.asarray(coefficients @ self._matrix)
        return self._integrals.transpose(self._by_interval @ coefficients)
