"""Legal panels of every shape, as hypothesis strategies.

Small ones are drawn cell by cell, so that a failure shrinks to a small example; large ones come
from a seeded generator, of which hypothesis draws the seed and the shape.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import gp4c

#: powers of ten of the unit of time, and where time starts in these units
UNITS = st.integers(-9, 12).map(lambda power: 10.0**power)
ORIGINS = st.sampled_from([0.0, 0.0, 0.0, -1.0, -3.5, 1.0, 1e3, -1e6])

WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x00"), max_size=8
).map(lambda text: f"s{text}")
LABELS = {
    "numbers": st.integers(-(10**12), 10**12),
    "words": WORDS,
    "scripts": st.sampled_from(
        ["甲", "Ünal", "🧪7", "\u202eabc", "=cmd()", "<b>x</b>", "a,b;c", "é"]
    ),
    "floats": st.floats(-1e6, 1e6),
}
COUNTS = {
    "none": st.just(0),
    "few": st.integers(0, 4),
    "rare": st.sampled_from([0, 0, 0, 0, 0, 1]),
    "many": st.integers(0, 10_000),
    "uneven": st.sampled_from([0, 1, 2, 1000]),
    "huge": st.integers(0, 10**9),
    "enormous": st.sampled_from([0, 1, 10**9, 10**12, 2**53]),
}
EXPOSURES = {
    "absent": None,
    "usual": st.floats(0.1, 10.0),
    "extreme": st.sampled_from([1e-6, 1.0, 1e6]),
}


def kinds(table: dict[str, Any]) -> st.SearchStrategy[str]:
    """Name one of the kinds; the first is what a failure shrinks to."""
    return st.sampled_from(list(table))


@st.composite
def visit_times(draw: st.DrawFn, most: int = 6) -> list[float]:
    """Increasing times of one subject in units: a few values that others share, or any."""
    shared = st.integers(0, 12).map(float)
    near = st.sampled_from([1.0, 1.0 + 1e-9, 1.001, 5.0, 5.0 + 1e-6, 12.0])
    # intervals below 1e-12 of the window are no legal panel
    spread = st.floats(0.0, 12.0).map(lambda t: round(t, 9))
    times = draw(st.sampled_from([shared, shared, near, spread]))
    found = draw(st.lists(times, min_size=2, max_size=most + 1, unique=True))
    return sorted(found)


@st.composite
def small_tables(draw: st.DrawFn, most_subjects: int = 5, most_visits: int = 5) -> pd.DataFrame:
    """Up to 25 rows: gaps, ties, late entries, shuffled; with or without exposure."""
    unit, origin = draw(UNITS), draw(ORIGINS)
    counts, exposures = COUNTS[draw(kinds(COUNTS))], EXPOSURES[draw(kinds(EXPOSURES))]
    labels = st.lists(LABELS[draw(kinds(LABELS))], min_size=1, max_size=most_subjects, unique=True)
    rows = []
    for label in draw(labels):
        times = [(origin + t) * unit for t in draw(visit_times(most_visits))]
        seen = [(a, b) for a, b in pairwise(times) if a < b]
        kept = draw(st.lists(st.booleans(), min_size=len(seen), max_size=len(seen)))
        seen = [row for row, gap in zip(seen, kept, strict=True) if not gap] or seen[:1]
        rows += [(label, a, b, draw(counts)) for a, b in seen]
    if not rows:  # times that the unit cannot tell apart
        rows = [(0, origin * unit, (origin + 1.0) * unit, draw(counts))]
    rows = draw(st.permutations(rows))
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count"])
    if exposures is not None:
        size = len(table)
        table["exposure"] = draw(st.lists(exposures, min_size=size, max_size=size))
    return table


def panel_of(table: pd.DataFrame) -> gp4c.PanelCounts:
    """The panel of a table, with its exposure if it has one."""
    exposure = "exposure" if "exposure" in table else None
    return gp4c.PanelCounts.from_frame(table, exposure=exposure)


small_panels = small_tables().map(panel_of)


@st.composite
def smooth_panels(draw: st.DrawFn, most_rows: int = 60) -> gp4c.PanelCounts:
    """Counts of a gentle rate seen at random visits: what the slow estimators are made for."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    unit, origin = draw(UNITS), draw(ORIGINS)
    level = 10.0 ** draw(st.integers(-2, 3))
    subjects = draw(st.integers(1, 12))
    visits = draw(st.integers(1, max(1, most_rows // subjects)))
    return random_panel(rng, subjects, visits, unit=unit, origin=origin, level=level)


@st.composite
def large_panels(draw: st.DrawFn) -> gp4c.PanelCounts:
    """Up to 10^4 rows, on a lattice of times (many ties) or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = int(10 ** draw(st.floats(2.0, 4.0)))
    visits = draw(st.sampled_from([1, 2, 5, 20, 100]))
    return random_panel(
        rng,
        max(1, rows // visits),
        visits,
        unit=draw(UNITS),
        origin=draw(ORIGINS),
        level=10.0 ** draw(st.integers(-3, 5)),
        lattice=draw(st.sampled_from([0, 10, 100])),
    )


def random_panel(
    rng: np.random.Generator,
    subjects: int,
    visits: int,
    *,
    unit: float,
    origin: float,
    level: float,
    lattice: int = 0,
) -> gp4c.PanelCounts:
    """A panel whose counts follow a rate with one hump, `level` events per subject and window."""
    times = rng.uniform(0.0, 1.0, (subjects, visits + 1))
    if lattice:
        times = np.ceil(times * lattice) / lattice
    times.sort(axis=1)
    start, stop = times[:, :-1].ravel(), times[:, 1:].ravel()
    mean = level * (_hump(stop) - _hump(start)) * np.repeat(rng.gamma(2.0, 0.5, subjects), visits)
    table = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(subjects), visits),
            "start": (origin + start) * unit,
            "stop": (origin + stop) * unit,
            "count": rng.poisson(mean),
        }
    )
    table = table[(rng.uniform(size=len(table)) < 0.9) & (table["stop"] > table["start"])]
    if not len(table):
        return panel_of(
            pd.DataFrame(
                {
                    "subject": [0],
                    "start": [origin * unit],
                    "stop": [(origin + 1) * unit],
                    "count": 0,
                }
            )
        )
    return panel_of(table.sample(frac=1.0, random_state=int(rng.integers(2**31))))


def _hump(t: np.ndarray) -> np.ndarray:
    return 0.5 * t + 0.5 * t**2 * (3.0 - 2.0 * t)


#: finite numbers of every size: what the door must either refuse or bear
EDGE_TIMES = st.one_of(
    st.sampled_from(
        [
            0.0,
            -0.0,
            5e-324,
            2.2e-308,
            1e-300,
            1e-150,
            1e-16,
            1.0,
            1e16,
            2.0**53,
            1e150,
            1e300,
            1.7e308,
        ]
    ).flatmap(lambda t: st.sampled_from([t, -t])),
    st.floats(allow_nan=False, allow_infinity=False),
)
EDGE_EXPOSURES = st.sampled_from([0.0, 5e-324, 1e-300, 1e-9, 1.0, 1e9, 1e300, 1.7e308])


@st.composite
def edge_tables(draw: st.DrawFn) -> pd.DataFrame:
    """Tables of floats of every size; the door may refuse them."""
    rows = []
    for label in range(draw(st.integers(1, 3))):
        times = sorted(draw(st.lists(EDGE_TIMES, min_size=2, max_size=5, unique=True)))
        counts = COUNTS[draw(kinds(COUNTS))]
        rows += [(label, a, b, draw(counts)) for a, b in pairwise(times)]
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count"])
    if draw(st.booleans()):
        size = len(table)
        table["exposure"] = draw(st.lists(EDGE_EXPOSURES, min_size=size, max_size=size))
    return table


@st.composite
def event_histories(draw: st.DrawFn) -> gp4c.RecurrentEvents:
    """Event times of up to five subjects, some without events, on windows of their own or one."""
    unit, origin = draw(UNITS), draw(ORIGINS)
    n = draw(st.integers(1, 5))
    rows: list[tuple[int, float | None]] = []
    windows = {}
    for label in range(n):
        low, high = sorted(draw(st.lists(st.integers(0, 12), min_size=2, max_size=2, unique=True)))
        windows[label] = ((origin + low) * unit, (origin + high) * unit)
        shares = draw(st.lists(st.floats(0.0, 1.0, exclude_min=True), max_size=8))
        times = [windows[label][0] + s * (windows[label][1] - windows[label][0]) for s in shares]
        seen = [(label, t) for t in times if windows[label][0] < t <= windows[label][1]]
        rows += seen or [(label, None)]
    table = pd.DataFrame(rows, columns=["subject", "time"])
    return gp4c.RecurrentEvents.from_frame(table, window=windows)
