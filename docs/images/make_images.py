"""Draws the pictures of the README and the guides and keeps their numbers: ``make pictures``."""

import json
import sys
import warnings
from pathlib import Path

import gp4c
from gp4c.analysis.compare_groups import compare
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.reporting.figures.panel_picture import save_panel_picture
from gp4c.reporting.figures.plot_style import save_plot
from gp4c.reporting.figures.plots import plot_groups, plot_intensity, plot_ratio
from gp4c.reporting.page.html_report import Report

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
from provenance import ENGINE, stamp  # noqa: E402

DPI = 130


def main() -> None:
    panel = gp4c.load_dataset("bladder")
    save_panel_picture(panel, HERE / "bladder-panel.png", dpi=110)
    found = compare(panel, by="treatment")
    report = Report(found.models, panel, "treatment", found, title="The bladder trial")
    curves, placebo = report.curves, panel.where(treatment="placebo")

    def save(name, draw):
        save_plot(draw, HERE / name, dpi=DPI)

    save("bladder-arms.png", lambda ax: plot_groups(curves, ax, title="treatment"))
    save("bladder-ratio.png", lambda ax: plot_ratio(found, ax, curve="cumulative"))
    save("bladder-intensity.png", lambda ax: plot_intensity(curves["placebo"], ax, panel=placebo))
    draw_bursts(panel)
    take_picture_of(report)
    result = stamp((*ENGINE, "analysis/groups"), finished=True) | numbers(found)
    (HERE / "bladder.json").write_text(json.dumps(result, indent=1) + "\n")


def draw_bursts(panel) -> None:
    """The arms' rates without and with bursts."""
    import matplotlib.pyplot as plt
    import numpy as np

    times = np.linspace(*panel.window, 400)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for arm, ax in zip(("placebo", "thiotepa"), axes, strict=True):
        part = panel.where(treatment=arm)
        with warnings.catch_warnings():  # of what the picture is to show
            warnings.simplefilter("ignore", gp4c.exceptions.GP4CWarning)
            single = gp4c.GP4C(effect="gamma", bursts=False).fit(part)
        model = gp4c.GP4C().fit(part)
        ax.fill_between(times, *model.intensity_band(times), color="0.85", lw=0)
        ax.plot(times, model.intensity(times), color="C0", label="with bursts, 95% band")
        ax.plot(times, single.intensity(times), "--", color="C3", label="without")
        ax.set(title=arm, xlabel="months")
    axes[0].set(ylabel="new tumours per month", ylim=(0.0, 0.6))
    axes[0].legend(frameon=False)
    figure.savefig(HERE / "bladder-bursts.png", dpi=DPI)
    plt.close(figure)


def numbers(found) -> dict:
    """What the README says of the trial."""
    end = found.panel.window[1]
    arms = {}
    for arm in found.groups:
        part, model = found.panel.where(treatment=arm), found.models[arm]
        low, high = model.cumulative_band(end)
        mean = [float(v) for v in (model.cumulative(end), low, high)]
        arms[arm] = {"subjects": part.n_subjects, "events": part.n_events, "mean": mean}
    with warnings.catch_warnings():  # of what the number is to show
        warnings.simplefilter("ignore", gp4c.exceptions.GP4CWarning)
        simple = gp4c.GP4C(effect=None, bursts=False)
        alone = compare(found.panel, "treatment", simple, n_permutations=9)
    return {
        "end": end,
        "horizon": float(found.horizon),
        "arms": list(found.groups),
        "by_arm": arms,
        "ratio": ratio_at(found, found.horizon),
        "ratio_without_effects": ratio_at(alone, found.horizon),
        "p_value": float(found.p_value),
        "p_values": {
            test: PanelTest.of(found.panel, "treatment", test=test).overall.p_value
            for test in ("curve", "any")
        },
    }


def ratio_at(found, time) -> list[float]:
    low, high = found.ratio_band(time, curve="cumulative")
    return [float(v) for v in (found.ratio(time, curve="cumulative"), low, high)]


def take_picture_of(report) -> None:
    """The top of the report, as Chromium shows it."""
    from shutil import which
    from tempfile import TemporaryDirectory

    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        report.save(path)
        browser = playwright.chromium.launch(
            executable_path=which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1000, "height": 1150})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        page.screenshot(path=HERE / "report.png")


if __name__ == "__main__":
    main()
