"""Tables of tests and forecasts in the guides, from committed results: ``make readme``."""

from __future__ import annotations

from readme_tables import RESULTS, read


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def rejections():
    """How often each question of a comparison finds a difference, without one and with one."""
    found = read(RESULTS / "permutation_size.json")["rejected"]
    names = ("level", "early", "late", "crossing", "curve", "any")
    rows = [(law, *(f"{shares[name]:.3f}" for name in names)) for law, shares in found.items()]
    ignored = found["the same, strata ignored"]["level"]
    # points of power behind the best of the other questions
    behind = {law: 100 * (max(s.values()) - s["any"]) for law, s in found.items()}
    ratio = [gap for law, gap in behind.items() if law.startswith("rate ratio")]
    shape = [gap for law, gap in behind.items() if law.startswith(("early", "late", "crossing"))]
    return (
        f"{table(('', *names), rows)}\n\n"
        f'A constant ratio is best seen by the level; "any" is {min(ratio):.0f} to '
        f"{max(ratio):.0f} points behind the best there, and at most "
        f"{max(shape):.0f} points elsewhere.\n"
        "Ignoring strata that matter gives false findings in "
        f"{ignored:.0%} of the trials."
    )


_TESTS = {
    "gp4c": "gp4c, level", "negative-binomial Wald": "negative-binomial Wald",
    "robust Poisson": "robust Poisson", "Sun-Fang type": "Sun–Fang type",
}  # fmt: skip


def rivals():
    """Size, and power at the same size, beside the tests that a statistician might choose."""
    found = read(RESULTS / "power_peers.json")["kinds"]
    rows = [
        (law, *(f"{row[test]['size']:.3f} ({row[test]['adjusted power']:.3f})" for test in _TESTS))
        for law, row in found.items()
    ]
    behind = max(row["behind"] for row in found.values())
    return (
        f"{table(('', *_TESTS.values()), rows)}\n\n"
        "At the same size gp4c's test of the level is at most "
        f"{100 * behind:.1f} points behind the best of them."
    )


def adjusted():
    """Tests that take covariates out, beside those that do not."""
    found = read(RESULTS / "adjusted_comparison.json")
    names = ("level", "curve", "any")
    rows = [
        (law.replace("null", "no difference"),
         *("{adjusted:.3f} ({unadjusted:.3f})".format(**row[name]) for name in names))
        for law, row in found["share with p <= 0.05"].items()
    ]  # fmt: skip
    held = found["coverage"]["auto"]
    head = (f"{found['trials']} trials", *names)
    return (
        f"{table(head, rows)}\n\n"
        f"In {found['fits']} trials with {found['fitted subjects'] // 2} subjects per arm the 95% "
        f"interval of the adjusted ratio held it {held:.0%} of the time."
    )


def types():
    """Intervals of the correlation between types, and what a joint fit gains."""
    found = read(RESULTS / "event_types.json")["summary"]
    return (
        f"`benchmarks/event_types.py`. *Simulated*: {found['n_sets']} data sets of 100 subjects "
        "with 6 visits and about 3 and 2 events per subject,\nwhose effects are correlated by "
        f"`0.7`. The 95% interval of the correlation holds the truth in {found['held_95']:.1%}, "
        f"the 50% interval in\n{found['held_50']:.1%}; posterior means average "
        f"{found['mean_of_rho']:.2f}. The joint fit scores {found['score_gain']:.1f} ± "
        f"{found['score_gain_error']:.1f} nats above separate fits on 40 new subjects.\n"
        f"*Skin data*, a random third held out, {found['n_splits']} splits: "
        f"{found['skin_gain']:.1f} nats above separate fits on average\n(standard deviation "
        f"between splits {found['skin_gain_deviation']:.1f}). "
        f"A joint fit takes {found['cpu_seconds']:.1f} seconds of processor time on the "
        f"simulated data\nand {found['skin_cpu_seconds']:.1f} on "
        "two thirds of the skin data (medians)."
    )
