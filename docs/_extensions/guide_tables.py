"""Tables of guides and of the record, from committed results: ``make readme``.

Each stands between two comments of its page; a test compares it with what is made here.
"""

from __future__ import annotations

import path_section
import scale_tables
import study_tables
from readme_tables import RESULTS, ROOT, read, renew
from study_tables import table

DOCS = ROOT / "docs"


# -- calibration -----------------------------------------------------------------------------------

_BANDS = {"rate": "event rate", "sum": "mean number of events",
          "end": "mean number at the end", "forecast": "forecasts of a new subject"}  # fmt: skip


def calibration_table():
    """Coverage of bands and forecasts, and how far it is off in halves of the data sets."""
    found = read(RESULTS / "burst_calibration.json")["summary"]
    rows = []
    for level in (0.5, 0.75, 0.9, 0.95):
        pairs = [found["all"].get(f"{name} {level:g}") for name in _BANDS]
        cells = ("" if pair is None else f"{pair[0]:.1f} ± {pair[1]:.1f}" for pair in pairs)
        rows.append((f"{level:.0%}", *cells))
    halves = [half for name, half in found.items() if name.startswith(("low ", "high "))]
    farthest = max(_off(key, pair) for half in halves for key, pair in half.items())
    return (
        f"{table(('band', *_BANDS.values()), rows)}\n\n"
        "In halves of the data sets by frailty, by bursts or by events per subject, the coverage "
        f"farthest from\nits level is {farthest:.1f} points away."
    )


def _off(key, pair):
    """Points between a coverage and its level; `key` ends with the level."""
    return abs(pair[0] - 100 * float(key.rpartition(" ")[2]))


def oracle_sentence():
    """What is left to chance where all but the level is known."""
    found = read(RESULTS / "burst_calibration.json")["summary"]["oracle"]
    shares = ", ".join(f"{share:.1f}% for {float(level):.0%}" for level, share in found.items())
    return (
        f"An oracle that knows all but the level, and takes that from subjects' totals: {shares}."
    )


# -- classes and covariates ------------------------------------------------------------------------


def classes_table():
    """How many subjects are put right, and how often one class is found to be one."""
    found = read(RESULTS / "classes.json")["summary"]
    names = {"crossing": "two classes that cross",
             "level": "two classes, levels a factor of 4 apart"}  # fmt: skip
    rows = [
        (name, row["data_sets"], f"{row['right']:.1%}", f"{row['bayes']:.1%}",
         f"{row['clear']:.0%}", f"{row['seconds']:.1f}")
        for key, name in names.items() for row in (found[key],)
    ]  # fmt: skip
    ones = [row for key, row in found.items() if key.startswith("one,")]
    right = sum(round(row["one_class"] * row["data_sets"]) for row in ones)
    head = ("", "data sets", "subjects right", "by the Bayes rule",
            "odds of two over one above 20", "seconds")  # fmt: skip
    n_ones = sum(row["data_sets"] for row in ones)
    return (
        f"{table(head, rows)}\n\n"
        f'With one true class, "auto" finds one in {right} of {n_ones} data sets, whether subjects '
        "are alike,\nhave frailties, or have frailties and bursts."
    )


def covariates_table():
    """Share of intervals of rate ratios that hold the truth, by law and standard error."""
    result = read(RESULTS / "covariate_coverage.json")
    found = result["coverage"]
    errors = ("robust", "jackknife", "model")
    rows = [
        (law, fitted, covariate, *(f"{row[error]:.3f}" for error in errors))
        for setting, rows in found.items() for law, fitted in (setting.split("; "),)
        for covariate, row in rows.items()
    ]  # fmt: skip
    shown = table(("counts", "fitted", "covariate", "robust", "jackknife", "model-based"), rows)
    of = "" if "stands_on" in result else " The estimator was an earlier one, of a bound over β."
    return (
        f"{shown}\n\n{result['simulations']} simulated trials of {result['subjects']} subjects "
        f"with drop-out that depends on a covariate.{of}"
    )


# -- growth ---------------------------------------------------------------------------------------

_FORMS = {
    "Laplace, Poisson": "Laplace, Poisson", "Laplace, permutation": "Laplace, permuted",
    "MIL-HDBK-189C, Poisson": "189C, Poisson", "MIL-HDBK-189C, permutation": "189C, permuted",
}  # fmt: skip


