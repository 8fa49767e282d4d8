"""PanelCounts: how many events each subject had in each interval between visits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.distinct import DistinctIntervals, distinct_intervals
from gp4c.data.ordering import label_array, label_order, row_order, sequence_order
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, LabelArray, SubjectData, take_rows
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from gp4c.data.summaries.panel_summary import PanelSummary
    from gp4c.data.summaries.table import Table as PublishedTable
    from gp4c.data.tables.assembly.build_panel import PanelFields
    from gp4c.data.tables.frames import IntoTable, Table
    from gp4c.data.tables.service import ServiceRecord
    from gp4c.data.timeaxis import Moment, Window


class PanelCounts(SubjectData):
    r"""Counts of events in intervals :math:`(start, stop]`, several per subject.

    Build one with :meth:`from_frame`, :meth:`from_visits`, :func:`gp4c.read_panel`,
    :func:`gp4c.load_dataset` or :func:`gp4c.simulate_panel`. It never changes; its arrays are
    read-only. Rows are sorted by subject, then start, and subjects by label, so the order of
    the input does not matter. The count of a row is modelled as Poisson with mean
    :math:`exposure \int_{start}^{stop} \lambda(t)\,dt`. Gaps between a subject's intervals, late
    entry and zero counts are all data and keep their meaning.

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
        Units at risk in the interval, 1 unless given; usage per unit of time if the panel was
        read with a column of usage.
    usage : str or None
        What rates are counted per, if that is not time: the name of the column of usage.
    end : (n_subjects,) float array
        When each subject went out of service; NaN while it is in service.
    window : (float, float)
        Where the intensity is defined; subsets keep it.
    time_unit : str or None
    time_origin : Timestamp or None
        What time 0 stands for, if times were given as dates.
    notes : tuple of str
        What was noticed or decided while reading the data.
    event_types : tuple of str
        Types of events, if the panel has several; empty otherwise.
    """

    subject_index: IndexArray
    start: FloatArray
    stop: FloatArray
    count: IntArray
    exposure: FloatArray
    #: names of the types of events, if there are several (:mod:`gp4c.data.types.typed_panel`)
    event_types: tuple[str, ...] = ()
    _interval_covariates: pd.DataFrame | None
    _cached_distinct: DistinctIntervals

    _builders = (
        "PanelCounts.from_frame(table, subject=..., start=..., stop=..., count=...), "
        "PanelCounts.from_visits or gp4c.read_panel"
    )

    @classmethod
    def from_frame(
        cls,
        data: IntoTable,
        *,
        subject: str = "subject",
        start: str = "start",
        stop: str = "stop",
        count: str | Sequence[str] = "count",
        event: str | None = None,
        exposure: str | None = None,
        usage: str | None = None,
        end: str | None = None,
        clock: str = "time",
        window: Window | None = None,
        time_unit: str | None = None,
        origin: Moment | None = None,
        missing: str = "error",
        day_first: bool | None = None,
    ) -> PanelCounts:
        """Panel from a table with one row per subject and interval.

        Parameters
        ----------
        data : dataframe (pandas, polars, pyarrow, ...) or dict of arrays
        subject, start, stop, count : str
            Names of the columns. Times are numbers, dates, timestamps or durations. Several
            columns of counts are several types of events: ``count=["basal", "squamous"]``.
        event : str, optional
            Column of types of events, if each row counts one of several types. A panel with types
            is a :class:`~gp4c.data.types.typed_panel.TypedPanel`.
        exposure : str, optional
            Column of units at risk during the interval (times its length); 1 if absent.
        usage : str, optional
            Column of the amount of use *in* the interval (hours run, kilometres), in place of
            `exposure`: rates are per unit of usage.
        end : str, optional
            Column of the times when subjects went out of service (empty while in service), or of
            yes and no (yes: at the last visit).
        clock : {"time", "usage"}
            "usage": each subject's time is its usage so far.
        window : pair of times, optional
            Must contain every interval; default (smallest start, largest stop).
        time_unit : str, optional
            For axes and tables; the unit to convert to if times are dates (then "days").
        origin : date, optional
            What time 0 stands for if times are dates; default the earliest start.
        missing : {"error", "drop"}
            ``"drop"`` leaves out intervals without a count, as gaps, and notes how many; an
            interval may then lack some of several types.
        day_first : bool, optional
            Order of day and month in dates such as 1/2/2024; by default all rows together must
            tell, and a table in which none tells is refused.

        Returns
        -------
        PanelCounts
            All other columns become covariates: of the subject if they are the same in all its
            rows, else of the interval.

        Raises
        ------
        PanelDataError
            The table breaks a rule; the message names rule, value and row.

        Examples
        --------
        >>> import gp4c
        >>> rows = {"subject": [1, 1, 2], "start": [0, 3, 0], "stop": [3, 9, 6], "count": [2, 0, 1]}
        >>> gp4c.PanelCounts.from_frame(rows)
        <PanelCounts: 2 subjects, 3 intervals, 3 events, window (0, 9)>
        """
        from gp4c.data.tables.assembly.build_panel import fields_from_intervals
        from gp4c.data.tables.frames import table_of

        def build(table: Table, names: dict[str, str]) -> PanelFields:
            return fields_from_intervals(
                table, names=names, exposure=exposure, usage=usage, end=end, clock=clock,
                window=window, time_unit=time_unit, origin=origin, missing=missing,
                day_first=day_first,
            )  # fmt: skip

        names = {"subject": subject, "start": start, "stop": stop}
        return cls._of_table(table_of(data), names, count, event, missing, build)

    @classmethod
    def from_visits(
        cls,
        data: IntoTable,
        *,
        subject: str = "subject",
        time: str = "time",
        count: str | Sequence[str] = "count",
        event: str | None = None,
        origin: Moment | None = 0.0,
        cumulative: bool = False,
        since_entry: bool = False,
        exposure: str | None = None,
        usage: str | None = None,
        end: str | None = None,
        clock: str = "time",
        window: Window | None = None,
        time_unit: str | None = None,
        missing: str = "error",
        sort: bool = True,
        day_first: bool | None = None,
    ) -> PanelCounts:
        """Panel from a table with one row per subject and visit.

        Parameters
        ----------
        data : dataframe (pandas, polars, pyarrow, ...) or dict of arrays
        subject, time, count : str
            Names of the columns; ``count`` has the events since the subject's last visit, or
            names one column per type of event.
        event : str, optional
            Column of types of events, as in :meth:`from_frame`.
        origin : number, date, column name or None
            Where a subject's first interval starts. A visit at the origin itself, with count 0,
            closes no interval. None, and the default where times are dates: at the subject's first
            visit, which then must have count 0.
        cumulative : bool
            Counts are totals so far.
        since_entry : bool
            Count time from each subject's entry: the origin, or its first visit.
        exposure : str, optional
            Column of units at risk since the last visit.
        usage, end, clock, window, time_unit, day_first
            As in :meth:`from_frame`.
        missing : {"error", "drop"}
            ``"drop"``: a visit without a count leaves a gap; without a total (``cumulative``) it
            is ignored, so that its interval joins the next.
        sort : bool
            Visits may come in any order. False: visit times that do not increase within a subject
            are taken for a mistake in the data.

        Returns
        -------
        PanelCounts

        Examples
        --------
        >>> import gp4c
        >>> visits = {"subject": [1, 1, 2], "time": [3, 9, 6], "count": [2, 0, 1]}
        >>> gp4c.PanelCounts.from_visits(visits, origin=0)
        <PanelCounts: 2 subjects, 3 intervals, 3 events, window (0, 9)>
        """
        from gp4c.data.tables.assembly.visits import fields_from_visits
        from gp4c.data.tables.frames import table_of

        def build(table: Table, names: dict[str, str]) -> PanelFields:
            return fields_from_visits(
                table, names=names, exposure=exposure, usage=usage, end=end, clock=clock,
                origin=origin, cumulative=cumulative, since_entry=since_entry, sort=sort,
                window=window, time_unit=time_unit, missing=missing, day_first=day_first,
            )  # fmt: skip

        names = {"subject": subject, "time": time}
        return cls._of_table(table_of(data), names, count, event, missing, build)

    @classmethod
    def _of_table(
        cls,
        table: Table,
        names: dict[str, str],
        count: str | Sequence[str],
        event: str | None,
        missing: str,
        build: Callable[[Table, dict[str, str]], PanelFields],
    ) -> PanelCounts:
        """One panel of a table, or one with a panel per type of event."""
        if event is None and isinstance(count, str):
            return cls._from_arrays(**build(table, {**names, "count": count}))
        from gp4c.data.types.typed_tables import typed_panel

        return typed_panel(table, names, count, event, missing, build)

    @classmethod
    def concat(cls, panels: Iterable[PanelCounts]) -> PanelCounts:
        """Join panels; intervals of subjects with the same label are put together.

        They must have the same time unit and origin; the window contains all windows.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> arms = [panel.where(treatment=arm) for arm in ("placebo", "thiotepa")]
        >>> gp4c.PanelCounts.concat(arms) == panel
        True
        """
        from gp4c.data.summaries.panel_summary import joined_rows
        from gp4c.data.tables.service import with_entries

        parts = list(panels)
        if any(part.event_types for part in parts):
            from gp4c.data.types.typed_panel import joined_types

            return joined_types(parts)
        frame, same = joined_rows(parts)
        exposure, usage, end = (r if r in frame else None for r in ("exposure", "usage", "end"))
        joined = cls.from_frame(frame, exposure=exposure, usage=usage, end=end)
        service = joined.service
        if service is not None:
            service = replace(service, usage=parts[0].usage)
        return joined._like(**same, service=with_entries(service, joined.subjects, parts))

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
        service: ServiceRecord | None = None,
    ) -> Self:
        """Trusted constructor: arrays known to obey every rule, in any order of rows.

        ``covariates`` and ``service`` are in the order of ``subjects``; an index is ignored.
        """
        labels = label_array(subjects)
        index = np.asarray(subject_index, dtype=np.intp)
        begin = np.asarray(start, dtype=np.float64)
        by_label = label_order(labels)
        if np.any(by_label[1:] < by_label[:-1]):
            rank = np.empty(len(labels), dtype=np.intp)
            rank[by_label] = np.arange(len(labels))
            labels, index = labels[by_label], rank[index]
            covariates = None if covariates is None else covariates.iloc[by_label]
            service = None if service is None else service.take(by_label)
        rows = row_order(index, begin)
        pick: Any = slice(None) if rows is None else rows
        end = np.asarray(stop, dtype=np.float64)[pick]
        weight = np.ones(len(end)) if exposure is None else np.asarray(exposure, np.float64)[pick]
        low, high = (begin.min(), end.max()) if window is None else window
        self = cls.__new__(cls)
        self._fill(
            subjects=labels,
            subject_index=index[pick],
            start=begin[pick],
            stop=end,
            count=np.asarray(count, dtype=np.int64)[pick],
            exposure=weight,
            window=(float(low), float(high)),
            time_unit=time_unit,
            time_origin=time_origin,
            notes=tuple(notes),
            service=service,
            _covariates=_some_columns(covariates),
            _interval_covariates=_some_columns(
                None if interval_covariates is None else interval_covariates.iloc[pick]
            ),
        )
        return self

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
            service=None if self.service is None else self.service.take(positions),
            _covariates=None if self._covariates is None else self._covariates.iloc[positions],
            _interval_covariates=None if between is None else between.iloc[rows],
        )

    def of_type(self, event: str) -> PanelCounts:
        """The panel of one type of event, of a panel that has types.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> panel.of_type("basal").n_events
        398
        """
        raise PanelDataError(
            f"this panel has no event types, so none is {event!r}: name their column with event=, "
            "or one column of counts for each, when you read the table"
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

    def _no_covariate(self, name: str, hint: str) -> str:
        if self._interval_covariates is not None and name in self._interval_covariates:
            return f"{name!r} varies within subjects, so it cannot select them; {hint}"
        return super()._no_covariate(name, hint)

    def distinct(self) -> DistinctIntervals:
        """Each different interval once, with total count and exposure (computed once).

        Returns
        -------
        DistinctIntervals
            ``start``, ``stop``, ``count``, ``exposure`` sorted by (start, stop), and ``inverse``,
            the distinct interval of each row. End points are compared exactly.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> len(panel.distinct().start)
        270
        """
        if "_cached_distinct" not in self.__dict__:
            found = distinct_intervals(self.start, self.stop, self.count, self.exposure)
            object.__setattr__(self, "_cached_distinct", found)
        return self._cached_distinct

    def content_order(self) -> IndexArray:
        """Permutation of the subjects by what their rows hold, whatever their labels.

        Subjects are ordered by the number of their intervals, then by their sequences of
        intervals, counts and exposures, then by their covariates. Random splits draw on this
        order, so that neither relabelling nor the order of the input changes an answer.

        :meta private:
        """
        row_keys = [self.distinct().inverse, self.count, self.exposure]
        return sequence_order(
            self.subject_index, self.n_subjects, row_keys, self._covariate_ranks()
        )

    def with_window(self, window: Window) -> Self:
        """Return the same data on another window, which must contain every interval.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> panel.with_window((0, 60)).window
        (0.0, 60.0)
        """
        from gp4c.data.checks import resolving_window, within_rounding
        from gp4c.data.timeaxis import TimeAxis

        times = TimeAxis(self.time_unit, self.time_origin).window(window)
        start, stop = within_rounding(times, self.start, self.stop)
        return self._like(start=start, stop=stop, window=resolving_window(times, start, stop))

    def summary(self) -> PanelSummary:
        """Count what there is: prints as a table, ``to_frame()`` gives it as one.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> panel.summary()["subjects"]
        85
        """
        from gp4c.data.summaries.panel_summary import summarise

        return summarise(self)

    def table(self, by: str | None = None, *, reference: Hashable | None = None) -> PublishedTable:
        """Subjects, follow-up, visits, events, rates and covariates by group.

        Prints as the first table of a report; ``to_frame()`` gives its numbers, and
        ``save("table1.docx")`` writes it for Word, LaTeX, HTML, Markdown or CSV.

        Parameters
        ----------
        by : str, optional
            Covariate of the subjects that makes the groups; everybody if absent.
        reference : level of `by`, optional
            The group that stands first; the first in natural order if absent.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.load_dataset("bladder").table(by="treatment").rows[5]
        ('events', '283', '119', '402')
        """
        from gp4c.data.summaries.panel_table import tabulate

        return tabulate(self, by, reference)

    def to_frame(self) -> pd.DataFrame:
        """One row per subject and interval, with the covariates; :meth:`from_frame` reads it.

        There is a column ``exposure`` only if some exposure is not 1, or ``usage`` in its place if
        the panel was read with one, and ``end`` only if some subject is out of service.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> list(panel.to_frame().columns[:4])
        ['subject', 'start', 'stop', 'count']
        """
        from gp4c.data.summaries.panel_summary import panel_rows

        return panel_rows(self)

    def __repr__(self) -> str:
        from gp4c.data.summaries.panel_summary import panel_line

        return panel_line(self)

    def _repr_html_(self) -> str:
        from gp4c.data.summaries.panel_summary import panel_html

        return panel_html(self)


def _some_columns(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    """Drop a frame without columns."""
    return None if frame is None or not len(frame.columns) else frame
