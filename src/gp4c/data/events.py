"""RecurrentEvents: the exact event times of each subject while it was observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.subjects import (
    FloatArray,
    IndexArray,
    LabelArray,
    SubjectData,
    label_order,
    sequence_order,
    take_rows,
)

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd


class RecurrentEvents(SubjectData):
    """Event times of subjects, each observed on its own window ``(start, stop]``.

    Attributes
    ----------
    subjects : (n_subjects,) array
    subject_index : (n_events,) int array
    time : (n_events,) float array
        Sorted by subject, then time.
    start, stop : (n_subjects,) float arrays
    window : (float, float)
    time_unit : str or None
    """

    subject_index: IndexArray
    time: FloatArray
    start: FloatArray
    stop: FloatArray

    @classmethod
    def _from_arrays(
        cls,
        subjects: LabelArray,
        subject_index: IndexArray,
        time: FloatArray,
        start: FloatArray,
        stop: FloatArray,
        window: tuple[float, float] | None = None,
        time_unit: str | None = None,
        covariates: pd.DataFrame | None = None,
        time_origin: object = None,
        notes: Sequence[str] = (),
    ) -> Self:
        """Trusted constructor; ``start`` and ``stop`` are scalars or one per subject."""
        from gp4c.data.panel import _indexed

        labels = np.asarray(subjects)
        order = label_order(labels)
        rank = np.empty(len(labels), dtype=np.intp)
        rank[order] = np.arange(len(labels))
        begin = np.broadcast_to(np.asarray(start, dtype=np.float64), labels.shape)[order]
        end = np.broadcast_to(np.asarray(stop, dtype=np.float64), labels.shape)[order]
        index = rank[np.asarray(subject_index, dtype=np.intp)]
        when = np.asarray(time, dtype=np.float64)
        rows = np.lexsort((when, index))
        labels = labels[order]
        self = cls.__new__(cls)
        self._fill(
            subjects=labels,
            subject_index=index[rows],
            time=when[rows],
            start=begin,
            stop=end,
            window=(float(begin.min()), float(end.max()))
            if window is None
            else (float(window[0]), float(window[1])),
            time_unit=time_unit,
            time_origin=time_origin,
            notes=tuple(notes),
            _covariates=_indexed(None if covariates is None else covariates.iloc[order], labels),
        )
        return self

    def _take(self, positions: IndexArray) -> Self:
        rows, new_index = take_rows(self.subject_index, positions)
        other = type(self).__new__(type(self))
        changes: dict[str, Any] = dict(
            subjects=self.subjects[positions],
            subject_index=new_index,
            time=self.time[rows],
            start=self.start[positions],
            stop=self.stop[positions],
            _covariates=None if self._covariates is None else self._covariates.iloc[positions],
        )
        other._fill(**{**self.__getstate__(), **changes})
        return other

    @property
    def n_events(self) -> int:
        """Number of events of all subjects."""
        return len(self.time)

    def content_order(self) -> IndexArray:
        """Permutation of the subjects by their events and windows, whatever their labels."""
        _, code = np.unique(self.time, return_inverse=True)
        return sequence_order(
            self.subject_index, self.n_subjects, code.ravel(), (self.start, self.stop)
        )
