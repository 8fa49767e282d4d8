"""Table 3: LocalEM and GP4C on the real data, beside ours, a constant rate and its frailty."""

from __future__ import annotations

import numpy as np

from gp4c.paper import paper_numbers
from gp4c.paper.exhibits.real_study import (
    RATIO_TITLES,
    counts,
    deviation,
    difference,
    for_each_ratio,
    split_tasks,
    splits,
)
from gp4c.paper.sections import (
    NAMES,
    Found,
    Lines,
    Plan,
    Section,
    Target,
    column,
    no_later,
    number,
    plus_minus,
    spread,
    table,
    trials_text,
)
from gp4c.paper.studies.real import SETS

NAME = "table3"
PUBLISHED = ("LocalEM", "GP4C")
#: sets on which a smooth rate must clearly beat a constant one, and by how many nats
CLEARLY, NATS = ("Nausea A", "Nausea B", "Bladder A"), 5.0
#: nats that ours may lie below the yardstick
SLACK = 1.0

later = no_later
#: shared with Table 4
tasks = split_tasks


def render(plan: Plan, found: Found) -> Section:
    """Against the paper, against each other, time; per ratio."""
    section = Section("Table 3: the real data sets, GP4C and LocalEM")
    section.lines += _introduction()
    section.lines += for_each_ratio(found, "{}", _ratio_lines)
    if all(splits(found, name, ratio) for name in SETS for ratio in RATIO_TITLES):
        section.lines += _which_ratio(found)
    if all(splits(found, name, "2/3") for name in SETS):
        section.targets += _targets(found)
        section.summary += _summary(found)
    return section


def _summary(found: Found) -> Lines:
    """What ours gains on held-out subjects."""
    ranges = []
    for other in ("GP4C", "LocalEM", "HPP gamma"):
        gains = [difference(splits(found, name, "2/3"), "default", other)[0] for name in SETS]
        ranges.append(f"{number(min(gains), 1, True)} to {number(max(gains), 1, True)} nats on "
                      f"{NAMES[other]}")  # fmt: skip
    n = trials_text(counts(found, "2/3"))
    return [
        "Ours (default, with a frailty) on the held-out third of the eight real sets, mean gain "
        f"per split over {n}: {'; '.join(ranges)}."
    ]


def _introduction() -> Lines:
    return [
        "18 inducing inputs for the paper's estimators (`LocalEM.paper()`, "
        "`GP4C.paper(0.3, n_inducing=18)`); *ours* is `GP4C()`, which decides on a gamma frailty "
        "itself and integrates it out for held-out subjects; *HPP* is one constant rate, *HPP + "
        "gamma* the same with a gamma frailty: the yardstick.", "",
        "The paper does not say how many subjects it held out. Its published program halves them; "
        "its levels of L_test, which grow with the number of held-out subjects, point to one "
        "third. Both are shown. All methods see the same splits; differences are paired, mean ± "
        "standard error. One split moves L_test by tens of nats, so means over 40 splits, the "
        "paper's and ours, move by several. *z* is our mean minus the paper's in standard errors "
        "of such a difference.", "",
        "L_test of GP4C and of ours is Appendix D's mean over 4,000 draws of the posterior. Where "
        "few of them agree with the held-out counts it is too low, by up to 29 nats on single "
        "splits; `GP4C.score` is not, and the page of benchmarks has the same splits scored by "
        "it. Differences from HPP and LocalEM, which have no draws, are therefore smaller here "
        "than they are.", "",
        "*Why* our means differ from the paper's: **chance**, both within two standard errors; "
        "**share**, both methods off in the same direction, as from another share of subjects "
        "held out, or other subjects; **bandwidth**, LocalEM alone, whose bandwidth depends on "
        "the order of the file and whose EM stops early; **early stop**, GP4C alone, whose random "
        "start and early stop differ.", "",
    ]  # fmt: skip


def _ratio_lines(found: Found, ratio: str, names: list[str]) -> Lines:
    parts = (_against_paper, _against_each_other, _times)
    return [line for part in parts for line in part(found, ratio, names)]


def _against_paper(found: Found, ratio: str, names: list[str]) -> Lines:
    head = ["L_test, 50 draws"]
    for method in PUBLISHED:
        head += [f"{method}, paper", "here ± sd", "difference", "z"]
    head += ["GP4C − LocalEM, paper", "here", "why"]
    rows = []
    for name in names:
        records = splits(found, name, ratio)
        row = [name]
        for method in PUBLISHED:
            values = column(records, method, "l_test_50")
            theirs = paper_numbers.TABLE4[name][method].l_test
            row += [number(theirs), plus_minus(float(values.mean()), spread(values)),
                    number(float(values.mean()) - theirs, 1, True),
                    number(deviation(records, method, name), 1, True)]  # fmt: skip
        gap = (
            paper_numbers.TABLE4[name]["GP4C"].l_test - paper_numbers.TABLE4[name]["LocalEM"].l_test
        )
        gain = difference(records, "GP4C", "LocalEM", "l_test_50")
        away = {method: deviation(records, method, name) for method in PUBLISHED}
        rows.append([*row, number(gap, 1, True), plus_minus(*gain, 1, True), _reason(away)])
    return table(head, rows)


