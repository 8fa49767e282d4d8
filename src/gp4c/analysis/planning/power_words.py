"""A plan in words: what was asked, what came out, and everything that was assumed."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from gp4c.data.checks import few_digits
from gp4c.plain import per

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gp4c.analysis.planning.power_plan import PowerPlan, PowerRow
    from gp4c.analysis.planning.trial_design import TrialDesign

_WIDTH = 80
_TESTS = {
    "level": "of the level (more events in one arm than in the other)",
    "curve": "of the curve (mean numbers of events that differ at any time)",
    "any": "of any difference (in level, early, late, crossing or in the curve)",
}


def plan_text(plan: PowerPlan) -> str:
    """Paragraphs for a protocol, and a table where several sizes or ratios were simulated."""
    paragraphs = [_result(plan), " ".join(_assumptions(plan)), " ".join(_method(plan))]
    parts = [fill(text, _WIDTH) for text in paragraphs if text]
    if len(plan.rows) > 1:
        parts.append(_table(plan))
    return "\n\n".join(parts)


def _result(plan: PowerPlan) -> str:
    if plan.chosen is None:
        return f"Power of {len(plan.rows)} trials of two arms, in the table below."
    row = plan.rows[plan.chosen]
    verb = "has"
    if plan.target is not None:
        found = "is the smallest that was found to reach"
        if row.power < plan.target:
            found = "is the nearest that was tried to"
        verb = f"{found} {percent(plan.target)} power: it has"
    return (
        f"A trial with {_arms(row)} {verb} {percent(row.power)} power (Monte-Carlo standard error "
        f"{100 * row.error:.1f} points, {row.n_trials:,} simulated trials) to show a ratio of "
        f"event rates of {row.ratio:g} by a permutation test at the two-sided level "
        f"{percent(plan.alpha)}. It is expected to count {row.events:,.0f} events."
    )


def _arms(row: PowerRow) -> str:
    total = row.n_first + row.n_second
    if row.n_first == row.n_second:
        return f"{row.n_first:,} subjects per arm ({total:,} in all)"
    return f"{row.n_first:,} subjects in the first arm and {row.n_second:,} in the second"


def _assumptions(plan: PowerPlan) -> Iterator[str]:
    design, unit = plan.design, plan.time_unit
    kind = "at a constant rate of" if design.constant else "at a rate that changes over time,"
    average = "" if design.constant else "on average "
    ratios = sorted({row.ratio for row in plan.rows})
    times = f"{ratios[0]:g}" if len(ratios) == 1 else f"{ratios[0]:g} to {ratios[-1]:g}"
    taken = "rate, follow-up, frailty variance and dispersion, where not given, from a pilot"
    source = f" ({taken}: {plan.pilot})" if plan.pilot else ""
    yield (
        f"Assumed{source}: events come {kind} {average}{design.rate:.3g} {per(unit)} in the first "
        f"arm, and at {times} times that rate in the second."
    )
    yield _spread(design)
    yield _schedule(design, unit)
    if design.drop_out > 0:
        yield (
            f"{percent(design.drop_out)} of the subjects leave, at times spread evenly over "
            "follow-up and whatever their events, and are counted up to their last visit."
        )
    else:
        yield "Nobody leaves early."
    if design.allocation != 1:
        yield f"The second arm has {design.allocation:g} times as many subjects as the first."
    if len(design.strata) > 1:
        rates = ", ".join(f"{value:g}" for value in design.strata)
        yield (
            f"There are {len(design.strata)} strata of equal size with relative rates {rates}; "
            "each is randomised and permuted by itself."
        )


def _spread(design: TrialDesign) -> str:
    between = (
        "Subjects do not differ in their rates"
        if design.frailty_variance == 0
        else "Rates of subjects differ by gamma factors of mean 1 and variance "
        f"{design.frailty_variance:.3g}"
    )
    if design.phi == 0:
        return f"{between}; a subject's events come one by one (Poisson counts)."
    return (
        f"{between}; a subject's events come in bursts, so that the variance of its counts is "
        f"{design.dispersion:.3g} times their mean (negative binomial)."
    )


def _schedule(design: TrialDesign, unit: str | None) -> str:
    length = f"{few_digits(design.follow_up)} {unit or 'units of time'}"
    if design.visits == 1:
        return f"Subjects are followed for {length} and counted once, at the end."
    late = ""
    if design.jitter > 0:
        most = design.jitter * design.follow_up / design.visits / 2
        late = f", each but the last up to {few_digits(most)} early or late"
    return (
        f"Subjects are followed for {length} and counted at {design.visits} evenly "
        f"spaced visits{late}."
    )


def _method(plan: PowerPlan) -> Iterator[str]:
    from gp4c import __version__

    within = " within strata" if len(plan.design.strata) > 1 else ""
    yield (
        f"The test is the permutation test {_TESTS[plan.design.test]} that gp4c.compare uses, with "
        f"{plan.design.n_permutations:,} permutations of the subjects{within} in each simulated "
        f"trial (gp4c {__version__}, seed {plan.random_state})."
    )
    if plan.chosen is None:
        return
    row = plan.rows[plan.chosen]
    size = ""
    if plan.formula_size is not None:
        size = f", and {plan.formula_size:.0f} subjects in the first arm as the size for the target"
    yield (
        "For comparison, the negative-binomial formula for a Wald test gives "
        f"{percent(row.formula)} power{size}."
    )


def _table(plan: PowerPlan) -> str:
    header, rows = table_rows(plan)
    cells = [header, *rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    return "\n".join(
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )


def table_rows(plan: PowerPlan) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the table."""
    header = ["ratio", "first arm", "second arm", "power", "± error", "formula", "events"]
    rows = [
        [f"{row.ratio:g}", f"{row.n_first:,}", f"{row.n_second:,}", percent(row.power),
         f"{100 * row.error:.1f}", percent(row.formula), f"{row.events:,.0f}"]
        for row in plan.rows
    ]  # fmt: skip
    return header, rows


def percent(share: float) -> str:
    """A share to three digits: ``81.2%``, ``5%``."""
    return f"{100 * share:.3g}%"
