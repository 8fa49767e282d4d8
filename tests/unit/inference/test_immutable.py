"""Results cannot be changed: what they have computed and kept stays true."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest

#: made to be filled: they remember workspaces and rough optima of a search
MUTABLE = {"Problem", "WatchedProblem"}


def dataclasses_of(folder):
    package = importlib.import_module(f"gp4c.{folder}")
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"gp4c.{folder}.{found.name}")
        for name, cls in inspect.getmembers(module, inspect.isclass):
            if dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__:
                yield name, cls


@pytest.mark.parametrize("folder", ["inference", "models"])
def test_nothing_is_assigned_to_a_result(folder):
    classes = dict(dataclasses_of(folder))
    assert len(classes) > 5
    for name, cls in classes.items():
        blank = object.__new__(cls)
        if name in MUTABLE:
            blank.anything = None
        else:
            with pytest.raises(dataclasses.FrozenInstanceError):
                blank.anything = None
