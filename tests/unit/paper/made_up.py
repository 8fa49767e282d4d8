"""Records with made-up numbers, to test what is made of them."""

import numpy as np

from gp4c.paper.exhibits import (
    fig_bladder,
    fig_inducing,
    fig_subjects,
    fig_synthetic,
    table1,
    table3,
)
from gp4c.paper.studies.real import real_panel, split_of

#: what each method adds to L_test, and its MISE
GAIN = {"GP3": 8.0, "LocalEM": -4.0, "b=0": 0.0, "b=0.3": 0.0, "b=1": -900.0, "exact": 1.0,
        "default": 2.0}  # fmt: skip
MISE = {"GP3": 29.0, "LocalEM": 46.0, "b=0": 42.0, "b=0.3": 41.0, "b=1": 43.0, "exact": 40.0,
        "default": 39.0}  # fmt: skip
REAL = {"LocalEM": -150.0, "GP4C": -140.0, "GP4CW": -60.0, "GP4CW honest": -110.0,
        "default": -100.0, "HPP": -155.0, "HPP gamma": -106.0}  # fmt: skip


def synthetic_method(name, level):
    found = {"l_test": level + GAIN[name], "l_test_50": level + GAIN[name] - 1,
             "l_test_subjects": level - 2, "l_test_error": 0.1, "mise": MISE[name],
             "seconds": 0.5 if name != "default" else 2.0, "length_scale": 2.7,
             "bandwidth": 0.57}  # fmt: skip
    bands = {"width_0.5": 1.0, "inside_0.5": 0.5, "width_0.75": 2.0, "inside_0.75": 0.7}
    return found | bands


def real_method(name, level):
    value = REAL[name] + level
    return {"l_test": value, "l_test_50": value, "l_test_subjects": value + 1, "seconds": 0.2,
            "effect": "gamma"}  # fmt: skip


def curve(n=301, band=True):
    rate = np.linspace(1.0, 2.0, n)
    found = {"rate": rate.tolist()}
    if band:
        for level, width in (("0.5", 0.1), ("0.75", 0.2)):
            found[level] = [(rate - width).tolist(), (rate + width).tolist()]
    return found


def bladder_record():
    train, test, _ = split_of("Bladder A", "2/3", 0, 0)
    events = np.bincount(test.subject_index, test.count)
    scores = {name: (-1.0 - events * (k + 1) / 5).tolist()
              for k, name in enumerate(reversed(fig_bladder.SCORES))}  # fmt: skip
    return {
        "trial": 0,
        "train": [str(s) for s in train.subjects],
        "test": [str(s) for s in test.subjects],
        "test_events": events.tolist(),
        "times": np.linspace(*real_panel("Bladder A").window, 301).tolist(),
        "curves": {name: curve(band=name != "LocalEM") for name in fig_bladder.CURVES},
        "scores": scores,
    }


def record_of(task):
    """A made-up record of any task."""
    settings = task.settings
    level = 37000.0 + 100 * (settings.get("trial", 0) % 5)
    if task.study == "choices":
        return {"methods": {m: synthetic_method(m, level) for m in table1.METHODS}}
    if task.study in ("inducing", "subjects"):
        keys = settings.get("numbers") or settings.get("shares")
        return {"at": {str(k): {m: synthetic_method(m, level + 10 * k) for m in settings["names"]}
                       for k in keys}}  # fmt: skip
    if task.study == "split":
        spread = 3.0 * (settings["trial"] % 4)
        return {"methods": {m: real_method(m, spread) for m in REAL}}
    if task.study == "synthetic-curves":
        return {"times": np.linspace(0, 60, 301).tolist(), "truth": curve()["rate"],
                "curves": {m: curve(band=m != "LocalEM") for m in settings["names"]}}  # fmt: skip
    return bladder_record()


def records(plan, modules=(table1, fig_synthetic, fig_inducing, fig_subjects, table3, fig_bladder)):
    """Records of everything that a page of this plan needs."""
    found = {task: record_of(task) for module in modules for task in module.tasks(plan)}
    found |= {t: record_of(t) for module in modules for t in module.later(plan, found)}
    return {task: record | {"cpu_seconds": 60.0} for task, record in found.items()}
