"""The report as PDF: a browser prints the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gp4c.exceptions import GP4CError, MissingExtraError

#: programs that can print a page without a window
_BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge", "msedge",
)  # fmt: skip
#: seconds after which a browser is taken to hang
_PATIENCE = 180


def find_browser() -> str:
    """The browser that prints; without one a sentence says what to do."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        raise MissingExtraError(
            "a PDF is printed by Chromium, Chrome or Edge, and none of them is on the PATH: "
            "install one, or open the HTML report in any browser and print it"
        )
    return found


def page_pdf(html: str) -> bytes:
    """A page on paper, as its style sheet has it."""
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="gp4c-") as folder:
        page, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html, encoding="utf-8")
        command = [
            browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions",
            "--no-pdf-header-footer", f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={target}", "--virtual-time-budget=20000", page.as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # which the administrator cannot have
        try:
            subprocess.run(command, check=False, capture_output=True, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            raise GP4CError(f"{browser} did not print the report in {_PATIENCE} seconds") from None
        if not target.is_file():
            raise GP4CError(f"{browser} printed no PDF; the HTML report can be printed by hand")
        return target.read_bytes()
