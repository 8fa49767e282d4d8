"""What is told of a search over hyper-parameters."""

import re

import pytest

from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Problem, climb
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.watching import WatchedProblem
from problems import observed, visits_panel


def test_steps_are_counted_from_one_and_end_at_the_objective():
    said = []
    plain = Problem(observed(visits_panel(3)), KERNELS["se"], "pointwise", n_inducing=6)
    free = (True, True, True, False)
    watched = climb(WatchedProblem.of(plain, said.append), Hyper(0.3, 0.3, 1.0), free=free)
    alone = climb(plain, Hyper(0.3, 0.3, 1.0), free=free)
    assert watched.value == alone.value
    told = [re.fullmatch(r"iteration (\d+): objective (-?[\d,.]+)", text) for text in said]
    assert [int(found[1]) for found in told] == list(range(1, len(said) + 1))
    values = [float(found[2].replace(",", "")) for found in told]
    assert max(values) == pytest.approx(alone.estep.evaluation.bound.total, abs=0.02)
