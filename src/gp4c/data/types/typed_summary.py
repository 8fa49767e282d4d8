"""What a panel with several types of events holds, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.checks import plural
from gp4c.data.summaries.panel_summary import PanelSummary, subject_totals, summarise

if TYPE_CHECKING:
    from gp4c.data.types.typed_panel import TypedPanel


def summarise_types(panel: TypedPanel) -> PanelSummary:
    """Subjects and intervals once; events, rates and overdispersion of each type."""
    each = [summarise(part) for part in panel.parts]
    shared = ("distinct intervals", "gaps", "late entries", "window", "time unit", "covariates")
    quantities: dict[str, float | int | str] = {
        "subjects": panel.n_subjects,
        "intervals": panel.n_intervals,
        "event types": ", ".join(panel.event_types),
        "events": panel.n_events,
    }
    quantities |= {name: each[0][name] for name in shared}
    for name, found in zip(panel.event_types, each, strict=True):
        for quantity in ("events", "rate", "subjects without events", "overdispersion"):
            quantities[f"{quantity}, {name}"] = found[quantity]
    quantities |= _correlations(panel)
    common = [remark for remark in each[0].remarks if all(remark in s.remarks for s in each)]
    remarks = common + [
        f"{name}: {remark}"
        for name, found in zip(panel.event_types, each, strict=True)
        for remark in found.remarks
        if remark not in common
    ]
    title = f"Panel of {plural(panel.n_subjects, 'subject')}, {len(each)} types of events"
    return PanelSummary(title, quantities, (*remarks, *panel.notes))


def _correlations(panel: TypedPanel) -> dict[str, float]:
    """Spearman's correlation of subjects' rates of events, for each pair of types."""
    from scipy.stats import rankdata

    ranks = []
    for part, place in zip(panel.parts, panel.place, strict=True):
        totals, risk = subject_totals(part)
        rate = np.full(panel.n_subjects, np.nan)
        rate[place >= 0] = totals / risk
        ranks.append(rate)
    found = {}
    for e, one in enumerate(panel.event_types):
        for f in range(e + 1, len(ranks)):
            both = np.isfinite(ranks[e]) & np.isfinite(ranks[f])
            pair = [rankdata(r[both]) for r in (ranks[e], ranks[f])]
            if min(np.ptp(p) if len(p) else 0.0 for p in pair) > 0:
                name = f"rank correlation of rates, {one} and {panel.event_types[f]}"
                found[name] = float(np.corrcoef(*pair)[0, 1])
    return found
