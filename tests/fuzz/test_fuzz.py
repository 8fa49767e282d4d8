"""A short, derandomised part of the fuzz campaigns; ``make fuzz`` runs them for longer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.analyses import ANALYSES
from fuzz.campaigns import CAMPAIGNS
from fuzz.commands import FileCase, check_in_process
from fuzz.estimators import WAYS, Case, forgotten
from fuzz.files import SPECIAL
from fuzz.panels import random_panel
from fuzz.properties import FindingError, check_bands, check_curves, check_fit

#: a label may be long, and cells that are empty everywhere are none
READABLE = {"good", "good with mark and CRLF", "trailing delimiters", "10 MB in one line"}
#: ways whose fits take seconds: only the campaign has time for them
DEAR = {"GP4C, sampled", "GP4C.paper", "GP4CClasses"}


def tried(name: str, examples: int) -> None:
    """Try some cases of a campaign, always the same."""
    campaign = CAMPAIGNS[name]

    @settings(max_examples=examples)
    @given(campaign.strategy)
    def cases(case: object) -> None:
        campaign.property(case)

    cases()


def test_every_estimator_and_every_parameter_has_a_way():
    assert forgotten() == []


@pytest.mark.parametrize("name", [name for name in WAYS if name not in DEAR])
def test_any_legal_panel_gives_finite_ordered_answers(name):
    tried(f"fit {name}", min(WAYS[name].batch, 4))


@pytest.mark.parametrize("name", ANALYSES)
def test_analyses_do_not_depend_on_names_order_or_unit(name):
    tried(name, 2)


@pytest.mark.parametrize(
    ("name", "examples"),
    [("edge tables", 15), ("files", 40), ("files of every format", 15), ("studies", 4)],
)
def test_extreme_tables_malformed_files_and_studies(name, examples):
    tried(name, examples)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_files(name):
    case = FileCase(SPECIAL[name], ".csv", "describe", ())
    assert check_in_process(case) == (name in READABLE)


def test_a_large_panel(rng):
    panel = random_panel(rng, 100, 100, unit=1e-9, origin=1e3, level=1e4)
    assert panel.n_intervals > 8000
    assert check_fit("HomogeneousPoisson", Case(panel, {"effect": "gamma", "bursts": False}))
    assert check_fit("NPMPLE", Case(panel, {}))


class Wrong:
    """A model whose answers break a rule."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    def cumulative(self, times):
        return self.answers["cumulative"]

    def cumulative_band(self, times, level):
        low, high = self.answers["band"](level)
        return low + 0.0 * times, high + 0.0 * times

    has_posterior = True


@pytest.mark.parametrize(
    "values",
    [[0.0, 2.0, 1.0], [0.0, float("nan"), 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, float("inf")]],
)
def test_a_wrong_curve_is_found(values):
    with pytest.raises(FindingError):
        check_curves(Wrong(cumulative=np.array(values)), np.arange(3.0))


@pytest.mark.parametrize(
    "band",
    [
        lambda level: (1.0 - level, 1.0 + level / 2 if level < 0.99 else 1.0),  # not nested
        lambda level: (1.0 + level, 1.0 - level),  # upside down
        lambda level: (0.5 - level, 1.0 + level),  # below 0
        lambda level: (0.0, float("inf")),
    ],
)
def test_a_wrong_band_is_found(band):
    with pytest.raises(FindingError):
        check_bands(Wrong(band=band), np.arange(3.0))


def test_seeds_repeat_their_cases():
    from fuzz.run import Tally, run_batch

    def drawn() -> list[bytes]:
        seen: list[bytes] = []
        campaign = type(CAMPAIGNS["files"])(st.binary(max_size=20), seen.append, 5)
        assert run_batch(campaign, 7, Tally()) is None
        return seen

    first = drawn()
    assert len(first) == 5
    assert drawn() == first
