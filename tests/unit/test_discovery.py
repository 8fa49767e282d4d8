"""What ``help()`` shows: examples that run, named arguments, and errors that list what there is."""

import doctest
import inspect
import warnings

import pytest

import gp4c
from gp4c.analysis.backtest import Backtest
from gp4c.analysis.comparison import Comparison
from gp4c.analysis.planning.power_plan import PowerPlan
from gp4c.data.summaries.table import Table
from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.forecasts.forecast_result import Forecast

#: results and what users call on them; each has an example in its help
SHOWN = {
    Comparison: None,
    Forecast: None,
    Backtest: ("to_frame", "table", "plot"),
    PowerPlan: None,
    Table: ("save", "to_frame", "to_html", "to_latex", "to_markdown"),
    gp4c.Report: ("save",),
    gp4c.PanelCounts: ("summary", "table", "to_frame", "with_window", "distinct"),
    PanelEstimator: (
        "forecast", "get_params", "methods_text", "plot", "save", "score", "set_params", "summary",
        "table", "unit_ranking",
    ),
}  # fmt: skip


def methods(kind, names):
    """Public methods that a class defines itself."""
    own = {n: m for n, m in vars(kind).items() if inspect.isfunction(m) and n[0] != "_"}
    return own if names is None else {name: own[name] for name in names}


CASES = [(kind, name) for kind, names in SHOWN.items() for name in methods(kind, names)]


@pytest.fixture(scope="module")
def found():
    panel = gp4c.load_dataset("bladder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gp4c.compare(
            panel, "treatment", gp4c.GP4C(effect="gamma", bursts=True), n_permutations=199
        )


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.GP4CWarning")
@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_the_help_of_a_method_has_an_example_that_runs(kind, name, found):
    import matplotlib.pyplot as plt

    method = vars(kind)[name]
    # one comparison serves all methods of comparisons, whose examples say how it is made
    given = {"found": found, "gp4c": gp4c} if kind is Comparison else {}
    (test,) = doctest.DocTestFinder(recurse=False).find(method, name, globs=given)
    if kind is Comparison:  # theirs would fit again
        test.examples = [e for e in test.examples if "gp4c.compare(" not in e.source]
    assert test.examples, f"{kind.__name__}.{name} has no example"
    runner = doctest.DocTestRunner(verbose=False)
    said = []
    runner.run(test, out=said.append)
    plt.close("all")
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_arguments_have_names(kind, name):
    method = vars(kind)[name]
    catch_all = [
        p for p in inspect.signature(method).parameters.values() if p.kind is p.VAR_KEYWORD
    ]
    assert not catch_all or name == "set_params"  # scikit-learn's own protocol


def test_forecasts_of_models_take_what_forecasts_take():
    from gp4c.estimators.forecasts.count_forecast import forecast

    def arguments(function):
        return {n: p.default for n, p in list(inspect.signature(function).parameters.items())[1:]}

    assert arguments(PanelEstimator.forecast) == arguments(forecast)


def test_an_unknown_name_lists_the_known_ones():
    panel = gp4c.load_dataset("bladder")
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    for ask, error, said in (
        (lambda: gp4c.load_dataset("bladdr"), ValueError, "did you mean 'bladder'"),
        (lambda: panel.where(treatmnt="placebo"), ValueError, "did you mean 'treatment'"),
        (lambda: panel.where(treatment="plac"), ValueError, "'placebo', 'thiotepa'"),
        (lambda: gp4c.GP4C(efect="gamma"), TypeError, "'bursts'.*did you mean 'effect'"),
        (lambda: gp4c.Raport, AttributeError, "did you mean 'Report'"),
        (lambda: model.summary()["event"], KeyError, "did you mean 'events'"),
        (lambda: model.forecast(53, 60, subjects=["x"]), KeyError, "there are 1, 2, 3"),
        (lambda: model.plot(what="rate"), ValueError, "intensity, cumulative, history"),
    ):
        with pytest.raises(error, match=said):
            ask()
