"""Trials on the paper's synthetic sets (Section 5.1): 100 subjects, 10 Dirichlet intervals each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gp4c.paper.studies.measure import curve_record, fit_record, score_record, seeds
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.data.simulate.intensities import Intensity
    from gp4c.estimators.base import PanelEstimator
    from gp4c.paper.store import Record

WINDOW = (0.0, 60.0)
N_SUBJECTS, N_INTERVALS, N_INDUCING = 100, 10, 30
#: seeds of our draws of B and C, whose own draws the paper does not publish; the first of each
#: are the intensities "synthetic_b" and "synthetic_c" of gp4c.simulate_panel
DRAW_SEEDS = {"B": (20181, 20183, 20185), "C": (20182, 20184, 20186)}


@dataclass(frozen=True)
class SyntheticTrial:
    """Data of one trial: both halves of the subjects, as counts and with their event times."""

    truth: Intensity
    train: PanelCounts
    test: PanelCounts
    events: RecurrentEvents
    fit_seed: int

    def train_events(self, subjects: ArrayLike) -> RecurrentEvents:
        """Event times of some subjects."""
        return self.events[np.flatnonzero(np.isin(self.events.subjects, subjects))]


def intensity(name: str, draw: int) -> Intensity:
    """The intensity of a set: the square wave for A, one of our draws from the prior for B, C."""
    from gp4c.data.simulate.intensities import gp_squared, square_wave

    if name == "A":
        return square_wave()
    return gp_squared(random_state=DRAW_SEEDS[name][draw - 1])


def synthetic_trial(name: str, draw: int, trial: int, seed: int) -> SyntheticTrial:
    """Simulate and halve the subjects of one trial; the same for every study of that trial."""
    from gp4c.data.simulate.simulate_panel import simulate_panel

    truth = intensity(name, draw)
    data, split, fit = seeds(seed, f"synthetic {name} {draw} {trial}")
    panel, events = simulate_panel(
        truth, window=WINDOW, n_subjects=N_SUBJECTS, n_intervals=N_INTERVALS, random_state=data
    )
    train, test = panel.split(test_size=0.5, random_state=split)
    return SyntheticTrial(truth, train, test, events, fit)


def estimators(
    fit_seed: int, n_inducing: int = N_INDUCING
) -> dict[str, Callable[[], PanelEstimator]]:
    """What is fitted, by name; GP3 takes event times, the others panel counts."""
    import gp4c

    def paper(b: float) -> Callable[[], PanelEstimator]:
        return lambda: gp4c.GP4C.paper(b=b, n_inducing=n_inducing, random_state=fit_seed)

    return {
        "GP3": lambda: gp4c.GP3(n_inducing=n_inducing),
        "LocalEM": gp4c.LocalEM.paper,
        "b=0": paper(0.0),
        "b=0.3": paper(0.3),
        "b=1": paper(1.0),
        "exact": lambda: gp4c.GP4C(
            count_term="exact", effect=None, hyper="optimize", n_inducing=n_inducing
        ),
        "default": lambda: gp4c.GP4C(),
    }


def judge(
    name: str, make: Callable[[], PanelEstimator], data: SyntheticTrial, train: PanelCounts
) -> Record:
    """Fit one estimator to these training subjects, score the test half, compare the curves."""
    import gp4c
    from gp4c.estimators.gp_base import GaussianProcessModel

    model = make()
    source = data.train_events(train.subjects) if name == "GP3" else train
    found = fit_record(model, source)
    found |= score_record(model, data.test) | curve_record(model, data.truth, WINDOW)
    if isinstance(model, GaussianProcessModel):
        found["length_scale"] = float(model.length_scale_)
    elif isinstance(model, gp4c.LocalEM):
        found["bandwidth"] = float(model.bandwidth_)
    if name == "default":
        found["effect"] = model.effect_
    return found


def choices_trial(*, set: str, draw: int, trial: int, seed: int) -> Record:
    """Table 1: every estimator on one trial of one set."""
    data = synthetic_trial(set, draw, trial, seed)
    with one_blas_thread():
        methods = {
            name: judge(name, make, data, data.train)
            for name, make in estimators(data.fit_seed).items()
        }
    return {"n_events": int(data.train.n_events), "methods": methods}


def inducing_trial(
    *, trial: int, seed: int, numbers: Sequence[int], names: Sequence[str]
) -> Record:
    """Figure "number of pseudo inputs": Synthetic A with different numbers of inducing inputs."""
    data = synthetic_trial("A", 1, trial, seed)
    found: Record = {}
    with one_blas_thread():
        for number in numbers:
            made = estimators(data.fit_seed, number)
            found[str(number)] = {name: judge(name, made[name], data, data.train) for name in names}
    return {"at": found}


def subjects_trial(
    *, trial: int, seed: int, shares: Sequence[float], names: Sequence[str]
) -> Record:
    """Appendix E: Synthetic A with a share of the training subjects, the test half unchanged."""
    data = synthetic_trial("A", 1, trial, seed)
    order = np.random.default_rng(data.fit_seed).permutation(data.train.n_subjects)
    made = estimators(data.fit_seed)
    found: Record = {}
    with one_blas_thread():
        for share in shares:
            kept = np.sort(order[: round(share * len(order))])
            part = data.train[kept]
            found[str(share)] = {name: judge(name, made[name], data, part) for name in names}
    return {"at": found}
