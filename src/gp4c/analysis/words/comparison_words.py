"""A comparison of groups in plain words: how much, how sure, and what test and evidence ask."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.analysis.groups.group_draws import has_medians
from gp4c.analysis.groups.small_groups import FEW, small_groups
from gp4c.data.checks import few_digits, plural
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.fit_warnings import burst_remedy
from gp4c.plain import p_words

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.groups.ratios.centre_ratios import CentreRatios

#: p-value and probability from which a difference is called found; probability of a leaning
FOUND, SURE, LEANING = 0.05, 0.95, 0.5
#: more pairs than this have no intervals in the text
MOST_PAIRS = 6
#: share of the variance, in percent, above which the model has centres alone
_ALL_OF_IT = 99.95
ACCOUNTS = {
    "same": "one common curve",
    "factor": "one shape at different levels",
    "curves": "a curve of its own for each group",
}
_ASKS = {
    ("level", "even"): "whether a group has more events than another, whatever the shape of the "
    "curves",
    ("level", "early"): "whether a group has more events than another, above all early on",
    ("level", "late"): "whether a group has more events than another, above all late",
    ("trend", "even"): "whether the rate rises or falls with the score of the group",
    ("trend", "early"): "whether the rate rises or falls with the score, above all early on",
    ("trend", "late"): "whether the rate rises or falls with the score, above all late",
    ("curve", "even"): "whether the mean numbers of events so far differ at any time",
    ("any", "even"): "whether there is a difference at all: in level, early, late, of rates that "
    "cross, or in the mean numbers so far",
}


def summary_lines(found: Comparison) -> list[str]:
    """Groups, ratios of mean numbers, test and evidence, and notes."""
    sizes = ", ".join(f"{g} ({int((found.codes == k).sum())})" for k, g in enumerate(found.groups))
    lines = [f"{found.by}: {sizes} subjects", *adjusted_lines(found), *_centres(found)]
    lines += _ratios(found)
    return [*lines, *conclusions(found), *_cautions(found), *found.notes]


def adjusted_lines(found: Comparison) -> list[str]:
    """The ratios of the regression, with what they are adjusted for and how sure they are."""
    table = found.adjusted().to_dict("records")
    if not table:
        return []
    each = [
        f"{row['second']} has {_ratio(row['ratio'])} (95% {_ratio(row['low'])} to "
        f"{_ratio(row['high'])}, {p_words(row['p_value'], least=1e-4)}) times the rate of "
        f"{row['first']}"
        for row in table[:MOST_PAIRS]
    ]
    how = "regression with one shape of the curve"
    if found.centres is not None:
        how += " and a random effect for each centre"
    return [
        f"Adjusted for {adjusted_for(found)}: {'; '.join(each)} ({how}; "
        f"{errors_of_ratios(found, table[0]['errors'])})"
    ]


def errors_of_ratios(found: Comparison, errors: str) -> str:
    """Whose standard errors the adjusted ratios have, and that each stands for itself."""
    alone = "; each pair by itself, without Holm's method" if len(found.groups) > 2 else ""
    return f"standard errors: {errors}{alone}"


def adjusted_for(found: Comparison) -> str:
    """What stands beside the groups in the regression; empty if nothing does."""
    adjustment, centres = found.tested.adjustment, found.tested.cluster
    beside = [] if adjustment is None else [adjustment.formula]
    return " and ".join([*beside, *([] if centres is None else [centres.name])])


def _centres(found: Comparison) -> Iterator[str]:
    """How much centres differ, and what their subjects share."""
    centres = found.centres
    if centres is None:
        return
    factor = [math.exp(end) for end in (centres.deviation, *centres.deviation_interval())]
    yield (
        f"Centres: rates of the {len(centres.column.levels)} levels of {centres.column.name} "
        f"differ by a factor of about {_ratio(factor[0])} (95% {_ratio(factor[1])} to "
        f"{_ratio(factor[2])}; one standard deviation), {_share_of_centres(centres)}"
    )


def _share_of_centres(centres: CentreRatios) -> str:
    """How much of the variance between subjects is one between centres."""
    low, high = (100 * end for end in centres.share_interval())
    if low > _ALL_OF_IT:
        return "and subjects of one centre do not differ measurably"
    return (
        f"{100 * centres.share:.0f}% (95% {low:.0f} to {high:.0f}%) of the variance of subjects' "
        "rates"
    )


def curve_words(found: Comparison) -> str:
    """Whose covariates the curves have that are shown; nothing without a formula."""
    if found.tested.adjustment is None:
        return ""
    return f"averaged over everybody's {found.tested.adjustment.formula}"


def _cautions(found: Comparison) -> Iterator[str]:
    """What the strata do not reach, and groups whose curves say less than they seem to."""
    strata = found.tested.strata
    if strata is not None:
        others = ["the curves"]
        others += ["the adjusted ratio"] if len(found.adjusted()) else []
        others += ["the probabilities"] if found.hypotheses is not None else []
        yield (
            f"Strata of {strata.name} belong to the test and its interval; not part of them: "
            f"{', '.join(others)}."
        )
    events = np.bincount(found.codes[found.panel.subject_index], found.panel.count)
    sizes = np.bincount(found.codes, minlength=len(found.groups))
    for k, group in enumerate(found.groups):
        yield from small_group_words(found, group, int(sizes[k]))
        if events[k] == 0:
            yield (
                f"{group} has no events: its curve, and the size of every ratio of curves with it, "
                "is mostly the prior's; rely on the test."
            )
        if has_medians(found.models[group], "standardised"):
            effects = found.models[group].coefficients_
            assert effects is not None
            yield (
                f"{group} says next to nothing about the effect of {effects.least_known}: a few "
                "extreme draws would decide the mean of its standardised curve, so the posterior "
                "median is given."
            )
    yield from _misfits(found)


def small_group_words(found: Comparison, group: Hashable, size: int) -> Iterator[str]:
    """What the curve of a group of one or two subjects rests on."""
    if size > FEW:
        return
    if small_groups(found.models[group], found.tested):
        yield (
            f"{group} has {plural(size, 'subject')}: how much subjects differ is learned from all "
            "groups together, and its level leans on theirs; rely on the test."
        )
    elif size == 1:
        yield (
            f"{group} has one subject: its curve and band are about this subject, not about "
            "others like it, so that ratios of curves look surer than they are; rely on the test."
        )


def _misfits(found: Comparison) -> Iterator[str]:
    """Groups whose counts vary within subjects more than their law allows."""
    for group in found.groups:
        model = found.models[group]
        check = model.fit_check_
        if check is not None and check.varies_more:
            yield (
                f"Counts of {group} vary {check.excess:.2g} times as much within subjects as the "
                f"fitted model allows (p < 0.001): {burst_remedy(model)}."
            )


def _ratios(found: Comparison) -> Iterator[str]:
    axis = TimeAxis(found.panel.time_unit, found.panel.time_origin)
    unit = f" {axis.unit}" if axis.unit else ""
    whose = f", standardised ({words})" if (words := curve_words(found)) else ""
    for row in found.pairwise().itertuples():
        time = float(row.time)  # type: ignore[arg-type]
        end = axis.date(time) or f"{few_digits(time)}{unit}"
        yield (
            f"Mean number of events by {end}{whose}: {row.second} has "
            f"{row.ratio:.2f} (95% {row.low:.2f} to {row.high:.2f}) times that of {row.first}; "
            f"probability that it is lower {_probability(row.probability)}"
        )


def conclusions(found: Comparison) -> list[str]:
    """The permutation test with its interval, the three accounts, and what to make of both."""
    lines = [_test(found), *_pair_tests(found), *_kept(found)]
    if found.hypotheses is None:
        return lines
    return [*lines, _evidence(found.probabilities), *_factors(found), *_questions(found)]


def table_notes(found: Comparison) -> list[str]:
    """What stands below a table that has the numbers already: what was tested, and cautions."""
    questions = [] if found.hypotheses is None else _questions(found)
    return [f"{_test(found)}.", *questions, *_cautions(found), *found.notes]


def asked_by_test(found: Comparison) -> str:
    """The question of the permutation test, after "asks" or "asked"."""
    return _ASKS[found.test, found.tested.weights]


def _questions(found: Comparison) -> list[str]:
    """What test and probabilities ask, and what to do where they answer differently."""
    return [
        f"The test asks {asked_by_test(found)}; it needs no model. The probabilities weigh three "
        "accounts of the curves, taken as equally likely at first, and trust the model.",
        *_disagreement(found.p_value, found.probabilities, found.test),
    ]


def _test(found: Comparison) -> str:
    """The permutation test: what was permuted, how often, and the p-value."""
    tested, result = found.tested, found.tested.overall
    within = [
        f"{plural(len(column.levels), one, many)} of {column.name}"
        for column, one, many in (
            (tested.strata, "stratum", "strata"), (tested.blocks, "block", "blocks"),
            (None if tested.permutes_centres else tested.cluster, "centre", "centres"),
        )
        if column is not None
    ]  # fmt: skip
    whom = "whole centres" if tested.permutes_centres else "subjects"
    how = (
        f"all {result.n_labellings} ways to label the {whom.removeprefix('whole ')}"
        if result.exact
        else f"{tested.n_permutations:,} permutations of {whom}"
    )
    text = f"Permutation test of one common curve ({_kind(found, found.test)}): "
    text += f"p = {result.p_value:.4f} ({how}"
    text += f" within {' and '.join(within)})" if within else ")"
    if result.parts:
        each = ", ".join(f"{name} {p:.4f}" for name, p in result.parts.items())
        text += f"; its parts by themselves: {each}"
    return text


def _kind(found: Comparison, test: str) -> str:
    """What a test looks for, and what was taken out before."""
    tested = found.tested
    kind = test if tested.weights == "even" else f"{test}, {tested.weights}"
    if tested.adjustment is not None:
        kind += f", adjusted for {tested.adjustment.formula}"
    return kind


def _pair_tests(found: Comparison) -> Iterator[str]:
    """The tests of pairs: of two groups, a trend is a difference in level."""
    if len(found.groups) > 2:
        test = "level" if found.test == "trend" else found.test
        each = "; ".join(
            f"{row.second} to {row.first} p = {row.p_adjusted:.4f}"
            for row in found.pairwise().itertuples()
        )
        kind = _kind(found, test)
        yield f"Permutation tests of pairs ({kind}; p-values by Holm's method): {each}"


def _kept(found: Comparison) -> Iterator[str]:
    """Ratios that the test does not reject."""
    tested = found.tested
    if tested.scores is not None and len(found.groups) > 2:
        ratio, low, high = tested.trend_interval(0.95)
        yield (
            f"One unit of the score multiplies the rate by {_ratio(ratio)} (95% {_ratio(low)} to "
            f"{_ratio(high)}, the factors that the test does not reject); scores: "
            f"{scores_in_words(found)}"
        )
    elif len(found.groups) == 2:
        low, high = found.interval(0.95)
        which = "this test" if found.test in ("level", "trend") else "the test of the level"
        ratio = tested.ratio(0, 1)
        yield (
            f"Ratio of rates by {which}: {_ratio(ratio)} (95% {_ratio(low)} to {_ratio(high)}, the "
            "ratios that it does not reject)"
        )
    elif len(found.pairs) <= MOST_PAIRS:
        rows = [
            f"{row.second} to {row.first} {_ratio(row.ratio)} ({_ratio(row.low)} to "
            f"{_ratio(row.high)})"
            for row in found.intervals().itertuples()
        ]
        tests = "tests of pairs" if found.test == "level" else "tests of the level of pairs"
        yield (
            f"Ratios of rates by {tests} (with those that they do not reject: 95%, Holm): "
            f"{'; '.join(rows)}"
        )


def scores_in_words(found: Comparison) -> str:
    """The score of each group in the test of the trend."""
    scores = found.tested.scores
    if scores is None:
        return ""
    each = zip(found.groups, scores, strict=True)
    return ", ".join(f"{group} {few_digits(score)}" for group, score in each)


def _evidence(probabilities: dict[str, float]) -> str:
    """Which of the three accounts the data speak for, in one sentence."""
    order = sorted(probabilities, key=lambda name: -probabilities[name])
    best, *others = order
    rest = ", ".join(f"{ACCOUNTS[name]} {_share(probabilities[name])}" for name in others)
    sure = f"probability {_share(probabilities[best])}; {rest}"
    if probabilities[best] < LEANING:
        return f"The data do not tell the accounts apart ({ACCOUNTS[best]}: {sure})."
    verb = "speak for" if probabilities[best] >= SURE else "lean towards"
    return f"The data {verb} {ACCOUNTS[best]} ({sure})."


def _factors(found: Comparison) -> Iterator[str]:
    """The factor of each group under one shape."""
    base = found.groups[0]
    each = []
    for group in found.groups[1:]:
        low, high = found.factor_interval(0.95, pair=(base, group))
        middle, _ = found.factor_interval(1e-9, pair=(base, group))
        each.append(f"{group} {middle:.2f} (95% {low:.2f} to {high:.2f})")
    yield f"If the curves have one shape, rates relative to {base} are: {', '.join(each)}."


def _disagreement(p_value: float, probabilities: dict[str, float], test: str) -> list[str]:
    """Say what to do where test and probabilities point to different answers."""
    same = probabilities["same"]
    best = max(probabilities, key=lambda name: probabilities[name])
    of_shape = best == "curves" and test in ("level", "trend")
    if p_value > FOUND and same <= 1 - SURE:
        missed = "a difference of shape, which it does not look for" if of_shape else "it by chance"
        return [
            "Here only the probabilities speak for a difference. The test may have missed "
            f"{missed}, or the model may not fit: look at the ratio over time and at the "
            "diagnostics."
        ]
    if p_value > FOUND and best != "same" and probabilities[best] >= LEANING:
        what = "of shape, which the test does not look for" if of_shape else "of level"
        return [
            f"Here only the probabilities lean towards a difference ({what}); neither settles it: "
            "look at the ratio over time."
        ]
    if p_value <= FOUND and same > LEANING:
        return [
            "Here only the test speaks for a difference; the model finds data like these hardly "
            "less likely with one common curve. A p-value just below 0.05 is weak evidence; if it "
            "is far smaller, look at the diagnostics: the model may not fit."
        ]
    return []


def _share(value: float) -> str:
    """A probability to what its evidences are known, a few hundredths."""
    if not 0.005 <= value < 0.995:
        return "below 0.01" if value < 0.5 else "above 0.99"
    return f"{value:.2f}"


def _ratio(value: Any) -> str:
    """A ratio of rates, which may have no bound; one beside 1 does not read as 1."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinity"
    if 0.095 <= value < 100:
        digits = next((d for d in (2, 3, 4) if round(value, d) != 1), 2)
        return f"{value:.{digits}f}"
    return f"{value:.2g}"


def _probability(value: Any) -> str:
    """A share of draws, of which none or all is no certainty."""
    if not 0.0005 <= value < 0.9995:
        return "below 0.001" if value < 0.5 else "above 0.999"
    return f"{value:.3f}"
