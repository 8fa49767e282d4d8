"""The demonstration behind `make demo`: look at a real trial before modelling it."""

from pathlib import Path

import gp4c
from gp4c.reporting.panel_picture import save_panel_picture


def main() -> None:
    out = Path("gp4c-demo")
    out.mkdir(exist_ok=True)

    panel = gp4c.load_dataset("bladder")
    print("New bladder tumours of 85 patients, counted at visits (months since enrolment):\n")
    print(panel.summary())

    picture = out / "bladder-panel.png"
    save_panel_picture(panel, picture)
    print(f"\nThe panel picture: {picture}")


if __name__ == "__main__":
    main()
