"""The path of the published program, re-created, and which of its steps leads where for b = 1.

On Synthetic A the published program ends with b = 1 at a length-scale of 2 to 3 and a MISE near
40; ``GP4C.paper(b=1.0)`` ends at 4 to 5 and above 60, although both stop by the same rule. Here is
the published path in our own lines, with a switch for each place where ours is another
(:class:`Path`), so that one difference at a time can be turned over. Like `naive_reference.py` it
shares no numerics with the package. Results go to ``results/published_path.json``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path as File
from typing import Any

import numpy as np
from naive_reference import JITTER, LEMMA2_CONSTANT, SMALLEST_DIAGONAL, Intervals
from numpy.typing import NDArray
from provenance import is_current, stamp
from scipy.integrate import simpson
from scipy.linalg import cho_factor, cho_solve
from scipy.special import erf
from speed import machine, synthetic_a
from two_metric import lbfgsb, two_metric

import gp4c
from gp4c.data.simulate.intensities import square_wave
from gp4c.threads import one_blas_thread

Floats = NDArray[np.float64]

#: what the result stands on: `GP4C.paper` is measured beside the re-created path
STANDS_ON = ("inference/variational", "model")
RESULTS = File(__file__).parent / "results" / "published_path.json"
SEEDS = tuple(range(6))
N_INDUCING, EVALUATIONS, TOLERANCE, MOST_ROUNDS = 30, 10, 1e-4, 200
TIMES = np.linspace(0.0, 60.0, 3001)
#: length-scales of the published program, with rounding; the paper's MISE and its spread; a
#: length-scale above the last smooths the jumps away
SHORT, PAPER_MISE, PAPER_SPREAD, LONG = (1.95, 2.95), 42.71, 6.34, 4.0
#: bounds of the package on a/window and γ/rate, where the inducing inputs are 1/29 apart
BOX = ((2 / 3 / 29, 2.0), (1e-8, 1e2))


@dataclass(frozen=True)
class Path:
    """Where the package's path leaves the published one; the default is the published path."""

    #: g is in the predictive mean, and so in every term; published: in the KL term only
    mean_everywhere: bool = False
    #: the jitter 1e-6 is a share of the kernel's variance γ; published: a variance of its own
    relative_jitter: bool = False
    #: an M-step moves ln γ; published: the logarithm of the standard deviation, ½ ln γ
    log_variance: bool = False
    #: an E-step goes by SciPy's L-BFGS-B; published: the two-metric projection
    e_step_lbfgsb: bool = False
    #: an M-step goes by SciPy's L-BFGS-B; published: the two-metric projection
    m_step_lbfgsb: bool = False
    #: a and γ have bounds on both sides; published: none
    m_step_bounds: bool = False
    #: the rule that stops looks at the bound after an M-step; published: after an E-step
    stop_after_m: bool = False


#: the published path with the package's jitter and its whole M-step
PAIR = "published, relative_jitter and M-step"
PUBLISHED = Path()
PACKAGE = Path(**dict.fromkeys((field.name for field in fields(Path)), True))


class Prior:
    """K, its inverse, and the integrals of all intervals, each a row; derivatives by ln a."""

    def __init__(self, data: Intervals, z: Floats, a: float, gamma: float, jitter: float):
        self.z, self.a, self.gamma, self.length = z, a, gamma, data.stop - data.start
        gap, size = z[:, None] - z, len(z)
        self.kernel = gamma * np.exp(-(gap**2) / (2 * a**2))
        factor = cho_factor(self.kernel + jitter * np.eye(size), lower=True)
        self.factor, self.inverse = np.tril(factor[0]), cho_solve(factor, np.eye(size))
        self.log_det = 2 * float(np.log(np.diag(self.factor)).sum())
        self.by_a = self.kernel * gap**2 / a**2
        self._overlaps(data, gap)
        upper, lower = (x[:, None] - z for x in (data.stop, data.start))
        wide = np.sqrt(2) * a
        self.single = gamma * np.sqrt(np.pi) / 2 * wide * (erf(upper / wide) - erf(lower / wide))
        self.single_by_a = self.single - gamma * (
            upper * np.exp(-((upper / wide) ** 2)) - lower * np.exp(-((lower / wide) ** 2))
        )

    def _overlaps(self, data: Intervals, gap: Floats) -> None:
        """Φ, and ∂Φ/∂ln a; evenly spaced inputs have few different midpoints."""
        a, size = self.a, len(self.z)
        midpoints = np.linspace(self.z[0], self.z[-1], 2 * size - 1)
        upper, lower = ((x[:, None] - midpoints) / a for x in (data.stop, data.start))
        pair = np.add.outer(np.arange(size), np.arange(size)).ravel()
        bump = (self.gamma**2 * np.exp(-(gap**2) / (4 * a**2))).ravel()
        edge = (upper * np.exp(-(upper**2)) - lower * np.exp(-(lower**2)))[:, pair]
        self.overlap = np.sqrt(np.pi) * a / 2 * bump * (erf(upper) - erf(lower))[:, pair]
        self.overlap_by_a = self.overlap * (gap**2 / (2 * a**2) + 1).ravel() - a * bump * edge

    def sum(self, weights: Floats, rows: Floats) -> Floats:
        """Sum of matrices that are the rows of `rows`."""
        size = len(self.z)
        return np.asarray(weights @ rows).reshape(size, size)


