"""TypedPanel: panel counts of several types of events in the same subjects."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gp4c.data.checks import plural, shown_interval, unknown_name
from gp4c.data.ordering import label_array, label_order, sequence_order
from gp4c.data.panel import PanelCounts
from gp4c.data.subjects import IndexArray, LabelArray
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from gp4c.data.summaries.panel_summary import PanelSummary
    from gp4c.data.summaries.table import Table
    from gp4c.data.timeaxis import Window

#: what a panel has one of per type: asking for it without a type would be a silent sum
_PER_TYPE = ("subject_index", "start", "stop", "count", "exposure")


class TypedPanel(PanelCounts):
    """Counts of several types of events: one panel per type, with subjects in common.

    ``PanelCounts.from_frame(..., event="kind")`` and ``count=["basal", "squamous"]`` build one.
    Subsets are by subject and keep the types. Rows belong to a type: ask :meth:`of_type` or
    :meth:`total` for a plain panel; anything that needs plain counts says so.

    Attributes
    ----------
    event_types : tuple of str
        Names of the types, in order.
    parts : tuple of PanelCounts
        The panel of each type. A subject without a count of a type is absent from its panel.
    place : (n_types, n_subjects) array
        Position of each subject in each panel, -1 where it is absent.
    """

    event_types: tuple[str, ...]
    parts: tuple[PanelCounts, ...]
    place: IndexArray

    @classmethod
    def of(cls, panels: Mapping[str, PanelCounts], notes: Sequence[str] = ()) -> TypedPanel:
        """Panels by type, which agree in window, unit and origin; each label occurs once.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> TypedPanel = type(panel)
        >>> parts = {name: panel.of_type(name) for name in panel.event_types}
        >>> TypedPanel.of(parts) == panel
        True
        """
        parts = tuple(panels.values())
        labels = _all_labels(parts)
        position = {label: k for k, label in enumerate(labels.tolist())}
        place = np.full((len(parts), len(labels)), -1, dtype=np.intp)
        for row, part in zip(place, parts, strict=True):
            row[[position[label] for label in part.subjects.tolist()]] = np.arange(len(part))
        first = parts[0]
        frame, said = _common_covariates(parts, place)
        whole = (place[0] >= 0).all()
        self = cls.__new__(cls)
        self._fill(
            subjects=labels,
            window=first.window,
            time_unit=first.time_unit,
            time_origin=first.time_origin,
            notes=(*notes, *said),
            service=first.service.take(place[0]) if whole and first.service else None,
            event_types=tuple(panels),
            parts=parts,
            place=place,
            _covariates=frame,
            _interval_covariates=None,
        )
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name in _PER_TYPE:
            raise PanelDataError(self._which_type())
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _which_type(self) -> str:
        types = ", ".join(repr(name) for name in self.event_types)
        return (
            f"this panel has counts of the types {types}, and this needs one count per interval: "
            f"take one type with panel.of_type({self.event_types[0]!r}), or all events together "
            "with panel.total()"
        )

    def of_type(self, event: str) -> PanelCounts:
        """The panel of one type.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> panel.of_type("basal").n_events
        398
        """
        if event not in self.event_types:
            raise PanelDataError(
                f"there is no event type {event!r}; {unknown_name(event, self.event_types)}"
            )
        return self.parts[self.event_types.index(event)]

    def total(self) -> PanelCounts:
        """All events together, whatever their type, in the intervals that every type has.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> panel.total().n_events
        596
        """
        differ = differing_interval(self)
        if differ is not None:
            raise PanelDataError(
                f"events of different types can be added only where all were counted: {differ}"
            )
        first = self.parts[0]
        return first._like(count=np.sum([part.count for part in self.parts], axis=0))

    # -- subsets -----------------------------------------------------------------------------

    def _take(self, positions: IndexArray) -> Self:
        chosen = self.place[:, positions]
        kept = [e for e in range(len(chosen)) if (chosen[e] >= 0).any()]
        place = np.full((len(kept), len(positions)), -1, dtype=np.intp)
        for row, e in zip(place, kept, strict=True):
            row[chosen[e] >= 0] = np.arange((chosen[e] >= 0).sum())
        parts = [self.parts[e]._take(chosen[e][chosen[e] >= 0]) for e in kept]
        return self._like(
            subjects=self.subjects[positions],
            event_types=tuple(self.event_types[e] for e in kept),
            parts=tuple(parts),
            place=place,
            service=None if self.service is None else self.service.take(positions),
            _covariates=None if self._covariates is None else self._covariates.iloc[positions],
        )

    def with_window(self, window: Window) -> Self:
        """Return the same data on another window, which must contain every interval.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> panel.with_window((0, 2000)).window
        (0.0, 2000.0)
        """
        parts = tuple(part.with_window(window) for part in self.parts)
        return self._like(window=parts[0].window, parts=parts)

    def content_order(self) -> IndexArray:
        """Permutation of the subjects by what their rows hold, whatever their labels.

        :meta private:
        """
        columns = []
        for e, part in enumerate(self.parts):
            home = np.flatnonzero(self.place[e] >= 0)
            rows = (home[part.subject_index], np.full(part.n_intervals, e), part.start, part.stop)
            columns.append(np.stack([*rows, part.count, part.exposure]).astype(np.float64))
        stacked = np.concatenate(columns, axis=1)
        subject, *keys = stacked[:, np.lexsort(stacked[2::-1])]
        index = subject.astype(np.intp)
        return sequence_order(index, self.n_subjects, keys, self._covariate_ranks())

    # -- what there is -------------------------------------------------------------------------

    @property
    def n_intervals(self) -> int:
        """Number of different intervals of subjects, whatever was counted in them."""
        if len(self.parts) == 1 or differing_interval(self) is None:
            return self.parts[0].n_intervals
        return len(np.unique(np.concatenate([_row_keys(self, e) for e in range(len(self.parts))])))

    @property
    def n_events(self) -> int:
        """Sum of the counts of all types."""
        return sum(part.n_events for part in self.parts)

    @property
    def log_factorials(self) -> float:
        """Sum of ln m! over all counts: the constant that likelihoods here leave out."""
        return sum(part.log_factorials for part in self.parts)

    def summary(self) -> PanelSummary:
        """Count what there is, type by type.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> panel.summary()["subjects"]
        290
        """
        from gp4c.data.types.typed_summary import summarise_types

        return summarise_types(self)

    def table(self, by: str | None = None, *, reference: Hashable | None = None) -> Table:
        """Subjects and follow-up once; events and rates in all and of each type, by group.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> [row for row in panel.table(by="treatment").rows if row[0].startswith("events, ")]
        [('events, basal', '157', '241', '398'), ('events, squamous', '96', '102', '198')]
        """
        from gp4c.data.summaries.panel_table import tabulate

        return tabulate(
            self.total(), by, reference, dict(zip(self.event_types, self.parts, strict=True))
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per subject, interval and type; ``from_frame(..., event="event")`` reads it.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")
        >>> list(panel.to_frame().columns[:5])
        ['subject', 'start', 'stop', 'event', 'count']
        """
        import pandas as pd

        frames = [part.to_frame() for part in self.parts]
        for name, frame in zip(self.event_types, frames, strict=True):
            frame.insert(3, "event", name)
        return pd.concat(frames, ignore_index=True)

    def __repr__(self) -> str:
        from gp4c.data.summaries.panel_summary import panel_line

        types = (f"{p.n_events} {e}" for e, p in zip(self.event_types, self.parts, strict=True))
        events = plural(self.n_events, "event")
        return panel_line(self).replace(events, f"{events} ({', '.join(types)})", 1)


