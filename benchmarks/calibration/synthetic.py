"""The paper's Synthetic A, B and C: the default against the converged b = 0.3 bound, paired."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import simpson

import gp4c
from gp4c.data.simulate.intensities import NAMED
from gp4c.exceptions import ConvergenceWarning

WINDOW = (0.0, 60.0)
SETS = ("synthetic_a", "synthetic_b", "synthetic_c")
ARMS: dict[str, Callable[[], Any]] = {
    "default": lambda: gp4c.GP4C(),
    "lemma2": lambda: gp4c.GP4C(
        count_term="lemma2", b=0.3, n_inducing=30, effect=None, hyper="optimize"
    ),
}


def trial(name: str, number: int) -> dict[str, Any]:
    """Both estimators on the same halves of one panel: MISE, L_test and CPU seconds."""
    truth = NAMED[name]()
    panel, _ = gp4c.simulate_panel(
        truth, window=WINDOW, n_subjects=100, n_intervals=10, random_state=number
    )
    train, test = panel.split(test_size=0.5, random_state=number)
    grid = np.linspace(*WINDOW, 3001)
    true_rate = np.asarray(truth(grid))
    record: dict[str, Any] = {"set": name, "number": number}
    for arm, make in ARMS.items():
        began = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model = make().fit(train)
        record[f"{arm}_seconds"] = round(time.process_time() - began, 3)
        record[f"{arm}_converged"] = not caught
        error = (model.intensity(grid) - true_rate) ** 2
        record[f"{arm}_mise"] = float(simpson(error, x=grid))
        record[f"{arm}_l_test"] = model.score(test)
        record[f"{arm}_length_scale"] = model.length_scale_
        record[f"{arm}_effect"] = model.effect_
    return record
