"""What a panel holds, counted, as text, HTML and table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import few_digits, plural, shown_number
from gp4c.data.summaries.running_totals import totals_remark
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError
from gp4c.plain import per, printable

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.data.subjects import FloatArray

#: notebooks set the cells of a table to the right, which suits numbers and not sentences
TO_THE_LEFT = ' style="text-align: left"'
#: overdispersion is called large if chance gives as much once in a thousand panels, and it is
#: more than half above 1
RARE = 1e-3
LARGE_DISPERSION = 1.5
#: one of at least so many subjects that alone makes up so much of the window has a wrong time
FEWEST_TO_STRETCH, LONE_SHARE = 5, 0.25


@dataclass(frozen=True)
class PanelSummary:
    """Figures of a panel; printing gives a table.

    Attributes
    ----------
    title : str
    quantities : dict
        Name to number (or text).
    remarks : tuple of str
        What deserves attention, in plain sentences, then the notes taken while reading.
    """

    title: str
    quantities: dict[str, float | int | str]
    remarks: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float | int | str:
        return self.quantities[name]

    def to_frame(self) -> pd.DataFrame:
        """One row per quantity.

        Examples
        --------
        >>> import gp4c
        >>> summary = gp4c.load_dataset("bladder").summary()
        >>> summary.to_frame().head(3).to_numpy().tolist()
        [['subjects', 85], ['intervals', 920], ['distinct intervals', 270]]
        """
        import pandas as pd

        return pd.DataFrame(
            {"quantity": list(self.quantities), "value": list(self.quantities.values())}
        )

    def __str__(self) -> str:
        width = max(len(name) for name in self.quantities)
        rows = [f"  {name:<{width}}  {_shown(value)}" for name, value in self.quantities.items()]
        notes = (fill(f"Note: {remark}", 80, subsequent_indent="  ") for remark in self.remarks)
        return printable("\n".join([self.title, *rows, *notes]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.title, (), self.texts(), self.remarks)

    def texts(self) -> list[tuple[str, str]]:
        """Names and values as they are printed.

        :meta private:
        """
        return [(name, _shown(value)) for name, value in self.quantities.items()]


def summarise(panel: PanelCounts) -> PanelSummary:
    """Count subjects, intervals, events, exposure, zeros, gaps and overdispersion."""
    totals, risk = subject_totals(panel)
    statistic = overdispersion(totals, risk)
    quantities = _layout(panel) | {
        "events": panel.n_events,
        "time observed": float(np.sum(panel.stop - panel.start)),
        panel.usage or "exposure": float(risk.sum()),
        "rate": float(totals.sum() / risk.sum()),
        "share of zero counts": float(np.mean(panel.count == 0)),
        "largest count": int(panel.count.max()),
        "subjects without events": int(np.sum(totals == 0)),
        "subject totals, mean": float(totals.mean()),
        "subject totals, variance": float(totals.var(ddof=1)) if len(totals) > 1 else np.nan,
        "overdispersion": statistic,
        "covariates": _listed(panel._covariates),
        "interval covariates": _listed(panel._interval_covariates),
    }
    rate = per(panel.time_unit, panel.usage)
    title = f"Panel of {plural(panel.n_subjects, 'subject')} (rate {rate})"
    remarks = (*_remark(statistic, len(totals)), *totals_remark(panel), *lone_ends(panel))
    return PanelSummary(title, quantities, (*remarks, *panel.notes))


def panel_rows(panel: PanelCounts) -> pd.DataFrame:
    """One row per subject and interval, with the covariates."""
    import pandas as pd

    columns: dict[str, Any] = {
        "subject": panel.subjects[panel.subject_index],
        "start": panel.start,
        "stop": panel.stop,
        "count": panel.count,
    }
    if panel.usage is not None:
        columns["usage"] = panel.exposure * (panel.stop - panel.start)
    elif np.any(panel.exposure != 1.0):
        columns["exposure"] = panel.exposure
    if np.any(np.isfinite(panel.end)):
        columns["end"] = panel.end[panel.subject_index]
    subject_level = panel.covariates.iloc[panel.subject_index].reset_index(drop=True)
    return pd.concat([pd.DataFrame(columns), subject_level, panel.interval_covariates], axis=1)


def panel_line(panel: PanelCounts) -> str:
    """A panel in one line."""
    dated = panel.time_origin is not None
    unit = f" {panel.time_unit}" if panel.time_unit and not dated else ""
    return (
        f"<{type(panel).__name__}: {plural(panel.n_subjects, 'subject')}, "
        f"{plural(panel.n_intervals, 'interval')}, {plural(panel.n_events, 'event')}, "
        f"window {_window(panel)}{unit}>"
    )


def _window(panel: PanelCounts) -> str:
    """The window; dates come first if times were dates."""
    axis = TimeAxis(panel.time_unit, panel.time_origin)
    first, last = (axis.date(time) for time in panel.window)
    low, high = (few_digits(t) for t in panel.window)
    if first is None:
        return f"({low}, {high})"
    return f"{first} to {last} ({panel.time_unit} {low} to {high})"


def joined_rows(parts: Sequence[PanelCounts]) -> tuple[pd.DataFrame, dict[str, object]]:
    """Rows of several panels, columns named by their roles, and what their panel has besides."""
    import pandas as pd

    if not parts:
        raise PanelDataError("there is no panel to join")
    if len({(part.time_unit, part.time_origin, part.usage) for part in parts}) > 1:
        said = ", ".join(
            f"{p.time_unit!r} since {p.time_origin or 0}" + (f" per {p.usage}" if p.usage else "")
            for p in parts
        )
        raise PanelDataError(f"panels to join must agree in time unit and origin; found {said}")
    frames = [part.to_frame() for part in parts]
    if any("exposure" in frame for frame in frames):
        frames = [f.assign(exposure=p.exposure) for f, p in zip(frames, parts, strict=True)]
    low, high = zip(*(part.window for part in parts), strict=True)
    same: dict[str, object] = {
        "window": (min(low), max(high)),
        "time_unit": parts[0].time_unit,
        "time_origin": parts[0].time_origin,
        "notes": tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    }
    return pd.concat(frames, ignore_index=True), same


def _layout(panel: PanelCounts) -> dict[str, float | int | str]:
    """Subjects, intervals, gaps and the axis of time."""
    distinct = panel.distinct()
    gaps, gapped = _gaps(panel)
    subjects = np.arange(panel.n_subjects)
    entry = panel.start[np.searchsorted(panel.subject_index, subjects)]
    zero = panel.time_origin
    time_zero = {} if zero is None else {"time 0": str(zero).removesuffix(" 00:00:00")}
    return {
        "subjects": panel.n_subjects,
        "intervals": panel.n_intervals,
        "distinct intervals": len(distinct),
        "distinct end points": len(np.union1d(distinct.start, distinct.stop)),
        "intervals per subject": _spread(np.bincount(panel.subject_index)),
        "interval length": _spread(panel.stop - panel.start),
        "gaps": gaps,
        "subjects with gaps": gapped,
        **_out_of_service(panel),
        "late entries": int(np.sum(entry > panel.window[0])),
        "window": _window(panel),
        "time unit": panel.time_unit or "not stated",
        **time_zero,
    }


def subject_totals(panel: PanelCounts) -> tuple[FloatArray, FloatArray]:
    """Events, and exposure times length, of each subject."""
    weight = panel.exposure * (panel.stop - panel.start)
    index, n = panel.subject_index, panel.n_subjects
    totals = np.bincount(index, weights=panel.count, minlength=n).astype(np.float64)
    return totals, np.bincount(index, weights=weight, minlength=n).astype(np.float64)


def overdispersion(totals: FloatArray, risk: FloatArray) -> float:
    r"""Pearson's statistic of subject totals over its degrees of freedom.

    .. math::
        \frac{1}{K - 1} \sum_k \frac{(m_k - \hat\mu R_k)^2}{\hat\mu R_k},
        \quad \hat\mu = \frac{\sum_k m_k}{\sum_k R_k}

    Each subject is held against a common constant rate over its own exposure time :math:`R_k`, so
    unequal follow-up does not count as overdispersion (a rate that changes with time does, a
    little, if follow-up differs). About 1 for Poisson counts; NaN without events or with one
    subject.

    Parameters
    ----------
    totals : (n_subjects,) array
        Events of each subject.
    risk : (n_subjects,) array
        Exposure times length, summed over its intervals.
    """
    if len(totals) < 2 or totals.sum() == 0:
        return float("nan")
    expected = risk * totals.sum() / risk.sum()
    return float(np.sum((totals - expected) ** 2 / expected) / (len(totals) - 1))


def _remark(statistic: float, n_subjects: int) -> tuple[str, ...]:
    """One sentence if subject totals vary more than a Poisson model allows."""
    if not statistic > LARGE_DISPERSION:
        return ()
    from scipy.special import chdtrc

    freedom = n_subjects - 1
    if chdtrc(freedom, statistic * freedom) > RARE:  # the tail of χ²
        return ()
    return (
        f"subject totals vary {statistic:.1f} times as much as equal rates would explain: some "
        "subjects have far more events than others, so a model needs subject effects",
    )


def lone_ends(panel: PanelCounts) -> tuple[str, ...]:
    """One sentence if one subject alone stretches the window: most likely a wrong date."""
    if panel.n_subjects < FEWEST_TO_STRETCH:
        return ()
    index, n = panel.subject_index, panel.n_subjects
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, index, panel.start)
    np.maximum.at(last, index, panel.stop)
    axis, length = TimeAxis(panel.time_unit, panel.time_origin), last.max() - first.min()
    said = []
    for ends, side, word, edge in ((first, 1, "before", "from"), (last, -1, "after", "to")):
        who, other = np.argsort(side * ends)[:2]
        alone = abs(float(ends[other] - ends[who])) / length
        if alone > LONE_SHARE:
            label = panel.subjects[[who]].tolist()[0]
            here, rest = (axis.date(t) or few_digits(t) for t in (ends[who], ends[other]))
            said.append(
                f"subject {label!r} alone was observed {word} {rest} ({edge} {here}), for "
                f"{alone:.0%} of the time that the table covers: check that visit"
            )
    return tuple(said)


def _gaps(panel: PanelCounts) -> tuple[int, int]:
    """Number of gaps between a subject's intervals, and of subjects that have one."""
    same = panel.subject_index[1:] == panel.subject_index[:-1]
    gap = same & (panel.start[1:] > panel.stop[:-1])
    return int(gap.sum()), len(np.unique(panel.subject_index[1:][gap]))