def together(panel: TypedPanel) -> PanelCounts | None:
    """All events together; None where types were counted in different intervals."""
    return None if differing_interval(panel) is not None else panel.total()


def differing_interval(panel: TypedPanel) -> str | None:
    """A sentence about an interval that one type has and another has not; None if all agree."""
    first = _row_keys(panel, 0)
    for e in range(1, len(panel.parts)):
        other = _row_keys(panel, e)
        if not np.array_equal(first, other):
            return _difference(panel, (0, e), first, other)
    return None


def _row_keys(panel: TypedPanel, e: int) -> Any:
    """Subject, start, stop and exposure of the rows of a type, as records."""
    part = panel.parts[e]
    home = np.flatnonzero(panel.place[e] >= 0)
    names = ["subject", "start", "stop", "exposure"]
    rows = np.empty(part.n_intervals, dtype=list(zip(names, ("i8", "f8", "f8", "f8"), strict=True)))
    values = (home[part.subject_index], part.start, part.stop, part.exposure)
    for name, value in zip(names, values, strict=True):
        rows[name] = value
    return rows


def _difference(panel: TypedPanel, types: tuple[int, int], one: Any, two: Any) -> str:
    """Name the first row of either that the other has not."""
    for here, there, (e, f) in ((one, two, types), (two, one, types[::-1])):
        alone = np.flatnonzero(~np.isin(here, there))
        if len(alone):
            row = here[alone[0]]
            label = panel.subjects[row["subject"]]
            return (
                f"subject {label} has {shown_interval(row['start'], row['stop'])} for "
                f"{panel.event_types[e]!r} but not for {panel.event_types[f]!r}"
            )
    return "a subject has the same interval twice"


def _all_labels(parts: Sequence[PanelCounts]) -> LabelArray:
    """Labels of all subjects, sorted."""
    if all(np.array_equal(part.subjects, parts[0].subjects) for part in parts):
        return parts[0].subjects
    found = dict.fromkeys(label for part in parts for label in part.subjects.tolist())
    labels = label_array(found)
    return labels[label_order(labels)]


def _common_covariates(
    parts: Sequence[PanelCounts], place: IndexArray
) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """Covariates of the subjects that all types agree in."""
    import pandas as pd

    frames = [part._covariates for part in parts if part._covariates is not None]
    if len(frames) < len(parts):
        return None, ()
    columns, notes = {}, []
    for name in (c for c in frames[0] if all(c in frame for frame in frames)):
        column: pd.Series[Any] | None = None
        for frame, where in zip(frames, place, strict=True):
            values = frame[name].iloc[where].set_axis(range(place.shape[1]))
            values = values.where(where >= 0) if (where < 0).any() else values
            same = column is None or bool(
                ((column == values) | column.isna() | values.isna()).all()
            )
            if not same:
                notes.append(f"column {name!r} differs between types: kept with each type")
                break
            column = values if column is None else column.where(column.notna(), values)
        else:
            columns[name] = column
    return (pd.DataFrame(columns) if columns else None), tuple(notes)


def joined_types(panels: Sequence[PanelCounts]) -> TypedPanel:
    """Panels with types as one; intervals of subjects with the same label are put together."""
    plain = [panel for panel in panels if not isinstance(panel, TypedPanel)]
    if plain:
        raise PanelDataError("panels with event types and panels without cannot be joined")
    typed = [panel for panel in panels if isinstance(panel, TypedPanel)]
    types = dict.fromkeys(name for panel in typed for name in panel.event_types)
    notes = dict.fromkeys(note for panel in typed for note in panel.notes)
    window = min(p.window[0] for p in typed), max(p.window[1] for p in typed)
    joined = {
        name: PanelCounts.concat([p.of_type(name) for p in typed if name in p.event_types])
        for name in types
    }
    return TypedPanel.of({n: p._like(window=window) for n, p in joined.items()}, tuple(notes))
