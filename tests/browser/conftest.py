"""Tests in a real browser: only for ``make test-browser``, which installs one."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# `make test` needs no browser: it does not even look at these files
if not os.environ.get("GP4C_TEST_BROWSER"):
    collect_ignore_glob = ["test_*.py"]


@dataclass(frozen=True)
class Browser:
    """Headless Chromium: what a page contains once it is shown, and what it looks like."""

    program: str
    profile: Path

    def _run(self, *options):
        command = [
            self.program,
            "--headless",
            "--no-sandbox",  # containers run as root
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--virtual-time-budget=5000",
            f"--user-data-dir={self.profile}",
            *options,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    def content(self, page):
        """The document after its scripts have run."""
        return self._run("--dump-dom", page.as_uri()).stdout

    def screenshot(self, page, width=900, height=700):
        """Picture of the page as an array (height, width, 3)."""
        from matplotlib.image import imread

        target = self.profile / "page.png"
        self._run(f"--screenshot={target}", f"--window-size={width},{height}", page.as_uri())
        return imread(target)[..., :3]


def _program():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "no Chromium found: run `make test-browser`, which installs it"
    return program


@pytest.fixture(scope="module")
def chromium():
    """A browser to be driven: its pages are clicked and asked."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browser(tmp_path):
    profile = tmp_path / "profile"
    profile.mkdir()
    return Browser(_program(), profile)
