"""Tables and figures from records whose numbers are known."""

import made_up
import numpy as np
import pytest

from gp4c.paper import paper_numbers
from gp4c.paper.catalogue import NAMES, experiment
from gp4c.paper.exhibits import table1, table2, table3
from gp4c.paper.exhibits.real_study import deviation
from gp4c.paper.results_page import page, write_page
from gp4c.paper.sections import Plan, mean_and_error, number, plus_minus, trials_text
from gp4c.paper.studies.real import SETS

PLAN = Plan(trials=6, seed=0)


@pytest.fixture(scope="module")
def found():
    return made_up.records(PLAN)


def row_of(lines, name, title):
    """Cells of the first row called `name` below a line that holds `title`."""
    at = next(i for i, line in enumerate(lines) if title in line)
    start = f"| {name} |".replace(" ", "\u00a0").replace("|\u00a0", "| ").replace("\u00a0|", " |")
    line = next(line for line in lines[at:] if line.startswith(start))
    return [cell.strip() for cell in line.replace("\u00a0", " ").strip("|").split("|")]


def test_the_papers_tables_have_their_shape():
    assert {name: tuple(rows) for name, rows in paper_numbers.TABLE1.items()} == dict.fromkeys(
        "ABC", ("GP3", "LocalEM", "b=0", "b=0.3", "b=1")
    )
    assert {tuple(rows) for rows in paper_numbers.TABLE4.values()} == {("LocalEM", "GP4C", "GP4CW")}
    assert len(paper_numbers.TABLE4) == 8
    assert len(paper_numbers.TABLE2) == 6
    for rows in paper_numbers.TABLE1.values():  # what the paper says of them
        assert rows["GP3"].mise < rows["b=0.3"].mise < rows["LocalEM"].mise
        assert rows["GP3"].l_test > rows["b=0.3"].l_test > rows["LocalEM"].l_test
        assert rows["b=1"].l_test < rows["LocalEM"].l_test
    for rows in paper_numbers.TABLE4.values():
        assert rows["LocalEM"].l_test < rows["GP4C"].l_test < rows["GP4CW"].l_test


def test_table_1_compares_within_trials(found):
    lines = table1.render(PLAN, found).lines
    cells = row_of(lines, "GP3 (event times)", "### Synthetic A")
    # gains are equal in all trials, whatever the level of L_test
    assert cells[1:4] == ["+8.0", "+8.0 ± 0.0", "+8.0 ± 0.0"]
    assert cells[4:7] == ["29.23 ± 1.27", "29.0 ± 0.0", "−0.2"]
    assert cells[9] == "chance"
    assert row_of(lines, "ours, default", "### Synthetic A")[8] == "2.00"
    assert row_of(lines, "LocalEM", "### Synthetic B")[9] == "intensity"


def test_table_1_targets_follow_the_numbers(found):
    held = {t.asked: t.met for t in table1.render(PLAN, found).targets}
    slower = [asked for asked, met in held.items() if not met]
    assert slower == ["A: our rows take less time than `GP4C.paper(0.3)`"]
    changed = {task: made_up.record_of(task) for task in table1.tasks(PLAN)}
    for record in changed.values():
        record["methods"]["b=0.3"]["mise"] = 45.0
        record["methods"]["LocalEM"]["l_test"] += 5.0
        record["methods"]["b=1"]["l_test"] += 850.0
    missed = [t.asked for t in table1.render(PLAN, changed).targets if not t.met]
    assert [asked.split(":")[1].strip()[:34] for asked in missed[:4]] == [
        "MISE of GP4C (b = 0.3) within 41.2", "L_test of LocalEM below GP4C (0.3)",
        "L_test of LocalEM below GP4C (0)", "L_test of b = 1 far below",
    ]  # fmt: skip


def test_table_2_explains_its_differences():
    section = table2.render(PLAN, {})
    assert all(target.met for target in section.targets)
    cells = row_of(section.lines, "Skin A and B", "Set")
    assert cells[7:9] == ["816", "1,102"]
    assert "32-bit" in cells[9]
    assert row_of(section.lines, "Bladder A", "Set")[9] == ""