def trends_table():
    """How often a trend is found that is not there."""
    found = read(RESULTS / "growth.json")
    head = (f"{found['fleets without a trend']} fleets without a trend, share with p ≤ 0.05",
            *_FORMS.values())  # fmt: skip
    rows = [
        (name, *(f"{shares[form]:.3f}" for form in _FORMS))
        for name, shares in found["without a trend"].items()
    ]
    return table(head, rows)


def shape_sentence():
    """How often intervals of the shape hold it, and how close another package is."""
    found = read(RESULTS / "growth.json")
    held = found["90% intervals of the shape"]
    beside = found["beside SurPyval"]
    differ = max(panel["differ"] for panel in beside)
    return (
        f"On {found['fleets']} simulated fleets of 25 such machines 90% intervals of β held the "
        f"truth in {held['frailty and bursts']:.0%} of\nthem with both, and in "
        f"{held['neither']:.0%} with neither. Where no count is zero, SurPyval's estimates are the "
        f"same: on\n{len(beside)} panels parameters differ by {differ:.1e} of their value at most."
    )


# -- forecasts -------------------------------------------------------------------------------------


def forecasts_table():
    """Probability transforms of counts that were forecast, by kind of data."""
    found = read(RESULTS / "forecast_pit.json")["forecasts"]
    rows = [
        (
            name if " " in name else f"simulated, {name} frailty",
            f"{row['forecasts']:,}",
            *(f"{row[key]:.2f}" for key in ("ks_p_value", "chi_square_p_value")),
            *(f"{row[key]:.3f}" for key in ("below_0.05", "above_0.95")),
            f"{row['inside_90%_interval']:.2f}",
        )
        for name, row in found.items()
    ]
    head = ("counts", "forecasts", "KS, p", "χ², p", "PIT < 0.05", "PIT > 0.95",
            "in the 90% interval")  # fmt: skip
    return table(head, rows)


# -- power -----------------------------------------------------------------------------------------


def power_table():
    """Simulated power beside the formula's, and how often equal groups are told apart."""
    found = read(RESULTS / "power_check.json")
    rows = [
        (name, row["n_per_arm"], f"{row['simulated']:.1%}", f"{row['formula']:.1%}")
        for kind in ("right", "shown") for name, row in found[kind].items()
    ]  # fmt: skip
    size = [row["rejected"] for row in found["size"].values()]
    head = ("", "subjects per arm", "simulated power", "by the formula")
    return (
        f"{table(head, rows)}\n\n"
        f"Each line is of {found['trials']:,} trials, with an error of about a point. Without a "
        f"difference the test rejects\n{min(size):.1%} to {max(size):.1%} of trials at the level "
        f"{found['alpha']:.0%}, also with bursts, drop-out and strata of four subjects."
    )


#: what each page has between its marks
TABLES = {
    DOCS / "calibration.md": {"calibration": calibration_table},
    DOCS / "calibration_record.md": {
        "calibration": calibration_table, "oracle": oracle_sentence,
    },
    DOCS / "guide" / "classes.md": {"classes": classes_table},
    DOCS / "guide" / "compare.md": {
        "rejections": study_tables.rejections,
        "rivals": study_tables.rivals,
        "adjusted": study_tables.adjusted,
    },
    DOCS / "guide" / "types.md": {"types": study_tables.types},
    DOCS / "guide" / "forecast.md": {"forecasts": forecasts_table},
    DOCS / "guide" / "growth.md": {"trends": trends_table, "shape": shape_sentence},
    DOCS / "guide" / "power.md": {"power": power_table},
    DOCS / "guide" / "scale.md": {"sizes": scale_tables.sizes, "cost": scale_tables.cost},
    DOCS / "maths_covariates.md": {"coverage": covariates_table},
}  # fmt: skip


def renewed(page):
    """A page with its tables made anew."""
    text = page.read_text(encoding="utf-8")
    if page == path_section.PAGE:
        return path_section.with_section(text)
    return renew(text, TABLES[page])


if __name__ == "__main__":
    for page in (*TABLES, path_section.PAGE):
        page.write_text(renewed(page), encoding="utf-8")
