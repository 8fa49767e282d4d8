"""Numbers that a change of structure must not change: ``frozen_numbers.json`` beside this file.

The paper's estimator, the variational family and the classical estimators, on the data of the
paper and on a small simulated panel. Run this file to renew the numbers, and say in the commit
why they changed.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

import gp4c

NUMBERS = Path(__file__).with_name("frozen_numbers.json")


def arms(name):
    """The panels of the two arms of a data set, by name."""
    panel = gp4c.load_dataset(name)
    return {f"{name} {arm}": panel.where(treatment=arm) for arm in sorted(arms_of(panel))}


def arms_of(panel):
    return {str(arm) for arm in panel.covariates["treatment"]}


def simulated():
    """Fifteen subjects with five visits each."""
    panel, _ = gp4c.simulate_panel(
        lambda t: 0.3 + 0.25 * np.sin(t / 2.0), window=(0, 12), n_subjects=15, n_intervals=5,
        random_state=4,
    )  # fmt: skip
    return panel


def times(panel):
    """Seven times, both ends of the window among them."""
    return np.linspace(*panel.window, 7)


def of_the_paper(panel, b):
    """What the paper's estimator finds."""
    model = gp4c.GP4C.paper(b=b, n_inducing=18, random_state=0).fit(panel)
    return {
        "objective": model.objective_,
        "length_scale": model.length_scale_,
        "variance": model.variance_,
        "intensity": model.intensity(times(panel)).tolist(),
    }


def of_the_family(panel, count_term, effect):
    """What the variational family finds."""
    model = gp4c.GP4C(count_term=count_term, effect=effect, n_inducing=12).fit(panel)
    return {
        "objective": model.objective_,
        "elbo": model.elbo_,
        "paper_bound": model.paper_bound_,
        "length_scale": model.length_scale_,
        "variance": model.variance_,
        "frailty_variance": model.frailty_variance_,
        "intensity": model.intensity(times(panel)).tolist(),
    }


def of_a_classic(model, panel):
    """What a classical estimator finds."""
    model.fit(panel)
    return {
        "cumulative": model.cumulative(times(panel)).tolist(),
        "objective": model.objective_,
        "score": model.score(panel),
    }


def classics(panel):
    """The classical estimators by name; the fixed bandwidth is a tenth of the window."""
    bandwidth = (panel.window[1] - panel.window[0]) / 10.0
    return {
        "LocalEM": gp4c.LocalEM(bandwidth=bandwidth),
        "LocalEM.paper": gp4c.LocalEM.paper(),
        "NPMPLE": gp4c.NPMPLE(),
        "NPMLE": gp4c.NPMLE(),
        "NPMPLGF": gp4c.NPMPLGF(),
        "HomogeneousPoisson": gp4c.HomogeneousPoisson(),
        "HomogeneousPoisson gamma": gp4c.HomogeneousPoisson(effect="gamma"),
    }


def numbers():
    """All numbers: estimator and panel -> name -> value or values."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overdispersion, early stops: not the subject here
        bladder = arms("bladder")
        for name, panel in {**bladder, "simulated": simulated()}.items():
            for b in (0.0, 0.3, 1.0):
                found[f"GP4C.paper b={b}, {name}"] = of_the_paper(panel, b)
        thiotepa = bladder["bladder thiotepa"]
        for count_term in ("lemma2", "pointwise", "exact"):
            for effect in (None, "gamma", "weight"):
                case = f"GP4C {count_term} {effect}, bladder thiotepa"
                found[case] = of_the_family(thiotepa, count_term, effect)
        skin = {"skin": gp4c.load_dataset("skin", event="all")}
        for name, panel in {**bladder, **arms("nausea"), **skin}.items():
            for title, model in classics(panel).items():
                found[f"{title}, {name}"] = of_a_classic(model, panel)
    return found


if __name__ == "__main__":
    NUMBERS.write_text(json.dumps(numbers(), indent=1) + "\n", encoding="utf-8")
