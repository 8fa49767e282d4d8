"""Results cannot be changed: what they have computed and kept stays true."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

#: made to be filled: they remember workspaces, climbs and draws while a search goes on
MUTABLE = {
    "Problem", "_Climbs", "_Row", "_Stride", "Point", "LikelihoodTerms", "LawSearch", "ClassFitter",
    "ClassLattice", "ClassLatticePoint", "ClassLaws", "ClassSearch",
}  # fmt: skip


def dataclasses_of(folder):
    package = importlib.import_module(f"gp4c.{folder}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for name, cls in inspect.getmembers(module, inspect.isclass):
            if dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__:
                yield name, cls


@pytest.mark.parametrize("folder", ["model", "posterior", "inference", "estimators", "classical"])
def test_nothing_is_assigned_to_a_result(folder):
    classes = dict(dataclasses_of(folder))
    assert len(classes) > 5
    for name, cls in classes.items():
        if inspect.isabstract(cls):
            continue
        blank = object.__new__(cls)
        if name in MUTABLE:
            blank.anything = None
        else:
            with pytest.raises(dataclasses.FrozenInstanceError):
                blank.anything = None
