"""Notes on a page have no arguments or calls of Python."""

import re

import numpy as np
import pytest

import gp4c
from gp4c.estimators.forecasts.continuation import Continuation
from gp4c.estimators.forecasts.forecast_words import _why
from gp4c.reporting.page.reader_words import for_readers
from gp4c.reporting.page.report_page import paragraph, warning_box

#: an argument, or a call
CODE = re.compile(r"\b\w+=[\w'\"]|\w\(\)|\w\(\d+\)")


@pytest.fixture(scope="module")
def panel():
    table = {
        "subject": np.repeat(np.arange(8), 3), "start": np.tile([0, 1, 2], 8),
        "stop": np.tile([1, 2, 3], 8), "count": np.tile([0, 1, 9, 0], 6),
        "end": np.repeat([3, *[np.nan] * 7], 3),
    }  # fmt: skip
    return gp4c.PanelCounts.from_frame(table, end="end")


def remarks(panel):
    """Notes that fits of this panel have."""
    yield from gp4c.NPMLE().fit(panel).summary().remarks
    with pytest.warns(gp4c.exceptions.GP4CWarning):
        model = gp4c.HomogeneousPoisson(effect=None).fit(panel)
    yield from model.summary().remarks
    for whom in ("active", "all"):
        yield model.forecast(3, 4, whom, n_draws=20).note


def test_notes_of_fits_and_forecasts_have_no_code_on_a_page(panel):
    notes = list(remarks(panel))
    assert sum(bool(CODE.search(note)) for note in notes) >= 3
    for note in notes:
        assert not CODE.search(for_readers(note)), note
        assert not CODE.search(paragraph(note).replace('class="', ""))
    assert "bootstrap" not in warning_box(notes)


def test_what_is_said_of_the_way_on_stays(panel):
    scores = {"prior": -3.0, "hold": -1.0}
    said = _why(Continuation("prior", "prior", scores))
    assert said.endswith('; beyond="hold" takes it.')
    assert for_readers(said).endswith("not by enough to leave the model's own way.")