def test_table_3_pairs_the_splits(found):
    section = table3.render(PLAN, found)
    cells = row_of(section.lines, "Skin A", "| L_test, 4,000 draws |")
    assert cells[2:6] == ["+50.0 ± 0.0", "+40.0 ± 0.0", "+55.0 ± 0.0", "+6.0 ± 0.0"]
    assert cells[7] == "100%"
    assert all(target.met for target in section.targets)
    assert len(section.targets) == 6


def test_table_3_names_a_set_that_falls_behind():
    found = made_up.records(PLAN, (table3,))
    for task, record in found.items():
        if task.settings["set"] == "Skin B":
            record["methods"]["default"]["l_test"] -= 8.0
    targets = table3.render(PLAN, found).targets
    assert [t.met for t in targets] == [False, True, True, True, True, True]
    assert "Skin B" in targets[0].found


def test_distance_from_the_paper_in_standard_errors():
    theirs = paper_numbers.TABLE4["Skin A"]["GP4C"].l_test
    values = theirs + 5 + np.array([-2.0, 2.0, -2.0, 2.0])
    records = [{"methods": {"GP4C": {"l_test_50": value}}} for value in values]
    error = np.sqrt(values.var(ddof=1) * (1 / 4 + 1 / 40))
    assert deviation(records, "GP4C", "Skin A") == pytest.approx(5 / error)


def test_the_ratio_that_agrees_is_found():
    found = made_up.records(PLAN, (table3,))
    for task, record in found.items():
        rows = paper_numbers.TABLE4[task.settings["set"]]
        shift = 0.0 if task.settings["ratio"] == "1/2" else 30.0
        for method, row in rows.items():
            jitter = task.settings["trial"] - 2.5
            record["methods"][method]["l_test_50"] = row.l_test + shift + jitter
    text = "\n".join(table3.render(PLAN, found).lines)
    assert "**halves** agrees better" in text
    assert "0 lie nearer to the paper's with two thirds" in text


@pytest.mark.parametrize("name", NAMES)
def test_every_section_renders_with_all_some_and_no_trials(name, found):
    module = experiment(name)
    assert name == module.NAME
    whole = module.render(PLAN, found)
    assert whole.lines
    module.render(Plan(trials=1), {})
    one = {t: r for t, r in found.items() if t.settings.get("trial", 0) == 0}
    text = "\n".join(module.render(PLAN, one).lines)
    assert "nan" not in text
    assert "6 trials" not in text


def test_figures_are_drawn(found, tmp_path):
    sections = [experiment(name).render(PLAN, found) for name in NAMES]
    files = write_page(tmp_path, "reproduction", sections, PLAN, found, "abc")
    text = files[0].read_text(encoding="utf-8")
    pictures = sorted((tmp_path / "images" / "reproduction").glob("*.png"))
    assert len(pictures) == 7
    for path in pictures:
        assert f"images/reproduction/{path.name}" in text
        assert path.read_bytes()[:4] == b"\x89PNG"
    again = write_page(tmp_path / "again", "reproduction", sections[:1], PLAN, found, "abc")
    assert again[1].read_bytes() == files[1].read_bytes()


def test_the_page_says_what_it_is_made_of(found):
    sections = [experiment(name).render(PLAN, found) for name in NAMES]
    text = page(sections, PLAN, found, "abc123")
    assert "`abc123`" in text
    assert f"{len(found)} minutes of CPU time" in text
    assert "## Where the published code and the paper differ" in text
    assert "upper" in text
    for name in SETS:
        assert f"| {name} |" in text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("value", "options", "text"),
    [
        (1234.56, {}, "1,234.6"),
        (-0.04, {}, "0.0"),
        (0.04, {"sign": True}, "0.0"),
        (-3.14159, {"digits": 2}, "−3.14"),
        (2.0, {"digits": 0, "sign": True}, "+2"),
        (np.nan, {}, "–"),
    ],
)
def test_numbers_as_text(value, options, text):
    assert number(value, **options) == text


def test_small_helpers():
    assert plus_minus(1.0, np.nan) == "1.0"
    assert mean_and_error(np.array([1.0, 3.0])) == (2.0, 1.0)
    assert np.isnan(mean_and_error(np.array([1.0]))[1])
    assert [trials_text(c) for c in ([], [1, 1], [2, 5], [40])] == [
        "no trials yet", "1 trial", "2 to 5 trials", "40 trials",
    ]  # fmt: skip
