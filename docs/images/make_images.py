"""Draws the pictures of the README and the guides and keeps their numbers: ``make pictures``."""

import json
import warnings
from pathlib import Path

import gp4c
from gp4c.analysis.compare import compare
from gp4c.reporting.panel_picture import save_panel_picture
from gp4c.reporting.plot_style import save_plot
from gp4c.reporting.plots import plot_groups, plot_intensity, plot_ratio
from gp4c.reporting.report import Report

HERE = Path(__file__).parent
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
    take_picture_of(report)
    (HERE / "bladder.json").write_text(json.dumps(numbers(found), indent=1) + "\n")


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
        warnings.simplefilter("ignore", gp4c.exceptions.OverdispersionWarning)
        alone = compare(found.panel, "treatment", gp4c.GP4C(effect=None), n_permutations=9)
    return {
        "end": end,
        "horizon": float(found.horizon),
        "arms": list(found.groups),
        "by_arm": arms,
        "ratio": ratio_at(found, found.horizon),
        "ratio_without_effects": ratio_at(alone, found.horizon),
        "p_value": float(found.p_value),
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