@dataclass(frozen=True)
class Terms:
    """The constant-free bound at one (μ, C, a, γ), and what its gradients need."""

    value: float
    off: float
    away: Floats
    spread: Floats
    from_mean: Floats
    by_mean_sq: Floats
    by_variance: Floats


class Bound:
    """The bound of Theorem 2 with g in the KL term only, or everywhere."""

    def __init__(self, data: Intervals, g: float, b: float, mean_everywhere: bool):
        self.data, self.g, self.b = data, g, b
        self.off = g if mean_everywhere else 0.0

    def terms(self, prior: Prior, mu: Floats, C: Floats) -> Terms | None:
        """All but the gradients; None where an interval has no mass to take a logarithm of."""
        inverse, off, length = prior.inverse, self.off, prior.length
        away, spread = inverse @ (mu - off), inverse @ (C @ C.T) @ inverse
        mean_sq = prior.overlap @ np.outer(away, away).ravel()
        mean_sq += off**2 * length + 2 * off * (prior.single @ away)
        variance = prior.gamma * length + prior.overlap @ (spread - inverse).ravel()
        mass, count, seen = mean_sq + self.b * variance, self.data.count, self.data.seen
        if np.any(mass <= 0):
            return None
        gap = mu - self.g
        kl = np.sum(inverse * (C @ C.T)) + gap @ inverse @ gap - len(mu) + prior.log_det
        value = count @ np.log(mass) - seen @ (mean_sq + variance)
        value += np.log(np.diag(C)).sum() - kl / 2
        by_mass = count / mass
        return Terms(
            float(value), off, away, spread, inverse @ gap, by_mass - seen, self.b * by_mass - seen
        )

    def by_q(self, prior: Prior, mu: Floats, C: Floats) -> tuple[float, Floats, Floats]:
        """The bound and its gradients by μ and by C."""
        at = self.terms(prior, mu, C)
        if at is None:
            return -np.inf, np.zeros_like(mu), np.zeros_like(C)
        inverse, pull = prior.inverse, prior.sum(at.by_mean_sq, prior.overlap) @ at.away
        by_mu = 2 * inverse @ (pull + at.off * (at.by_mean_sq @ prior.single)) - at.from_mean
        by_S = inverse @ prior.sum(at.by_variance, prior.overlap) @ inverse
        by_C = np.tril(2 * by_S @ C - inverse @ C) + np.diag(1 / np.diag(C))
        return at.value, by_mu, by_C

    def by_hyper(self, prior: Prior, mu: Floats, C: Floats) -> tuple[float, Floats]:
        """The bound and its gradient by (ln a, ln γ) at fixed (μ, C)."""
        at = self.terms(prior, mu, C)
        if at is None:
            return -np.inf, np.zeros(2)
        inverse, away, excess = prior.inverse, at.away, at.spread - prior.inverse
        first = prior.sum(at.by_mean_sq, prior.overlap)
        second = prior.sum(at.by_variance, prior.overlap)
        single = at.by_mean_sq @ prior.single
        # by K, through its inverse alone
        by_K = -2 * np.outer(inverse @ (first @ away + at.off * single), away)
        by_K -= inverse @ second @ (2 * at.spread - inverse)
        by_K -= (inverse - at.spread - np.outer(at.from_mean, at.from_mean)) / 2
        # by the integrals, Φ ∝ γ² and ∫k ∝ γ, and by the prior variance
        by_a = away @ prior.sum(at.by_mean_sq, prior.overlap_by_a) @ away
        by_a += np.sum(prior.sum(at.by_variance, prior.overlap_by_a) * excess)
        by_a += 2 * at.off * (at.by_mean_sq @ prior.single_by_a) @ away + np.sum(by_K * prior.by_a)
        by_gamma = 2 * (away @ first @ away + np.sum(second * excess) + at.off * single @ away)
        by_gamma += prior.gamma * at.by_variance @ prior.length + np.sum(by_K * prior.kernel)
        return at.value, np.array([by_a, by_gamma])


