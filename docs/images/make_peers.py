"""Draws the picture of docs/peers.md from the committed result: ``make pictures``."""

import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
RESULT = HERE.parents[1] / "benchmarks" / "results" / "peers.json"
MARKS = {"none": "o", "frailty": "s", "both": "^"}
WORDS = {"none": "subjects alike", "frailty": "subjects differ", "both": "... and events in bursts"}


def draw(found):
    """Errors and coverage of all peers, a mark for each kind of panel."""
    peers = [name for name, row in found["by peer"].items() if row["rate_error"] is not None]
    place = {name: -k for k, name in enumerate(peers)}
    figure, (errors, bands) = plt.subplots(
        1, 2, figsize=(9.5, 0.42 * len(peers) + 1.6), sharey=True, layout="constrained"
    )
    for row in (one for one in found["rows"].values() if one["peer"] in place):
        # above the line where subjects have many events, below where they have few; growth hollow
        at = place[row["peer"]] + (0.13 if row["events"] > 10 else -0.13)
        hollow = {"markerfacecolor": "white"} if row["rate"] != "wavy" else {}
        mark = {"marker": MARKS[row["law"]], "color": f"C{list(MARKS).index(row['law'])}", **hollow}
        if row["rate_error_ratio"] is not None:
            errors.plot(1 / row["rate_error_ratio"][0], at, markersize=5, **mark)
        if row["rate_coverage"] is not None:
            bands.plot(row["rate_coverage"], at, markersize=5, **mark)
    errors.axvline(1.0, color="0.6", lw=0.8, zorder=0)
    bands.axvspan(0.92, 0.98, color="0.9", zorder=0)
    errors.set(
        xscale="log", xlabel="squared error of the rate, gp4c = 1", yticks=list(place.values())
    )
    errors.set_yticklabels(peers)
    errors.set_xticks([0.2, 0.5, 1, 2, 5, 10], ["0.2", "0.5", "1", "2", "5", "10"])
    errors.minorticks_off()
    bands.set(xlim=(0, 1.03), xlabel="95% bands that hold the rate (grey: 92% to 98%)")
    bands.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    for law, mark in MARKS.items():
        bands.plot([], [], mark, color=f"C{list(MARKS).index(law)}", label=WORDS[law])
    bands.plot([], [], "o", color="C0", markerfacecolor="white", label="rate grows, no waves")
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    return figure


if __name__ == "__main__":
    picture = draw(json.loads(RESULT.read_text(encoding="utf-8")))
    picture.savefig(HERE / "peers.png", dpi=130)
