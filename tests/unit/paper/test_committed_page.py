"""The page of the documentation is what the committed trials give: nothing on it is typed."""

from pathlib import Path

import pytest

from gp4c.paper.catalogue import NAMES
from gp4c.paper.reproduction import reproduce
from gp4c.paper.results_page import IMAGES, page
from gp4c.paper.sections import Plan
from gp4c.paper.store import PackedStore

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made():
    store = PackedStore(ROOT / "experiments" / "results" / "trials.jsonl.gz")
    settings = [task.settings for task in store.tasks()]
    plan = Plan(1 + max(s.get("trial", 0) for s in settings), settings[0]["seed"])
    return plan, store, reproduce(NAMES, plan, store, run=False)


def test_the_page_follows_from_the_trials(made):
    plan, store, found = made
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    ours, _, _ = text.partition("\n<!-- path -->\n")  # a section from a benchmark stands at the end
    assert page(found.sections, plan, found.found, store.version) == ours


def test_no_trial_is_missing_or_left_over(made):
    _, store, found = made
    assert found.missing == 0
    assert set(store.tasks()) == set(found.found)


def test_every_figure_is_there(made):
    shown = {f"{name}.png" for section in made[2].sections for name in section.pictures}
    assert {path.name for path in (ROOT / "docs" / IMAGES).iterdir()} == shown
