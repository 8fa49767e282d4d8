"""Draws the pictures of the README and the front page: ``python docs/images/make_images.py``."""

from pathlib import Path

import gp4c
from gp4c.reporting.panel_picture import save_panel_picture

HERE = Path(__file__).parent


def main() -> None:
    save_panel_picture(gp4c.load_dataset("bladder"), HERE / "bladder-panel.png", dpi=110)


if __name__ == "__main__":
    main()
