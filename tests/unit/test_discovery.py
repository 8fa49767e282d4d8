"""What ``help()`` shows: examples that run, named arguments, and errors that list what there is."""

import ast
import doctest
import importlib
import inspect
import re
import warnings
from functools import cache
from pathlib import Path

import joblib
import pytest

import gp4c
from gp4c.analysis.comparison import Comparison
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.base import ESTIMATORS, PanelEstimator

#: folders of numerics: what they define is for the rest of the package
NUMERICS = ("gp4c.model.", "gp4c.posterior.", "gp4c.inference.")
#: a method that says this is for the rest of the package; the reference leaves it out, too
PRIVATE = ":meta private:"


def public_methods(kind):
    """Methods that users call, by name, inherited ones included."""
    found = {}
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        method = getattr(static, "__func__", static)
        if name[0] != "_" and inspect.isfunction(method):
            shown = inspect.getdoc(getattr(kind, name)) or ""
            if PRIVATE not in shown:
                found[name] = method, shown
    return found


@cache
def imported_names(module):
    """Names that a module imports anywhere, for type checking too, with their homes."""
    tree = ast.parse(Path(inspect.getsourcefile(module)).read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {a.asname or a.name: (node.module, a.name) for node in froms for a in node.names}


def returned_classes(function):
    """Classes of this package that the annotation of a return value names."""
    home = importlib.import_module(function.__module__)
    for name in re.findall(r"\w+", str(function.__annotations__.get("return", ""))):
        module, origin = imported_names(home).get(name, (home.__name__, name))
        if module.startswith("gp4c.") and not module.startswith(NUMERICS):
            found = getattr(importlib.import_module(module), origin, None)
            if inspect.isclass(found) and found.__module__.startswith("gp4c."):
                yield found


def public_classes():
    """What `gp4c` names, and whatever their methods, properties and functions return."""
    todo = [TypedPanel, *(getattr(gp4c, name) for name in gp4c.__all__)]
    known = []
    while todo:
        one = todo.pop()
        if inspect.isfunction(one):
            todo += returned_classes(one)
        elif inspect.isclass(one) and one not in known:
            known.append(one)
            todo += [method for method, _ in public_methods(one).values()]
            parts = [inspect.getattr_static(one, n) for n in dir(one) if n[0] != "_"]
            getters = [getattr(p, "fget", getattr(p, "func", None)) for p in parts]
            getters = [getter for getter in getters if inspect.isfunction(getter)]
            todo += [g for g in getters if PRIVATE not in (inspect.getdoc(g) or "")]
    return sorted(known, key=lambda kind: kind.__name__)


CLASSES = public_classes()
METHODS = {
    f"{kind.__name__}.{name}": found
    for kind in CLASSES
    for name, found in public_methods(kind).items()
}
FUNCTIONS = {
    name: (getattr(gp4c, name), inspect.getdoc(getattr(gp4c, name)))
    for name in gp4c.__all__
    if inspect.isfunction(getattr(gp4c, name))
}
#: each text of help once, however many classes inherit it
TEXTS = {text: (name, method) for name, (method, text) in (METHODS | FUNCTIONS).items()}


def kept(function, key):
    """A function that answers from memory when it is asked the same again."""
    answers = {}

    def remembering(*args, **options):
        asked = joblib.hash(key(*args, **options))
        if asked not in answers:
            answers[asked] = function(*args, **options)
        return answers[asked]

    return remembering


def fitted_once(fit):
    """A method `fit` that copies an earlier fit of an equal model to the same data."""

    def state(model, data):
        fit(model, data)
        return dict(vars(model))

    remembered = kept(state, lambda model, data: (type(model).__name__, repr(model), data))

    def fit_or_copy(model, data, y=None, **options):
        if options:
            return fit(model, data, y, **options)
        vars(model).update(remembered(model, data))
        return model

    return fit_or_copy


@pytest.fixture(scope="module")
def fits_once():
    """Examples begin with the same few fits and comparisons: each of them is made once."""
    families = {c for kind in ESTIMATORS.values() for c in kind.__mro__ if "fit" in vars(c)}
    with pytest.MonkeyPatch.context() as patch:
        for family in families:
            patch.setattr(family, "fit", fitted_once(vars(family)["fit"]))
        asked = kept(gp4c.compare, lambda *args, **options: (args, repr(options)))
        patch.setattr(gp4c, "compare", asked)
        yield


@pytest.fixture(scope="module")
def found(fits_once):
    panel = gp4c.load_dataset("bladder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gp4c.compare(
            panel, "treatment", gp4c.GP4C(effect="gamma", bursts=True), n_permutations=199
        )


def test_the_classes_that_users_meet_are_found():
    names = {kind.__name__ for kind in CLASSES}
    assert names >= {
        "GP4C", "PanelCounts", "TypedPanel", "Report", "Comparison", "TypeComparison", "Forecast",
        "Backtest", "PowerPlan", "TrendTest", "Table", "ModelSummary", "EffectCorrelation",
    }  # fmt: skip
    assert not names & {"CurveDraws", "CountLaw", "SubjectEffect"}
    assert len(TEXTS) > 150


def test_every_public_method_has_an_example():
    said = METHODS | FUNCTIONS
    assert not [name for name, (_, text) in said.items() if "Examples\n--------\n>>> " not in text]


def test_methods_of_every_day_are_public():
    for name in ("fit", "intensity", "cumulative", "cumulative_band", "forecast", "score"):
        assert f"GP4C.{name}" in METHODS
    for name in ("from_frame", "from_visits", "where", "split"):
        assert f"PanelCounts.{name}" in METHODS


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.GP4CWarning")
@pytest.mark.parametrize("text", TEXTS, ids=[name for name, _ in TEXTS.values()])
def test_the_example_runs(text, fits_once, request):
    import matplotlib.pyplot as plt

    name, _ = TEXTS[text]
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    if name == "compare" or name.startswith(f"{Comparison.__name__}."):
        # one comparison serves all these examples, which would else fit again
        test.globs |= {"found": request.getfixturevalue("found"), "gp4c": gp4c}
        test.examples = [e for e in test.examples if "gp4c.compare(" not in e.source]
    runner = doctest.DocTestRunner(verbose=False)
    said = []
    runner.run(test, out=said.append)
    plt.close("all")
    assert runner.failures == 0, "".join(said)


#: scikit-learn's own protocol; columns as names of arguments; a refusal, whatever the arguments
PROTOCOLS = ("set_params", "where", "to_arviz")


def test_arguments_have_names():
    def catches_all(method):
        parameters = inspect.signature(method).parameters.values()
        return any(p.kind is p.VAR_KEYWORD for p in parameters)

    found = [name for name, (method, _) in METHODS.items() if catches_all(method)]
    assert not [name for name in found if name.split(".")[1] not in PROTOCOLS]


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
        (lambda: gp4c.HPP, AttributeError, "there are PanelCounts, .*, HomogeneousPoisson"),
        (lambda: model.summary()["event"], KeyError, "did you mean 'events'"),
        (lambda: model.forecast(53, 60, subjects=["x"]), KeyError, "there are 1, 2, 3"),
        (lambda: model.plot(what="rate"), ValueError, "'intensity', 'cumulative' or 'history'"),
    ):
        with pytest.raises(error, match=said):
            ask()


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=lambda kind: kind.__name__)
def test_help_shows_the_arguments_of_constructors(kind):
    assert list(inspect.signature(kind).parameters) == list(kind().get_params())