def _reason(away: dict[str, float]) -> str:
    """Why our means are not the paper's, from their distances in standard errors."""
    far = {method: z for method, z in away.items() if abs(z) > 2}
    if not all(np.isfinite(list(away.values()))):
        return "too few splits"
    if not far:
        return "chance"
    if len(far) == len(away) and min(far.values()) * max(far.values()) > 0:
        return "share"
    return ", ".join({"LocalEM": "bandwidth", "GP4C": "early stop"}[method] for method in far)


def _against_each_other(found: Found, ratio: str, names: list[str]) -> Lines:
    others = ("LocalEM", "GP4C", "HPP", "HPP gamma")
    head = ["L_test, 4,000 draws", "ours", *(f"ours − {NAMES[other]}" for other in others),
            "ours − HPP + gamma, per subject", "frailty chosen"]  # fmt: skip
    rows = []
    for name in names:
        records = splits(found, name, ratio)
        mean = float(column(records, "default", "l_test").mean())
        gains = [plus_minus(*difference(records, "default", o), 1, True) for o in others]
        each = difference(records, "default", "HPP gamma", "l_test_subjects")
        frail = np.mean([r["methods"]["default"]["effect"] is not None for r in records])
        rows.append([name, number(mean), *gains, plus_minus(*each, 1, True), f"{100 * frail:.0f}%"])
    return table(head, rows)


def _times(found: Found, ratio: str, names: list[str]) -> Lines:
    shown = ("LocalEM", "GP4C", "default", "HPP gamma")
    head = ["T [s], median", "LocalEM, paper", "GP4C, paper", *(f"{NAMES[m]}, here" for m in shown)]
    rows = []
    for name in names:
        records = splits(found, name, ratio)
        theirs = [number(paper_numbers.TABLE4[name][m].seconds, 1) for m in PUBLISHED]
        ours = [number(float(np.median(column(records, m, "seconds"))), 2) for m in shown]
        rows.append([name, *theirs, *ours])
    return table(head, rows)


def _which_ratio(found: Found) -> Lines:
    """Say which ratio agrees with the paper."""
    nearer, z_squares = 0, {"1/2": 0.0, "2/3": 0.0}
    pairs = [(name, method) for name in SETS for method in PUBLISHED]
    for name, method in pairs:
        away = {r: deviation(splits(found, name, r), method, name) for r in z_squares}
        nearer += abs(away["2/3"]) < abs(away["1/2"])
        for ratio, z in away.items():
            z_squares[ratio] += z**2
    rms = {ratio: float(np.sqrt(total / len(pairs))) for ratio, total in z_squares.items()}
    verdict = "two thirds for training" if rms["2/3"] < rms["1/2"] else "halves"
    return [
        "### Which ratio did the paper use?", "",
        f"Of the {len(pairs)} means of LocalEM and GP4C, {nearer} lie nearer to the paper's with "
        "two thirds for training and the others with halves; the root mean square of z is "
        f"{number(rms['2/3'])} with two thirds and {number(rms['1/2'])} with halves. By this "
        f"**{verdict}** agrees better. What stays outside "
        "chance, whichever the ratio: LocalEM's choice of bandwidth on the nausea data "
        "(contiguous folds in the order of the file) and the early stop of its EM, GP4C's random "
        "start and early stop, and the paper's own splits, which are not published.", "",
    ]  # fmt: skip


def _targets(found: Found) -> list[Target]:
    """The criterion of the frailty model: held-out likelihood on 2/3 to 1/3 splits, paired."""
    gain = {
        other: {name: difference(splits(found, name, "2/3"), "default", other) for name in SETS}
        for other in ("HPP gamma", "LocalEM", "GP4C")
    }
    worst = min(gain["HPP gamma"], key=lambda name: gain["HPP gamma"][name][0])
    targets = [
        Target(
            "Real sets: ours at least HPP + gamma − 1 nat on every set",
            f"smallest: {plus_minus(*gain['HPP gamma'][worst], 1, True)} ({worst})",
            gain["HPP gamma"][worst][0] >= -SLACK,
        )
    ]
    for name in CLEARLY:
        value = gain["HPP gamma"][name]
        targets.append(
            Target(f"{name}: ours at least 5 nats above HPP + gamma",
                   plus_minus(*value, 1, True), value[0] >= NATS)
        )  # fmt: skip
    for other in ("LocalEM", "GP4C"):
        least = min(gain[other], key=lambda name: gain[other][name][0])
        value = gain[other][least]
        targets.append(
            Target(f"Real sets: ours above {other} on every set",
                   f"smallest: {plus_minus(*value, 1, True)} ({least})", value[0] > 0)
        )  # fmt: skip
    return targets