# -- variational EM ----------------------------------------------------------------------------


class Search:
    """The bound of one panel in the coordinates of an E-step and of an M-step."""

    def __init__(self, panel: Any, b: float, path: Path):
        self.path, self.window = path, panel.window
        count, long = panel.count.astype(float), panel.window[1] - panel.window[0]
        at_risk = np.bincount(panel.subject_index, panel.stop - panel.start)
        self.g = float(np.sqrt(np.mean(np.bincount(panel.subject_index, count) / at_risk)))
        self.data, self.z = Intervals.of(panel.start, panel.stop, count), np.linspace(
            *panel.window, N_INDUCING
        )  # fmt: skip
        self.bound = Bound(self.data, self.g, b, path.mean_everywhere)
        self.lower = np.tril_indices(N_INDUCING)
        self.units = np.array([1.0, 1.0 if path.log_variance else 2.0])
        rate = count.sum() / at_risk.sum()
        box = np.log([np.array(BOX[0]) * long, np.array(BOX[1]) * rate]) / self.units[:, None]
        free = np.full(2, np.inf)
        self.theta_bounds = (box[:, 0], box[:, 1]) if path.m_step_bounds else (-free, free)
        low = np.full(N_INDUCING + len(self.lower[0]), -np.inf)
        low[N_INDUCING:][self.lower[0] == self.lower[1]] = SMALLEST_DIAGONAL
        self.x_bounds = (low, np.full_like(low, np.inf))

    def prior(self, theta: Floats) -> Prior:
        """The prior at the coordinates of an M-step."""
        a, gamma = np.exp(theta * self.units)
        jitter = JITTER * (gamma if self.path.relative_jitter else 1.0)
        return Prior(self.data, self.z, a, gamma, jitter)

    def start(self, seed: int) -> tuple[Floats, Floats]:
        """a = √window, γ = g²/2, μ = √½ g (0.1 + U(0, 1)), Σ = K."""
        first = np.log([np.sqrt(self.window[1] - self.window[0]), self.g**2 / 2]) / self.units
        draw = np.random.default_rng(seed).random(N_INDUCING)
        factor = self.prior(first).factor[self.lower]
        x = np.concatenate([np.sqrt(0.5) * self.g * (0.1 + draw), factor])
        return np.maximum(x, self.x_bounds[0]), first

    def unpack(self, x: Floats) -> tuple[Floats, Floats]:
        """μ and C."""
        C = np.zeros((N_INDUCING, N_INDUCING))
        C[self.lower] = x[N_INDUCING:]
        return x[:N_INDUCING], C

    def e_step(self, x: Floats, prior: Prior) -> tuple[Floats, float]:
        """About ten evaluations over (μ, C)."""

        def function(x: Floats) -> tuple[float, Floats]:
            value, by_mu, by_C = self.bound.by_q(prior, *self.unpack(x))
            return value, np.concatenate([by_mu, by_C[self.lower]])

        ascend = lbfgsb if self.path.e_step_lbfgsb else two_metric
        return ascend(function, x, *self.x_bounds, EVALUATIONS)

    def m_step(self, theta: Floats, x: Floats) -> tuple[Floats, float]:
        """About ten evaluations over (ln a, ln γ)."""

        def function(theta: Floats) -> tuple[float, Floats]:
            value, gradient = self.bound.by_hyper(self.prior(theta), *self.unpack(x))
            return value, gradient * self.units

        ascend = lbfgsb if self.path.m_step_lbfgsb else two_metric
        return ascend(function, theta, *self.theta_bounds, EVALUATIONS)


def follow(panel: Any, b: float, path: Path, seed: int) -> dict[str, Any]:
    """Follow a path from the published start to its stop; where it ends and how it got there."""
    search = Search(panel, b, path)
    x, theta = search.start(seed)
    values: list[float] = []
    scales: list[float] = []
    while len(values) < MOST_ROUNDS:
        x, after_e = search.e_step(x, search.prior(theta))
        theta, after_m = search.m_step(theta, x)
        scales.append(float(np.exp(theta[0])))
        values.append(after_m if path.stop_after_m else after_e)
        if len(values) > 1 and abs(values[-1] - values[-2]) <= TOLERANCE * abs(values[-1]):
            break
    rate = expected_rate(search.prior(theta), *search.unpack(x), search.bound.off)
    objective = after_m - LEMMA2_CONSTANT * float(search.data.count.sum())
    return judged(scales[-1], rate, objective, len(values)) | {"length_scales": scales}


