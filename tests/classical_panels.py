"""Panels for the tests of the classical estimators."""

from __future__ import annotations

import itertools

import numpy as np

from gp4c.data.panel import PanelCounts


def panel_of(rows, window=None):
    """Panel from (subject, start, stop, count[, exposure]) tuples."""
    columns = {
        name: np.array([row[k] for row in rows])
        for k, name in enumerate(("subject", "start", "stop", "count"))
    }
    exposure = None
    if len(rows[0]) > 4:
        columns["exposure"] = np.array([row[4] for row in rows], dtype=float)
        exposure = "exposure"
    return PanelCounts.from_frame(columns, exposure=exposure, window=window)


def toy():
    """A visits 1, 3 with counts 1, 1; B visits 2, 3 with 0, 3; C visits 1, 2 with 2, 0."""
    return panel_of(
        [
            ("A", 0.0, 1.0, 1),
            ("A", 1.0, 3.0, 1),
            ("B", 0.0, 2.0, 0),
            ("B", 2.0, 3.0, 3),
            ("C", 0.0, 1.0, 2),
            ("C", 1.0, 2.0, 0),
        ]
    )


def random_rows(seed, n_subjects=12, gaps=False, exposure=False, whole_times=True, level=0.6):
    """Rows of subjects with random visits, drop-out and overdispersed counts."""
    rng = np.random.default_rng(seed)
    rows = []
    for subject in range(n_subjects):
        n_visits = int(rng.integers(1, 7))
        if whole_times:
            times = np.sort(rng.choice(np.arange(1, 21), n_visits, replace=False)).astype(float)
        else:
            times = np.sort(rng.uniform(0.1, 20.0, n_visits))
        times = np.concatenate([[0.0], times])
        times = times[1:] if gaps and rng.random() < 0.3 and n_visits > 1 else times
        frailty = rng.gamma(0.7) / 0.7
        units = float(rng.uniform(0.5, 3.0)) if exposure else 1.0
        for start, stop in itertools.pairwise(times):
            if gaps and rng.random() < 0.2 and len(rows):
                continue
            count = int(rng.poisson(frailty * units * level * (stop - start) / 3.0))
            rows.append((subject, start, stop, count, units))
    return rows


def random_panel(seed, **options):
    return panel_of(random_rows(seed, **options))
