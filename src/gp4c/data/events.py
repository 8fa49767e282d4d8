"""RecurrentEvents: the exact event times of each subject while it was observed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import few_digits, plural
from gp4c.data.ordering import label_array, label_order, row_order, sequence_order
from gp4c.data.subjects import FloatArray, IndexArray, LabelArray, SubjectData, take_rows

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.data.tables.assembly.histories import Visits
    from gp4c.data.tables.frames import IntoTable
    from gp4c.data.timeaxis import Moment, Window


class RecurrentEvents(SubjectData):
    """Event times of subjects, each observed on its own window ``(start, stop]``.

    Build one with :meth:`from_frame` or :func:`gp4c.simulate_panel`. It never changes; its arrays
    are read-only. Subjects are sorted by label and may have no events.

    Attributes
    ----------
    subjects : (n_subjects,) array
        Labels, sorted.
    subject_index : (n_events,) int array
        Position of each event's subject in ``subjects``.
    time : (n_events,) float array
        Sorted by subject, then time.
    start, stop : (n_subjects,) float arrays
        When each subject was observed.
    window : (float, float)
        Where the intensity is defined; subsets keep it.
    time_unit : str or None
    time_origin : Timestamp or None
        What time 0 stands for, if times were given as dates.
    notes : tuple of str
        What was noticed or decided while reading the data.
    """

    subject_index: IndexArray
    time: FloatArray
    start: FloatArray
    stop: FloatArray

    _builders = "RecurrentEvents.from_frame(table, subject=..., time=..., window=...)"

    @classmethod
    def from_frame(
        cls,
        data: IntoTable,
        *,
        subject: str = "subject",
        time: str = "time",
        window: Window | None = None,
        start: str | None = None,
        stop: str | None = None,
        subjects: Sequence[Hashable] = (),
        time_unit: str | None = None,
        origin: Moment | None = None,
        day_first: bool | None = None,
    ) -> Self:
        """Event histories from a table with one row per event.

        Parameters
        ----------
        data : dataframe (pandas, polars, pyarrow, ...) or dict of arrays
            A row without a time stands for a subject without events.
        subject, time : str
            Names of the columns. Times are numbers, dates, timestamps or durations.
        window : pair of times, or dict of such pairs by subject
            When subjects were observed: all of them, or each. Subjects of a dict without a row
            in the table have no events.
        start, stop : str, optional
            Instead of ``window``: columns with the subject's observation window.
        subjects : sequence of labels, optional
            Further subjects observed on the common window, without events.
        time_unit, origin, day_first
            As in :meth:`PanelCounts.from_frame`; time 0 of dates is the earliest start of a
            window, or the earliest event if windows are not dates.

        Returns
        -------
        RecurrentEvents
            Other columns become covariates if they are the same in all rows of a subject.

        Raises
        ------
        PanelDataError
            The table breaks a rule; the message names rule, value and row.

        Examples
        --------
        >>> import gp4c
        >>> log = {"subject": [1, 1, 2], "time": [2.0, 7.5, 4.0]}
        >>> gp4c.RecurrentEvents.from_frame(log, window=(0, 10))
        <RecurrentEvents: 2 subjects, 3 events, window (0, 10)>
        """
        from gp4c.data.tables.assembly.histories import fields_from_events
        from gp4c.data.tables.frames import table_of

        names = {"subject": subject, "time": time, "start": start, "stop": stop}
        fields = fields_from_events(
            table_of(data),
            names={role: name for role, name in names.items() if name is not None},
            window=window,
            subjects=subjects,
            time_unit=time_unit,
            origin=origin,
            day_first=day_first,
        )
        return cls._from_arrays(**fields)

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
        """Trusted constructor; ``start`` and ``stop`` are scalars or one per subject.

        ``covariates`` has one row per entry of ``subjects``, in that order; its index is ignored.
        """
        labels = label_array(subjects)
        order = label_order(labels)
        rank = np.empty(len(labels), dtype=np.intp)
        rank[order] = np.arange(len(labels))
        begin = np.broadcast_to(np.asarray(start, dtype=np.float64), labels.shape)[order]
        end = np.broadcast_to(np.asarray(stop, dtype=np.float64), labels.shape)[order]
        index = rank[np.asarray(subject_index, dtype=np.intp)]
        when = np.asarray(time, dtype=np.float64)
        rows = row_order(index, when)
        pick: Any = slice(None) if rows is None else rows
        low, high = (begin.min(), end.max()) if window is None else window
        if covariates is not None:
            covariates = covariates.iloc[order] if len(covariates.columns) else None
        self = cls.__new__(cls)
        self._fill(
            subjects=labels[order],
            subject_index=index[pick],
            time=when[pick],
            start=begin,
            stop=end,
            window=(float(low), float(high)),
            time_unit=time_unit,
            time_origin=time_origin,
            notes=tuple(notes),
            _covariates=covariates,
        )
        return self

    def _take(self, positions: IndexArray) -> Self:
        rows, new_index = take_rows(self.subject_index, positions)
        return self._like(
            subjects=self.subjects[positions],
            subject_index=new_index,
            time=self.time[rows],
            start=self.start[positions],
            stop=self.stop[positions],
            _covariates=None if self._covariates is None else self._covariates.iloc[positions],
        )

    @property
    def n_events(self) -> int:
        """Number of events of all subjects."""
        return len(self.time)

    def content_order(self) -> IndexArray:
        """Permutation of the subjects by their events and windows, whatever their labels.

        :meta private:
        """
        keys = [self.start, self.stop, *self._covariate_ranks()]
        return sequence_order(self.subject_index, self.n_subjects, [self.time], keys)

    def with_window(self, window: Window) -> Self:
        """Return the same data on another window, which must contain every subject's own.

        Examples
        --------
        >>> import gp4c
        >>> log = {"subject": [1, 1, 2], "time": [2.0, 7.5, 4.0]}
        >>> events = gp4c.RecurrentEvents.from_frame(log, window=(0, 10))
        >>> events.with_window((0, 12)).window
        (0.0, 12.0)
        """
        from gp4c.data.checks import check_window, within_rounding
        from gp4c.data.timeaxis import TimeAxis

        numbers = TimeAxis(self.time_unit, self.time_origin).window(window)
        start, stop = within_rounding(numbers, self.start, self.stop)
        return self._like(
            start=start,
            stop=stop,
            time=within_rounding(numbers, self.time, self.time)[1],
            window=check_window(numbers, float(start.min()), float(stop.max())),
        )

    def to_panel(self, visits: Visits) -> PanelCounts:
        """Count the events between visits: what a panel study would have seen.

        A subject's first interval starts where its observation does; what happens after its last
        visit stays unseen. An event at a visit belongs to the interval that ends there.

        Parameters
        ----------
        visits : array of times, dict of such arrays by subject, or dataframe (subject, time)
            Common visits outside a subject's observation window are skipped; a subject's own
            visits must lie in it.

        Returns
        -------
        PanelCounts
            On the same window; subjects without a visit are left out and noted.

        Examples
        --------
        >>> import gp4c
        >>> log = {"subject": [1, 1, 2], "time": [2.0, 7.5, 4.0]}
        >>> events = gp4c.RecurrentEvents.from_frame(log, window=(0, 10))
        >>> events.to_panel([5, 10]).count
        array([1, 1, 1, 0])
        """
        from gp4c.data.panel import PanelCounts
        from gp4c.data.tables.assembly.histories import fields_between_visits

        return PanelCounts._from_arrays(**fields_between_visits(self, visits))

    def to_frame(self) -> pd.DataFrame:
        """One row per event, and one without time per subject without events.

        ``RecurrentEvents.from_frame(frame, start="start", stop="stop")`` reads it back.

        Examples
        --------
        >>> import gp4c
        >>> log = {"subject": [1, 1, 2], "time": [2.0, 7.5, 4.0]}
        >>> events = gp4c.RecurrentEvents.from_frame(log, window=(0, 10))
        >>> events.to_frame()["time"].tolist()
        [2.0, 7.5, 4.0]
        """
        import pandas as pd

        silent = np.setdiff1d(np.arange(self.n_subjects), self.subject_index)
        index = np.concatenate([self.subject_index, silent])
        time = np.concatenate([self.time, np.full(len(silent), np.nan)])
        order = np.argsort(index, kind="stable")
        index, time = index[order], time[order]
        table = pd.DataFrame(
            {
                "subject": self.subjects[index],
                "time": time,
                "start": self.start[index],
                "stop": self.stop[index],
            }
        )
        covariates = self.covariates.iloc[index].reset_index(drop=True)
        return pd.concat([table, covariates], axis=1)

    def __repr__(self) -> str:
        low, high = (few_digits(t) for t in self.window)
        unit = f" {self.time_unit}" if self.time_unit else ""
        return (
            f"<RecurrentEvents: {plural(self.n_subjects, 'subject')}, "
            f"{plural(self.n_events, 'event')}, window ({low}, {high}){unit}>"
        )