def _spread(values: Any) -> str:
    """Median and range."""
    middle, low, high = (few_digits(v) for v in (np.median(values), values.min(), values.max()))
    return f"{middle} (from {low} to {high})"


def _listed(frame: pd.DataFrame | None) -> str:
    return "none" if frame is None else ", ".join(str(name) for name in frame.columns)


def _out_of_service(panel: PanelCounts) -> dict[str, int]:
    """How many subjects went out of service, if the data say when."""
    told = panel.service is not None and panel.service.is_told
    return {"out of service": int(np.isfinite(panel.end).sum())} if told else {}


def _shown(value: float | int | str) -> str:
    """Write whole numbers in full and others to four digits."""
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return "not defined"
    number = float(value)
    return f"{number:,.0f}" if number.is_integer() or abs(number) >= 1000 else f"{number:.4g}"


def panel_html(panel: PanelCounts, n_rows: int = 5) -> str:
    """First rows of a panel as an HTML table, for notebooks."""
    head = panel[: min(n_rows, panel.n_subjects)].to_frame().head(n_rows)
    rows = [[_cell(value) for value in row] for row in head.itertuples(index=False)]
    more = panel.n_intervals - len(rows)
    remarks = (f"and {plural(more, 'more row', 'more rows')}",) if more else ()
    return html_table(repr(panel).strip("<>"), list(head.columns), rows, remarks)


def _cell(value: Any) -> str:
    if isinstance(value, float | int | np.integer | np.floating) and not isinstance(value, bool):
        return shown_number(value)
    return str(value)


def html_table(
    title: str, header: Sequence[object], rows: Sequence[Sequence[str]], remarks: Sequence[str]
) -> str:
    """Render a small table; every text is escaped."""
    parts = [f"<table><caption>{escape(title)}</caption>"]
    if header:
        names = "".join(f"<th>{escape(str(name))}</th>" for name in header)
        parts.append(f"<thead><tr>{names}</tr></thead>")
    body = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    parts.append("<tbody>" + "".join(f"<tr>{cells}</tr>" for cells in body) + "</tbody></table>")
    parts += [f"<p>{escape(remark)}</p>" for remark in remarks]
    return "".join(parts)
