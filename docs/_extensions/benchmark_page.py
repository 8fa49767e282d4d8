"""The page of benchmarks, made from ``benchmarks/results/*.json``: no number is typed by hand."""

from __future__ import annotations

import json
from pathlib import Path

#: results that have pages of their own, or are for developers only
ELSEWHERE = ("calibration", "calibration_development", "house", "peers")
#: rows of a table that nobody has arranged
_MOST_ROWS = 40

HEAD = """# Benchmarks

This page is made from the files in `benchmarks/results` when the site is built; `make bench`
measures again. Times were taken on machines that others used as well, so compare within a table
rather than between tables. How well bands cover is on a page of its own, [](calibration.md); what
each benchmark does is said in `benchmarks/README.md`.
"""


def number(value):
    """A figure as people read it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if not isinstance(value, int | float):
        return str(value).replace("|", "\\|")
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 10):
        return f"{int(value):,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(header, rows):
    """A Markdown table; the first column is text, the others figures."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    lines += ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def by_row(mapping, columns, first=""):
    """A table with a row for each entry; `columns` says which of its values, under what heading."""
    rows = [[name, *(entry.get(key) for key in columns)] for name, entry in mapping.items()]
    return table([first, *columns.values()], rows)


# -- pages of single benchmarks ------------------------------------------------------------------


def startup(found):
    limits = found["limits"]
    rows = [
        [f"`{name}`", took["wall"], took["cpu"], limits.get(name)]
        for name, took in found["runs"].items()
    ]
    yield table(["command", "wall time, s", "processor time, s", "limit, s"], rows)
    yield (
        f"Best of several runs on {found['processors']} processors with a load of "
        f"{number(found['load'])} from other work, files in the disk cache. Limits are held "
        f"against {'wall' if found['judged_by'] == 'wall' else 'processor'} time."
    )
    for command, kinds in found["imports"].items():
        names = list(dict.fromkeys(name for shares in kinds.values() for name in shares))
        rows = [[name, *(shares.get(name) for shares in kinds.values())] for name in names]
        yield f"Imports of `{command}`, in seconds by package (cold: without compiled byte code):"
        yield table(["package", *kinds], rows)


def speed(found):
    yield "The paper's bound with b = 0.3 on Synthetic A: gp4c, and the paper's algorithm in NumPy."
    rows = [
        [t["seed"], t["ours_seconds"], t["naive_seconds"], t["ratio"],
         t["ours_objective"] - t["naive_objective"]]
        for t in found["trials"]
    ]  # fmt: skip
    header = ["data set", "gp4c, s", "paper's algorithm, s", "ratio", "nats that gp4c is higher"]
    yield table(header, rows)
    growth = found["growth"]
    yield (
        f"All five together: {number(found['ratio']['naive'])} times as fast. An evaluation grows "
        f"with the power {number(growth['end_points_slope'])} of the number of end points and "
        f"{number(growth['inducing_slope'])} of the number of inducing inputs."
    )


def synthetic_a(found):
    columns = {
        "mise_median": "MISE, median", "mise_sd": "sd", "l_test_gain": "L_test relative to b = 0.3",
        "l_test_gain_error": "standard error", "band_width": "width of 50% band",
    }  # fmt: skip
    yield f"The paper's square wave, {len(found['trials'])} trials."
    yield by_row(found["summary"], columns)


def classical(found):
    yield "Whole skin cancer data, seconds:"
    yield table(["estimator", "s"], list(found["skin_full_seconds"].items()))
    columns = {
        "reference_seconds": "direct algorithm, s", "paper_seconds": "LocalEM.paper(), s",
        "default_seconds": "LocalEM(), s", "ratio_default": "ratio",
    }  # fmt: skip
    yield by_row(found["local_em"], columns, "LocalEM on")


def distinct(found):
    columns = {"gp4c_seconds": "gp4c, s", "polars_seconds": "polars, s", "ratio": "ratio"}
    yield f"Reducing {found['rows']:,} rows to distinct intervals."
    yield by_row(found["results"], columns, "intervals")


def permutation_size(found):
    columns = {name: name for name in ("level", "early", "late", "crossing", "curve", "any")}
    yield (
        f"Share of {found['simulations']:,} simulated trials in which equality was rejected at "
        f"{found['nominal']:.0%}, with {found['subjects_per_arm']} subjects per arm."
    )
    yield by_row(found["rejected"], columns, "truth")


def power_check(found):
    yield (
        f"Power of the permutation test of the level in {found['trials']:,} simulated trials with "
        f"the size that the negative-binomial formula gives for {found['target']:.0%}. With equal "
        "arms and a moderate ratio the two must agree within 3 points (the first lines)."
    )
    columns = {"n_per_arm": "first arm", "simulated": "simulated", "error": "± error",
               "formula": "formula"}  # fmt: skip
    yield by_row(found["right"] | found["shown"], columns, "trial")
    yield f"Share of trials without a difference that are rejected at {found['alpha']:.0%}."
    yield by_row(found["size"], {"rejected": "rejected", "error": "± error"}, "trial")


def false_evidence(found):
    yield (
        "Probabilities of the three accounts where arms have one constant rate with frailty and "
        "bursts, and where 300 units differ by a factor of 1.4: shares of simulated data sets "
        "with their errors."
    )
    rows = [
        [name, what, *(value if isinstance(value, list) else (value, ""))]
        for name, shares in found["summary"].items()
        for what, value in shares.items()
    ]
    yield table(["truth", "", "share", "error"], rows)


