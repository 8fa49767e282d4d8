"""PanelCounts: how many events each subject had in each interval between visits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import check_window, shown_number
from gp4c.data.distinct import DistinctIntervals, distinct_intervals
from gp4c.data.subjects import (
    FloatArray,
    IndexArray,
    IntArray,
    LabelArray,
    SubjectData,
    label_order,
    sequence_order,
    take_rows,
)

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd


class PanelCounts(SubjectData):
    r"""Counts of events in intervals :math:`(start, stop]`, several per subject.

    Build one with :meth:`from_frame`, :meth:`from_visits`, :func:`gp4c.read_panel`,
    :func:`gp4c.load_dataset` or :func:`gp4c.simulate_panel`. It never changes; its arrays are
    read-only. Rows are sorted by subject, then start, and subjects by label, so the order of
    the input does not matter. The count of a row is modelled as Poisson with mean
    :math:`exposure \int_{start}^{stop} \lambda(t)\,dt`.

    Attributes
    ----------
    subjects : (n_subjects,) array
        Labels, sorted.
    subject_index : (n_intervals,) int array
        Position of each row's subject in ``subjects``.
    start, stop : (n_intervals,) float arrays
        The half-open intervals.
    count : (n_intervals,) int array
    exposure : (n_intervals,) float array
        Units at risk in the interval, 1 unless given.
    window : (float, float)
        Where the intensity is defined; subsets keep it.
    time_unit : str or None
    time_origin : date or None
        What time 0 stands for, if times were given as dates.
    notes : tuple of str
        What was noticed or decided while reading the data.
    """

    subject_index: IndexArray
    start: FloatArray
    stop: FloatArray
    count: IntArray
    exposure: FloatArray
    _interval_covariates: pd.DataFrame | None
    _cached_distinct: DistinctIntervals

    def __init__(self) -> None:
        raise TypeError(
            "use PanelCounts.from_frame(table, subject=..., start=..., stop=..., count=...), "
            "PanelCounts.from_visits or gp4c.read_panel"
        )

    @classmethod
    def from_frame(
        cls,
        data: Any,
        *,
        subject: str = "subject",
        start: str = "start",
        stop: str = "stop",
        count: str = "count",
        exposure: str | None = None,
        window: tuple[float, float] | None = None,
        time_unit: str | None = None,
        origin: Any = None,
        missing: str = "error",
    ) -> Self:
        """Panel from a table with one row per subject and interval.

        Parameters
        ----------
        data : dataframe (pandas, polars, pyarrow, ...) or dict of arrays
        subject, start, stop, count : str
            Names of the columns. Times are numbers, dates or timestamps.
        exposure : str, optional
            Column of units at risk (or hours run per unit of time); 1 if absent.
        window : (float, float), optional
            Must contain every interval; default (smallest start, largest stop).
        time_unit : str, optional
            For axes and tables; the unit to convert to if times are dates (then "days").
        origin : date, optional
            What time 0 stands for if times are dates; default the earliest start.
        missing : {"error", "drop"}
            ``"drop"`` leaves out intervals without a count, as gaps.

        Returns
        -------
        PanelCounts
            All other columns become covariates.

        Raises
        ------
        PanelDataError
            The table breaks a rule; the message names rule, value and row.
        """
        from gp4c.data.build import panel_from_intervals
        from gp4c.data.frames import table_of

        return panel_from_intervals(
            cls,
            table_of(data),
            names={"subject": subject, "start": start, "stop": stop, "count": count},
            exposure=exposure,
            window=window,
            time_unit=time_unit,
            origin=origin,
            missing=missing,
        )

    @classmethod
    def _from_arrays(
        cls,
        subjects: LabelArray,
        subject_index: IndexArray,
        start: FloatArray,
        stop: FloatArray,
        count: IntArray,
        exposure: FloatArray | None = None,
        window: tuple[float, float] | None = None,
        time_unit: str | None = None,
        covariates: pd.DataFrame | None = None,
        interval_covariates: pd.DataFrame | None = None,
        time_origin: object = None,
        notes: Sequence[str] = (),
    ) -> Self:
        """Trusted constructor: arrays known to obey every rule, in any order of rows.

        ``covariates`` has one row per entry of ``subjects``, in that order; its index is ignored.
        """
        labels = np.asarray(subjects)
        index = np.asarray(subject_index, dtype=np.intp)
        begin = np.asarray(start, dtype=np.float64)
        by_label = label_order(labels)
        if not np.array_equal(by_label, np.arange(len(labels))):
            rank = np.empty(len(labels), dtype=np.intp)
            rank[by_label] = np.arange(len(labels))
            labels, index = labels[by_label], rank[index]
            covariates = None if covariates is None else covariates.iloc[by_label]
        rows = _row_order(index, begin)
        if interval_covariates is not None and rows is not None:
            interval_covariates = interval_covariates.iloc[rows]
        pick: Any = slice(None) if rows is None else rows
        end = np.asarray(stop, dtype=np.float64)[pick]
        if exposure is None:
            weight = np.broadcast_to(np.float64(1.0), end.shape)
        else:
            weight = np.asarray(exposure, dtype=np.float64)[pick]
        self = cls.__new__(cls)
        self._fill(
            subjects=labels,
            subject_index=index[pick],
            start=begin[pick],
            stop=end,
            count=np.asarray(count, dtype=np.int64)[pick],
            exposure=weight,
            window=(float(begin.min()), float(end.max()))
            if window is None
            else (float(window[0]), float(window[1])),
            time_unit=time_unit,
            time_origin=time_origin,
            notes=tuple(notes),
            _covariates=_indexed(covariates, labels),
            _interval_covariates=interval_covariates,
        )
        return self

    def _like(self, **changes: Any) -> Self:
        """Copy with some fields changed."""
        other = type(self).__new__(type(self))
        other._fill(**{**self.__getstate__(), **changes})
        return other

    def _take(self, positions: IndexArray) -> Self:
        rows, new_index = take_rows(self.subject_index, positions)
        between = self._interval_covariates
        return self._like(
            subjects=self.subjects[positions],
            subject_index=new_index,
            start=self.start[rows],
            stop=self.stop[rows],
            count=self.count[rows],
            exposure=self.exposure[rows],
            _covariates=None if self._covariates is None else self._covariates.iloc[positions],
            _interval_covariates=None if between is None else between.iloc[rows],
        )

    @property
    def n_intervals(self) -> int:
        """Number of rows."""
        return len(self.start)

    @property
    def n_events(self) -> int:
        """Sum of the counts."""
        return int(self.count.sum())

    @property
    def log_factorials(self) -> float:
        """Sum of ln m! over the rows: the constant that likelihoods here leave out."""
        from scipy.special import gammaln

        return float(gammaln(self.count + 1.0).sum())

    @property
    def interval_covariates(self) -> pd.DataFrame:
        """Columns that vary within a subject, one row per interval (a copy; may be empty)."""
        import pandas as pd

        if self._interval_covariates is None:
            return pd.DataFrame(index=pd.RangeIndex(self.n_intervals))
        return self._interval_covariates.reset_index(drop=True)

    def distinct(self) -> DistinctIntervals:
        """Each different interval once, with total count and exposure (computed once)."""
        if "_cached_distinct" not in self.__dict__:
            found = distinct_intervals(self.start, self.stop, self.count, self.exposure)
            object.__setattr__(self, "_cached_distinct", found)
        return self._cached_distinct

    def content_order(self) -> IndexArray:
        """Permutation of the subjects by their rows alone, whatever their labels."""
        columns = np.stack([self.start, self.stop, self.count.astype(float), self.exposure])
        _, code = np.unique(columns, axis=1, return_inverse=True)
        return sequence_order(self.subject_index, self.n_subjects, code.ravel())

    def with_window(self, window: tuple[float, float]) -> Self:
        """Return the same data on another window, which must contain every interval."""
        return self._like(
            window=check_window(window, float(self.start.min()), float(self.stop.max()))
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per subject and interval, with the covariates; :meth:`from_frame` reads it."""
        import pandas as pd

        table = pd.DataFrame(
            {
                "subject": self.subjects[self.subject_index],
                "start": self.start,
                "stop": self.stop,
                "count": self.count,
            }
        )
        if np.any(self.exposure != 1.0):
            table["exposure"] = self.exposure
        subject_level = self.covariates.iloc[self.subject_index].reset_index(drop=True)
        return pd.concat([table, subject_level, self.interval_covariates], axis=1)

    def __repr__(self) -> str:
        unit = f" {self.time_unit}" if self.time_unit else ""
        low, high = (shown_number(t) for t in self.window)
        return (
            f"<PanelCounts: {self.n_subjects} subjects, {self.n_intervals} intervals, "
            f"{self.n_events} events, window ({low}, {high}){unit}>"
        )


def _row_order(index: IndexArray, start: FloatArray) -> IndexArray | None:
    """Permutation to (subject, start) order, or None if the rows are in it already."""
    step = np.diff(index)
    if np.all((step > 0) | ((step == 0) & (np.diff(start) > 0))):
        return None
    return np.lexsort((start, index))


def _indexed(covariates: pd.DataFrame | None, labels: LabelArray) -> pd.DataFrame | None:
    """Covariates with the subjects as index; None if there is no column."""
    if covariates is None or not len(covariates.columns):
        return None
    import pandas as pd

    return covariates.set_axis(pd.Index(labels, name="subject"), axis=0)
