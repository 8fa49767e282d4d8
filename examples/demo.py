"""The demonstration behind `make demo`: a real trial, from the table to a page to send."""

from pathlib import Path
from time import perf_counter

import gp4c
from gp4c.analysis.compare_groups import compare
from gp4c.estimators.forecasts.count_forecast import forecast
from gp4c.reporting.figures.plot_style import save_plot
from gp4c.reporting.figures.plots import plot_groups, plot_ratio
from gp4c.reporting.page.html_report import Report

OUT = Path("gp4c-demo")


def main() -> None:
    begun = perf_counter()
    OUT.mkdir(exist_ok=True)

    say("The data: new bladder tumours of patients, counted at visits (months since enrolment)")
    panel = gp4c.load_dataset("bladder")
    print(panel.summary())

    say("A smooth rate for each arm of the trial, and whether they differ")
    found = compare(panel, by="treatment")
    print(found)

    say("Another year of the patients of the placebo arm")
    print(forecast(found.models["placebo"], 53, 65, subjects="all"))

    report = Report(found.models, panel, "treatment", found, title="The bladder trial")
    draw(found, report)
    for arm, model in found.models.items():
        model.save(OUT / f"fit-{arm}.json")
    report.save(OUT / "report.html")
    say(f"Done in {perf_counter() - begun:.0f} s. Open {OUT / 'report.html'} in a browser;")
    print("pictures and fitted models are beside it. The same for a table of your own:")
    print(f"  .venv/bin/gp4c report YOUR.csv --by COLUMN --out {OUT}")


def draw(found, report) -> None:
    """The data, the curves of the arms, and their ratio over time."""
    (OUT / "panel.png").write_bytes(report.panel_picture)
    save_plot(lambda ax: plot_groups(report.curves, ax, title="treatment"), OUT / "arms.png")
    save_plot(lambda ax: plot_ratio(found, ax, curve="cumulative"), OUT / "ratio.png")


def say(text: str) -> None:
    print(f"\n== {text}\n", flush=True)


if __name__ == "__main__":
    main()
