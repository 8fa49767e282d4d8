"""Every analysis of a panel: names, order and the unit of time do not change what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import gp4c
from gp4c.exceptions import PanelDataError

from .properties import check, check_refusal, only_our_warnings
from .studies import covariate_panels, in_another_unit, reordered, typed_panels


class Question(NamedTuple):
    """A panel, an analysis of it, and its arguments; times are shares of the window."""

    panel: Any
    arguments: Mapping[str, Any]


def _asked(panels: st.SearchStrategy[Any], **open: list[Any]) -> st.SearchStrategy[Question]:
    drawn = {name: st.sampled_from(values) for name, values in open.items()}
    return st.builds(Question, panels, st.fixed_dictionaries(drawn))


def _length(panel: Any) -> float:
    return float(panel.window[1] - panel.window[0])


def _engine(**more: Any) -> gp4c.GP4C:
    """Few nodes and one law: a fit in a tenth of a second."""
    return gp4c.GP4C(effect=None, bursts=False, n_inducing=12, hyper="optimize", **more)


def _compare(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """p-value, statistic and what the words say."""
    found = gp4c.compare(panel, model=_engine(), n_permutations=19, bayes_factor=False, **arguments)
    check(0.0 < found.p_value <= 1.0, f"p-value {found.p_value}")
    check(str(found).strip(), "no words")
    return {"p_value": found.p_value}


def _trend(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    found = gp4c.trend_test(panel, n_permutations=19, **arguments)
    numbers = found.table.select_dtypes("number").to_numpy()
    check(np.isfinite(numbers), f"trend tests {found.table}")
    return {"table": numbers}


def _backtest(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    models = {"hpp": gp4c.HomogeneousPoisson(effect="gamma", bursts=True), "gp4c": _engine()}
    chosen = arguments["model"]
    found = gp4c.backtest(
        {chosen: models[chosen]}, panel, arguments["horizon"] * _length(panel),
        arguments["origins"],
    )  # fmt: skip
    frame = found.to_frame()
    for name in ("mean", "low", "high", "pit_low", "pit_high"):
        check(np.isfinite(frame[name]), f"{name} of the back-test: {frame[name].tolist()}")
    check(frame["low"] <= frame["high"], "an interval upside down")
    check(frame["pit_low"] <= frame["pit_high"] + 1e-12, "P(N < n) above P(N ≤ n)")
    check(str(found).strip(), "no words")
    return {"events": frame["events"].to_numpy(dtype=float)}


def _forecast(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(arguments)
    if given["beyond"] == "trend" and given["model"] not in ("trend", "log-linear"):
        given["beyond"] = "auto"  # there is no trend to continue
    model = {
        "hpp": lambda: gp4c.HomogeneousPoisson(effect="gamma", bursts=True),
        "log-linear": lambda: gp4c.LogLinear(effect="gamma"),
        "npmle": gp4c.NPMLE,
        "gp4c": lambda: gp4c.GP4C(n_inducing=12, hyper="optimize"),
        "trend": lambda: _engine(trend="loglinear"),
    }[given.pop("model")]().fit(panel)
    end, length = panel.window[1], _length(panel)
    found = model.forecast(
        end, end + given.pop("ahead") * length, given.pop("subjects"), random_state=0, **given
    )
    frame = found.to_frame()
    check(np.isfinite(frame[["mean", "low", "high"]]), f"forecast {frame}")
    check((frame["low"] >= 0) & (frame["low"] <= frame["high"]), f"interval {frame}")
    again = model.forecast(end, end + arguments["ahead"] * length, arguments["subjects"],
                           random_state=0, **given)  # fmt: skip
    check(frame["mean"].equals(again.to_frame()["mean"]), "the same forecast twice")
    return {}


def _units(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=arguments["bursts"]).fit(panel)
    ranking = model.unit_ranking(arguments["worst"])
    chance = ranking["probability"].to_numpy()
    check((chance >= 0) & (chance <= 1), f"probabilities {chance}")
    check(np.diff(chance) <= 1e-12, "the worst come first")
    check(len(ranking) == panel.n_subjects, "a row per unit")
    return {}


def _describe(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    text = str(panel.summary())
    check(text.strip() and "nan" not in text.split("covariates")[0], f"summary {text}")
    return {}


def _cross_validate(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    models = {"hpp": gp4c.HomogeneousPoisson(effect="gamma"), "npmle": gp4c.NPMPLE()}
    found = gp4c.cross_validate(models, panel, n_splits=2, random_state=0)
    differences = gp4c.score_differences(found, "hpp")
    # a step function may give held-out events no chance at all: -inf, but a number
    check(differences["difference"].notna(), f"differences {differences}")
    return {}


def _power(panel: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(arguments)
    if given.pop("pilot"):
        given = {**given, "pilot": panel, "rate": None, "follow_up": None}
    found = gp4c.power(n_trials=4, n_permutations=19, visits=3, random_state=1, **given)
    again = gp4c.power(n_trials=4, n_permutations=19, visits=3, random_state=1, **given)
    check(str(found) == str(again), "the same seed gave another plan")
    for row in found.rows:
        check(0.0 <= row.power <= 1.0, f"power {row.power}")
    return {}


def _checked(analysis: Callable[..., dict[str, Any]], question: Question) -> bool:
    """Ask; ask again of the same rows in another guise, and in another unit."""
    panel, arguments = question
    with only_our_warnings():
        try:
            found = analysis(panel, arguments)
        except PanelDataError as error:
            check_refusal(error)
            return False
        for other in (reordered(panel), in_another_unit(panel, 2.0)) if found else ():
            for name, value in analysis(other, arguments).items():
                check(
                    np.allclose(found[name], value, rtol=1e-6, atol=1e-9),
                    f"{name} was {found[name]} and is {value} of the same data in another guise",
                )
    return True


def _campaign(
    analysis: Callable[..., dict[str, Any]], batch: int, panels: st.SearchStrategy[Any],
    **open: list[Any],
) -> tuple[st.SearchStrategy[Question], Callable[[Question], bool], int]:  # fmt: skip
    return _asked(panels, **open), lambda question: _checked(analysis, question), batch


ANALYSES = {
    "compare": _campaign(
        _compare, 2, covariate_panels(), by=["arm", "centre"],
        test=["level", "curve", "trend", "any"], strata=[None, "centre"],
        formula=[None, "dose", "log(dose) + load"], weights=["even", "early", "late"],
    ),
    "compare types": _campaign(_compare, 1, typed_panels(), by=["arm"], test=["level", "any"]),
    "trend test": _campaign(_trend, 10, covariate_panels()),
    "back-test": _campaign(
        _backtest, 4, covariate_panels(), model=["hpp", "hpp", "gp4c"], horizon=[0.1, 0.3, 2.0],
        origins=[1, 3],
    ),
    "forecast": _campaign(
        _forecast, 8, covariate_panels(), model=["hpp", "log-linear", "npmle", "gp4c", "trend"],
        ahead=[0.01, 0.5, 3.0], subjects=[None, "all"], beyond=["auto", "prior", "hold", "trend"],
        new_units=[0, 2],
    ),
    "ranking of units": _campaign(
        _units, 10, covariate_panels(), bursts=[True, False], worst=[0.1, 0.5]
    ),
    "description": _campaign(_describe, 20, covariate_panels()),
    "description of types": _campaign(_describe, 5, typed_panels()),
    "cross-validation": _campaign(_cross_validate, 4, covariate_panels()),
    "power": _campaign(
        _power, 3, covariate_panels(), ratio=[0.5, 2.0, 1.0], rate=[0.1, 2.0], follow_up=[3.0],
        n_per_arm=[2, 6], frailty_variance=[None, 0.0, 2.0], dispersion=[None, 3.0],
        drop_out=[0.0, 0.5], test=["level", "any"], pilot=[False, False, True],
        strata=[None, [1.0, 2.0]],
    ),
}  # fmt: skip