def expected_rate(prior: Prior, mu: Floats, C: Floats, off: float) -> Floats:
    """E f² on a grid over the window."""
    cross = prior.gamma * np.exp(-((TIMES[:, None] - prior.z) ** 2) / (2 * prior.a**2))
    weights = cross @ prior.inverse
    variance = prior.gamma - np.sum(weights * cross, axis=1) + np.sum((weights @ C) ** 2, axis=1)
    return np.asarray((off + weights @ (mu - off)) ** 2 + variance)


def judged(length_scale: float, rate: Floats, objective: float, rounds: int) -> dict[str, Any]:
    """What a fit ends with."""
    error = (rate - square_wave()(TIMES)) ** 2
    return {
        "length_scale": float(length_scale),
        "mise": float(simpson(error, x=TIMES)),
        "objective": float(objective),
        "rounds": int(rounds),
    }


# -- the study -----------------------------------------------------------------------------------


def paths() -> dict[str, Path]:
    """Both paths, and each with one step of the other's."""
    names = [field.name for field in fields(Path)]
    return {
        "published": PUBLISHED,
        **{f"published, {name}": replace(PUBLISHED, **{name: True}) for name in names},
        PAIR: replace(PUBLISHED, relative_jitter=True, m_step_lbfgsb=True, m_step_bounds=True),
        "package": PACKAGE,
        **{f"package, not {name}": replace(PACKAGE, **{name: False}) for name in names},
    }


def trial(seed: int, found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every path for b = 1 on one data set, `GP4C.paper`, and b = 0.3; what is `found` is kept."""
    panel = synthetic_a(seed)

    def package(b: float) -> dict[str, Any]:
        model = gp4c.GP4C.paper(b=b, n_inducing=N_INDUCING, random_state=seed).fit(panel)
        return judged(model.length_scale_, model.intensity(TIMES), model.objective_, model.n_iter_)

    wanted = {
        "GP4C.paper, b = 1": partial(package, 1.0),
        "GP4C.paper, b = 0.3": partial(package, 0.3),
        "published, b = 0.3": partial(follow, panel, 0.3, PUBLISHED, seed),
        **{name: partial(follow, panel, 1.0, path, seed) for name, path in paths().items()},
    }
    ends = {name: found.get(name) or make() for name, make in wanted.items()}
    shown = ", ".join(f"{name} {end['length_scale']:.2f}" for name, end in ends.items())
    print(f"data set {seed}, length-scales: {shown}", flush=True)
    return ends


def earlier() -> list[dict[str, Any]]:
    """Trials of an earlier run on the same source."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    trials: list[dict[str, Any]] = found["trials"] if is_current(found) else []
    return trials + [{} for _ in SEEDS[len(trials) :]]


def summarise(trials: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Per path: smallest, middle and largest of what its fits end with."""
    summary = {}
    for name in trials[0]:
        ends = [t[name] for t in trials]
        behind = [t[name]["objective"] - t["published"]["objective"] for t in trials]
        columns = {key: [end[key] for end in ends] for key in ("length_scale", "mise", "rounds")}
        if "0.3" not in name:
            columns["above_published"] = behind
        summary[name] = {
            f"{key}_{what}": float(function(values))
            for key, values in columns.items()
            for what, function in (("least", np.min), ("median", np.median), ("most", np.max))
        }
    return summary


def check(summary: dict[str, dict[str, float]]) -> None:
    """Raise if a path does not end where the program that it stands for does."""
    low, high = (summary["published"][f"length_scale_{what}"] for what in ("least", "most"))
    assert SHORT[0] <= low, f"the published path ends at {low:.2f}"
    assert high <= SHORT[1], f"the published path ends at {high:.2f}"
    gap = abs(summary["published"]["mise_median"] - PAPER_MISE)
    assert gap <= PAPER_SPREAD, f"its MISE is {gap:.1f} from the paper's"
    least = summary["package"]["length_scale_least"]
    assert least > LONG, f"the package's path ends at {least:.2f}"


def main() -> None:
    with one_blas_thread():
        trials = [trial(*pair) for pair in zip(SEEDS, earlier(), strict=True)]
    summary = summarise(trials)
    result = {
        **stamp(STANDS_ON),
        "machine": machine(),
        "paths": {name: asdict(path) for name, path in paths().items()},
        "summary": summary,
        "trials": trials,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for name, s in summary.items():
        print(
            f"{name:32s} a {s['length_scale_least']:.1f} to {s['length_scale_most']:.1f}, "
            f"MISE {s['mise_median']:.1f} ({s['mise_least']:.0f} to {s['mise_most']:.0f}), "
            f"{s['rounds_least']:.0f} to {s['rounds_most']:.0f} rounds"
        )
    check(summary)


if __name__ == "__main__":
    main()