def forecast_pit(found):
    columns = {
        "forecasts": "forecasts", "fits": "fits", "ks_distance": "KS distance", "ks_p_value": "p",
        "chi_square_p_value": "χ², p", "below_0.05": "PIT < 0.05", "above_0.95": "PIT > 0.95",
        "inside_90%_interval": "in the 90% interval",
    }  # fmt: skip
    yield (
        "Forecasts of the next visit's count of subjects not in the fit, given their earlier "
        "visits: how far the randomised PIT is from uniform. Simulated with gamma and lognormal "
        "frailty, and the real data sets."
    )
    yield by_row(found["forecasts"], columns)


def modulation_fleets(found):
    held = found["summary"]
    yield (
        f"{held['fleets']} simulated fleets of 40 units that differ, age, follow the calendar and "
        "fail in bursts; a quarter is retired. The forecast is of the next half year, for the "
        "units in service."
    )
    rows = [
        ["trend, 95%", held["trend"], held["growth"], 0.02],
        ["amplitude of the season, 95%", held["amplitude"], held["size"], 0.4],
        ["phase of the season, 95%", held["phase"], None, None],
        ["forecast, 90%", held["forecast"], None, None],
        ["forecast, 90%, randomised at its ends", held["randomised"], None, None],
    ]
    yield table(["interval", "share held", "mean estimate", "truth"], rows)
    yield (
        f"Forecasts are off by {held['bias of forecasts']:+.1%} in all. The mean square of error "
        f"over deviation is {number(held['spread'])}; 1 would be right. These fleets follow "
        "their trend exactly, and the model allows for deviations from it too."
    )


def heldout(found):
    yield (
        "Held-out log-likelihood of the default minus that of others, in nats per split (mean ± "
        "standard error), on the same random splits of the paper's real sets, two thirds to fit."
    )
    rivals = {
        "HPP both": "constant rate, frailty and bursts", "HPP gamma": "constant rate, frailty",
        "GP4C": "paper's GP4C, b = 0.3", "LocalEM": "LocalEM",
    }  # fmt: skip
    rows = [
        [name, entry["splits"], *("{:+.1f} ± {:.1f}".format(*entry[rival]) for rival in rivals)]
        for name, entry in found["sets"].items()
    ]
    yield table(["set", "splits", *rivals.values()], rows)


def log_quadratic(found):
    rows = [[t["kind"], t["J"], t["n"], t["ms"], t["eigh_ms"]] for t in found["timings"]]
    yield "E ln ∫f² of J intervals with n nodes each, and the eigenvalues alone, in milliseconds."
    yield table(["posterior", "J", "n", "ms", "eigenvalues, ms"], rows)
    worst = max(abs(case["z"]) for case in found["agreement"])
    yield (
        f"{len(found['agreement'])} cases against {found['draws']:,} random draws each: at most "
        f"{number(worst)} standard errors apart."
    )


#: file name -> title of its section, and what to show of it
SECTIONS = {
    "startup": ("Starting up", startup),
    "speed": ("Speed of a fit", speed),
    "synthetic_a": ("Synthetic A", synthetic_a),
    "log_quadratic": ("The exact count term", log_quadratic),
    "classical": ("Classical estimators", classical),
    "distinct": ("Large tables", distinct),
    "permutation_size": ("The permutation test", permutation_size),
    "power_check": ("Power and sample size", power_check),
    "false_evidence": ("Probabilities of a difference", false_evidence),
    "heldout": ("Held-out subjects", heldout),
    "forecast_pit": ("Forecasts of the next visit", forecast_pit),
    "modulation_fleets": ("Forecasts of fleets", modulation_fleets),
}


def anything(found):
    """Results that nobody has described yet: plain values as a list, dicts of dicts as tables."""
    plain = {k: v for k, v in found.items() if not isinstance(v, dict | list)}
    if plain:
        yield ", ".join(f"{_words(k)}: {number(v)}" for k, v in plain.items()) + "."
    flat = dict(_entries(found))
    columns = list(dict.fromkeys(key for entry in flat.values() for key in entry))
    if flat:
        some = dict(list(flat.items())[:_MOST_ROWS])
        yield by_row(some, {key: _words(key) for key in columns})


def _entries(found, path=()):
    """Innermost dicts of plain values, under the path that leads to them."""
    for key, value in found.items():
        if isinstance(value, dict):
            plain = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
            if plain and key not in ("machine", "software", "versions"):
                yield ", ".join([*path, str(key)]), plain
            yield from _entries(value, (*path, str(key)))


def _words(key):
    return str(key).replace("_", " ")


def benchmark_page(folder):
    """The whole page as Markdown, from the results in a folder."""
    results = {path.stem: path for path in sorted(Path(folder).glob("*.json"))}
    names = [name for name in SECTIONS if name in results]
    names += [name for name in results if name not in SECTIONS and name not in ELSEWHERE]
    parts = [HEAD]
    for name in names:
        found = json.loads(results[name].read_text(encoding="utf-8"))
        title, show = SECTIONS.get(name, (_words(name).capitalize(), anything))
        try:
            shown = list(show(found))
        except (KeyError, TypeError):  # its form has changed: show what there is
            shown = list(anything(found))
        parts += [f"## {title}", *shown]
    return "\n\n".join(parts) + "\n"
