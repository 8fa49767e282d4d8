"""Cells of a CSV file that change their kind late, and decimal commas."""

import pandas as pd
import pytest

import gp4c
from gp4c.data.tables.formats.csvfile import _as_numbers
from gp4c.exceptions import PanelDataError


def write(path, rows, delimiter=","):
    lines = [delimiter.join(["subject", "start", "stop", "count"])]
    path.write_text("\n".join(lines + [delimiter.join(map(str, row)) for row in rows]) + "\n")
    return path


def test_a_column_that_turns_into_fractions_late_is_read_whole(tmp_path):
    # a megabyte of whole numbers, then a fraction: the first guess of the types fails
    rows = [(k, 0, 1, k % 3) for k in range(120_000)]
    rows.append((120_000, 0, 1.5, 2))
    panel = gp4c.read_panel(write(tmp_path / "late.csv", rows))
    assert panel.n_subjects == 120_001
    assert panel.stop.max() == 1.5
    assert panel.n_events == sum(row[3] for row in rows)


def test_a_word_late_in_a_column_of_numbers_is_named_with_its_line(tmp_path):
    rows = [(k, 0, 1, k % 3) for k in range(120_000)]
    rows.append((120_000, 0, 1, "many"))
    with pytest.raises(PanelDataError, match=r"'many'.*line 120002"):
        gp4c.read_panel(write(tmp_path / "late.csv", rows))


def test_decimal_commas_throughout(tmp_path):
    path = write(tmp_path / "comma.csv", [(1, "0,0", "1,5", 2), (1, "1,5", "2,25", 0)], ";")
    panel = gp4c.read_panel(path, decimal=",", delimiter=";")
    assert panel.stop.tolist() == [1.5, 2.25]


def test_points_that_are_no_marks_of_thousands_stay_where_decimals_are_commas(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(
        "id;start;stop;n;dose;build;day\n1;0,0;1,5;2;0.125;1.087;1.2.2024\n"
        "2;0,5;2,25;0;1.087;1.087 b;31.12.2024\n"
    )
    panel = gp4c.read_panel(path, decimal=",", delimiter=";")
    assert panel.covariates["dose"].tolist() == [0.125, 1.087]
    assert panel.covariates["build"].tolist() == ["1.087", "1.087 b"]


def test_a_column_of_numbers_in_text_is_numbers_only_if_all_are():
    assert _as_numbers(pd.Series(["1,5", None, "2"]), ",").tolist()[::2] == [1.5, 2.0]
    assert _as_numbers(pd.Series(["1,5", "a,b"]), ",").tolist() == ["1.5", "a,b"]
