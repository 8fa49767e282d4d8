"""Trials on the paper's real data (Section 5.2, Appendix F): one split of the subjects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gp4c.paper.studies.measure import fit_record, score_record, seeds
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator
    from gp4c.paper.store import Record

N_INDUCING = 18
#: share of subjects for training -> share held out
RATIOS = {"1/2": 0.5, "2/3": 1.0 / 3.0}
#: draws for a new subject's unknown weight: each costs as many as there are fitted subjects
HONEST_DRAWS = 500
SETS = (
    "Nausea A", "Nausea B", "Bladder A", "Bladder B", "Skin A", "Skin B", "Skin C", "Skin D",
)  # fmt: skip
_SKIN = {
    "A": ("basal", "dfmo", 1847.0), "B": ("squamous", "dfmo", 1847.0),
    "C": ("basal", "placebo", 1879.0), "D": ("squamous", "placebo", 1879.0),
}  # fmt: skip


def real_panel(name: str) -> PanelCounts:
    """One of the paper's eight sets, in its unit of time and its window."""
    from gp4c.data.datasets.bundled import PAPER_MONTH, load_dataset

    family, group = name.split()
    if family != "Skin":
        return load_dataset(family.lower()).where(group=group)
    event, treatment, last_day = _SKIN[group]
    panel = load_dataset("skin", event=event, unit="paper").where(treatment=treatment)
    return panel.with_window((0.0, last_day / PAPER_MONTH))


def split_of(name: str, ratio: str, trial: int, seed: int) -> tuple[PanelCounts, PanelCounts, int]:
    """Training and test subjects of one trial, and the seed of its fits."""
    split, fit = seeds(seed, f"real {name} {ratio} {trial}", 2)
    train, test = real_panel(name).split(test_size=RATIOS[ratio], random_state=split)
    return train, test, fit


def estimators(fit_seed: int) -> dict[str, Callable[[], PanelEstimator]]:
    """What is fitted, by name."""
    import gp4c

    return {
        "LocalEM": gp4c.LocalEM.paper,
        "GP4C": lambda: gp4c.GP4C.paper(b=0.3, n_inducing=N_INDUCING, random_state=fit_seed),
        "GP4CW": lambda: gp4c.GP4CW(
            b=0.3, n_inducing=N_INDUCING, optimizer="vem", tol=1e-4, random_state=fit_seed
        ),
        "default": lambda: gp4c.GP4C(),
        "HPP": lambda: gp4c.HomogeneousPoisson(),
        "HPP gamma": lambda: gp4c.HomogeneousPoisson(effect="gamma"),
    }


def split_trial(*, set: str, ratio: str, trial: int, seed: int) -> Record:
    """Tables 3 and 4: every estimator on one split of one set."""
    train, test, fit_seed = split_of(set, ratio, trial, seed)
    found: Record = {}
    with one_blas_thread():
        for name, make in estimators(fit_seed).items():
            model = make()
            found[name] = fit_record(model, train) | score_record(model, test)
            if name == "GP4CW":
                honest = score_record(model, test, new_subjects=True, n_draws=HONEST_DRAWS)
                found["GP4CW honest"] = {"seconds": found[name]["seconds"]} | honest
            if name == "default":
                found[name]["effect"] = model.effect_
    return {"n_train": train.n_subjects, "n_test": test.n_subjects, "methods": found}
