"""A comparison of groups in plain words: how much, how sure, and what test and evidence ask."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gp4c.data.checks import few_digits
from gp4c.estimators.fit_warnings import burst_remedy
from gp4c.plain import odds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gp4c.analysis.comparison import Comparison

#: p-value and nats (odds of 20 to 1) from which a difference is called found
FOUND, STRONG = 0.05, math.log(20.0)
#: odds of 3 to 1, below which the data do not tell
TELLING = math.log(3.0)


def summary_lines(found: Comparison) -> list[str]:
    """Groups, ratios of mean numbers, test and evidence, and notes."""
    sizes = ", ".join(f"{g} ({int((found.codes == k).sum())})" for k, g in enumerate(found.groups))
    lines = [f"{found.by}: {sizes} subjects", *_ratios(found)]
    return [*lines, *conclusions(found), *_misfits(found), *found.notes]


def _misfits(found: Comparison) -> Iterator[str]:
    """Groups whose counts vary within subjects more than their law allows."""
    for group in found.groups:
        model = found.models[group]
        check = model.fit_check_
        if check is not None and check.varies_more:
            yield (
                f"Counts of {group} vary {check.excess:.2g} times as much within subjects as the "
                f"fitted law allows (p < 0.001): {burst_remedy(model)}."
            )


def _ratios(found: Comparison) -> Iterator[str]:
    unit = f" {found.panel.time_unit}" if found.panel.time_unit else ""
    for row in found.pairwise().itertuples():
        yield (
            f"Mean number of events by {few_digits(row.time)}{unit}: {row.second} has "
            f"{row.ratio:.2f} (95% {row.low:.2f} to {row.high:.2f}) times that of {row.first}; "
            f"probability that it is lower {_probability(row.probability)}"
            + (f"; p = {row.p_adjusted:.4f} (Holm)" if len(found.groups) > 2 else "")
        )


def conclusions(found: Comparison) -> list[str]:
    """The permutation test, the Bayes factor, and what to make of the two together."""
    lines = [
        f"Permutation test of one common curve ({found.test}): p = {found.p_value:.4f} "
        f"({found.n_permutations} permutations of subjects)"
    ]
    factor = found.log_bayes_factor
    if not math.isfinite(factor):
        return lines
    lines.append(_evidence(factor, found.by))
    asks = {
        "level": "whether a group has more events than another, whatever the shape of the curves",
        "curve": "whether a group has more events, or has them at other times",
    }[found.test]
    lines.append(
        f"The test asks {asks}; it needs no model. The evidence asks whether the curves differ at "
        "all, in level or in shape, and trusts the model."
    )
    return [*lines, *_disagreement(found.p_value, factor, found.test)]


def _evidence(factor: float, by: str) -> str:
    """What the evidence says about one common curve, in words."""
    if abs(factor) < TELLING:
        return f"The data do not tell one common curve from separate ones ({odds(factor)})."
    if factor > 0:
        return f"The data favour separate curves for the groups of {by} ({odds(factor)})."
    return f"The data favour one common curve ({odds(factor)})."


def _disagreement(p_value: float, factor: float, test: str) -> list[str]:
    """Say what to do where test and evidence point to different answers."""
    if p_value > FOUND and factor > STRONG:
        where = "another shape, or" if test == "level" else "small differences, or"
        return [
            f"Here only the evidence speaks for a difference: {where} bursts of events in single "
            "subjects, which a model without bursts takes for peaks of a curve. Look at the ratio "
            "over time and at the diagnostics before quoting it."
        ]
    if p_value <= FOUND and factor < 0:
        return [
            "Here only the test speaks for a difference: it looks for one thing, and so needs "
            "fewer data than two whole curves do."
        ]
    return []


def _probability(value: Any) -> str:
    """A share of draws, of which none or all is no certainty."""
    if not 0.0005 <= value < 0.9995:
        return "below 0.001" if value < 0.5 else "above 0.999"
    return f"{value:.3f}"
