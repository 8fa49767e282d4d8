"""The posterior with the hyper-parameters known: what is left when only draws are approximate."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.calibration.cases import LENGTH, Case

import gp4c
from gp4c.estimators.engine_fit import EngineData, store_engine
from gp4c.inference.engine.posterior_fit import EngineFit, task_for
from gp4c.inference.engine.single import modes_at
from gp4c.inference.engine.weigh import weigh
from gp4c.model.laws import EFFECTS, LAWS

#: draws of the posterior
DRAWS = 4000


def fit_known(case: Case) -> Any:
    """A fitted model whose (a, γ, g) are those the data were drawn from."""
    laws = LAWS["poisson"], EFFECTS[None]
    data = EngineData(case.panel, None, case.panel.window)
    mean_square = case.events_per_subject / LENGTH / (1 + case.variation**2)
    task = task_for(data.cells(*laws), *laws, "se", None, float(np.sqrt(mean_square)))
    lattice = modes_at(task, case.length_scale, float(np.log(case.variation)))
    weighted = weigh(lattice, DRAWS, np.random.default_rng(0))
    model = gp4c.GP4C(effect=None, bursts=False, hyper="optimize")
    model._keep_time_axis(case.panel)
    store_engine(model, data, EngineFit(task, lattice, weighted, {("poisson", None): 0.0}))
    return model
