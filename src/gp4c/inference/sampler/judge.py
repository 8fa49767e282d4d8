"""Draws of the exact posterior under any law of counts and effects, and the log evidence.

The judge of every approximation: it shares the likelihood and the priors with the default engine
and nothing else. Independent tempered populations go from the prior to the posterior; how far they
agree says how far they may be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.landscape import Task, split_level
from gp4c.inference.engine.lattice import LENGTHS
from gp4c.inference.sampler.hyper_plan import Estimates, Guide, Plan, find_guide
from gp4c.inference.sampler.mcmc_diagnostics import bulk_ess, rank_r_hat
from gp4c.inference.sampler.sampler_report import SamplerReport
from gp4c.inference.sampler.target import PointRun, Settings
from gp4c.inference.sampler.tempered import CORRELATION, MIN_POPULATION
from gp4c.model.hyper_priors import STEADY
from gp4c.model.sparse_prior import SparsePrior
from gp4c.posterior.draws import CurveDraws, CurveGroup, systematic
from gp4c.posterior.modulated_draws import modulated
from gp4c.posterior.scoring import log_mean_exp

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: correlation at which the pilot's populations stop moving: its evidences are rough, not biased
_PILOT_CORRELATION = 0.9
#: unit times at which the report looks at the curve, and times of the mean that stands for Λ
_TIMES, _N_TIMES = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), 101


@dataclass(frozen=True)
class Bundle:
    """Draws of one population at one length-scale and one u, in unit time and unit rate.

    Attributes
    ----------
    length_scale, u : float
    x : (D, S)
        (v, l, parameters of the laws, β); v has as many rows as this length-scale needs.
    log_likelihood : (S,)
    weight : float
        Of each draw; the weights of all draws of all bundles sum to 1.
    population : int
    """

    length_scale: float
    u: float
    x: Floats
    log_likelihood: Floats
    weight: float
    population: int


@dataclass(frozen=True)
class Draws:
    """Weighted draws of the posterior, in bundles that share their hyper-parameters."""

    task: Task
    bundles: tuple[Bundle, ...]

    @property
    def size(self) -> int:
        """S, all draws."""
        return sum(bundle.x.shape[1] for bundle in self.bundles)

    def each(self, name: str) -> Floats:
        """An attribute of the bundles ("u", "length_scale"), repeated for each of their draws."""
        sizes = [bundle.x.shape[1] for bundle in self.bundles]
        return np.repeat([getattr(bundle, name) for bundle in self.bundles], sizes)

    @property
    def weights(self) -> Floats:
        """(S,)."""
        return self.each("weight")

    @property
    def population(self) -> Floats:
        """The independent population that each draw belongs to, (S,)."""
        return self.each("population")

    @property
    def tails(self) -> Floats:
        """The rows (l, parameters, β) of every draw."""
        n = 1 + self.task.n_params + self.task.n_beta
        return np.concatenate([bundle.x[-n:] for bundle in self.bundles], axis=1)

    @property
    def log_likelihood(self) -> Floats:
        """(S,)."""
        return np.concatenate([bundle.log_likelihood for bundle in self.bundles])

    def squares(self, times: Floats) -> Floats:
        """f² at unit times, (T, S): the intensity over the data's mean rate."""
        return np.concatenate([self._squares(bundle, times) for bundle in self.bundles], axis=1)

    def intensities(self, times: Floats) -> Floats:
        """λ of every draw at times of the data, (T, S)."""
        cells = self.task.likelihood.cells
        low, high = cells.window
        return self.squares((times - low) / (high - low)) * (cells.rate / (high - low))

    def curves(self, kernel: str) -> CurveDraws:
        """The posterior in the user's units, as all estimators give it."""
        n, p = len(self.tails), self.task.n_params
        groups = tuple(
            CurveGroup(bundle.length_scale, _inducing(len(bundle.x) - n), bundle.x[:-n])
            for bundle in self.bundles
        )
        k, mean = split_level(self.each("u"))
        scale, cells = np.exp(self.tails[0] / 2), self.task.likelihood.cells
        last = 1 + p + cells.n_covariates
        found = CurveDraws(
            kernel=kernel,
            groups=groups,
            weights=self.weights,
            variance=(scale * k) ** 2,
            prior_mean=scale * mean,
            params=self.tails[1 : 1 + p],
            coefficients=self.tails[1 + p : last],
            chain=self.population.astype(np.intp),
            window=cells.window,
            rate=cells.rate,
        )
        if cells.modulation is None:
            return found
        return modulated(found, cells.modulation, self.tails[last:])

    def _squares(self, bundle: Bundle, times: Floats) -> Floats:
        m = len(bundle.x) - 1 - self.task.n_params - self.task.n_beta
        prior = SparsePrior(self.task.kernel, _inducing(m), bundle.length_scale)
        k, mean = split_level(np.array(bundle.u))
        h = mean + k * (prior.features(times) @ bundle.x[:m])
        return np.asarray(np.exp(bundle.x[m]) * h**2)


def _inducing(m: int) -> Floats:
    """The inducing inputs of a landscape with so many of them."""
    return np.linspace(0.0, 1.0, m) if m > 1 else np.array([0.5])


def sample_posterior(
    task: Task,
    *,
    length_scale: float | None = None,
    u: float | None = None,
    n_draws: int = 2000,
    n_populations: int = 4,
    random_state: int | None = None,
    n_jobs: int | None = None,
    correlation: float = CORRELATION,
) -> tuple[Draws, SamplerReport]:
    """Draws of the exact posterior from independent tempered populations.

    Parameters
    ----------
    length_scale, u : float, optional
        Values to hold fixed, in unit time; None integrates over the prior of
        `gp4c.model.hyper_priors`, within the ranges that the default engine allows.
    n_draws, n_populations : int
        Draws in all, and the populations they are split between. With hyper-parameters to
        integrate there are at least `hyper_plan.LEAST_DRAWS` at each point of a lattice, so that
        more may come back.
    n_jobs : int, optional
        Processes of joblib; the draws do not depend on it.
    correlation : float
        Smaller values move the draws longer.
    """
    sample = partial(
        _populations, task, n_draws=n_draws, n_populations=n_populations,
        random_state=random_state, n_jobs=n_jobs, correlation=correlation,
    )  # fmt: skip
    if not task.steady or length_scale is not None or u is not None:
        return sample(length_scale, u)
    return _mixed(task, sample(None, None), sample(float(np.exp(LENGTHS[1])), STEADY))


def _mixed(
    task: Task, varying: tuple[Draws, SamplerReport], steady: tuple[Draws, SamplerReport]
) -> tuple[Draws, SamplerReport]:
    """Draws of the curve that varies and of the one that does not, by their evidences.

    The report is that of the more probable of the two, with the evidence of both.
    """
    prior = np.log([1.0 - task.steady, task.steady])
    logs = prior + np.array([varying[1].log_evidence, steady[1].log_evidence])
    share = np.exp(logs - logsumexp(logs))
    bundles = tuple(
        replace(bundle, weight=bundle.weight * float(part))
        for part, (draws, _) in zip(share, (varying, steady), strict=True)
        for bundle in draws.bundles
    )
    runs = np.logaddexp(
        prior[0] + varying[1].run_log_evidences, prior[1] + steady[1].run_log_evidences
    )
    pooled, error = log_mean_exp(runs)
    main = (varying if share[0] > share[1] else steady)[1]
    report = replace(
        main, log_evidence=float(pooled), log_evidence_error=float(error), run_log_evidences=runs
    )
    return Draws(task, bundles), report


def _populations(
    task: Task,
    length_scale: float | None,
    u: float | None,
    *,
    n_draws: int,
    n_populations: int,
    random_state: int | None,
    n_jobs: int | None,
    correlation: float,
) -> tuple[Draws, SamplerReport]:
    """Independent populations where hyper-parameters are held fixed, or integrated."""
    pilot, *children = np.random.SeedSequence(random_state).spawn(1 + n_populations)
    free_u = u is None and task.variations[0] < task.variations[1]
    settings = Settings(task, length_scale is None, free_u, correlation)
    each = max(int(np.ceil(n_draws / n_populations)), MIN_POPULATION)
    quick = replace(settings, correlation=_PILOT_CORRELATION)
    guide = _guide(settings, length_scale, u, _estimates(quick, pilot, n_jobs))
    plans = [guide.plan(each, np.random.default_rng(child)) for child in children]
    runs = _run_plans(settings, plans, children, n_jobs)
    draws = _draws(task, plans, runs)
    return draws, _report(task, draws, plans, runs)


def _guide(
    settings: Settings, length_scale: float | None, u: float | None, estimate: Estimates
) -> Guide:
    """Where the posterior of the hyper-parameters is; one point if both are fixed."""
    lengths = _log_lengths(settings.task) if length_scale is None else (np.log(length_scale),) * 2
    variations = settings.task.variations if u is None else (u, u)
    if not settings.free_length and not settings.free_u:
        axes = (np.array(lengths[:1]), np.array(variations[:1]))
        return Guide(axes, np.zeros((1, 1)), (1.0, 1.0), (0.0, 0.0))
    return find_guide((lengths, variations), estimate)


def _log_lengths(task: Task) -> tuple[float, float]:
    """The engine's range of ln a, as far as the task's inducing inputs resolve it."""
    resolved = 1.0 / max(task.n_inducing - 1, 1) / 1.5 if task.n_inducing else 0.0
    shortest = max(task.likelihood.cells.resolution, resolved, 1e-300)
    return max(LENGTHS[0], float(np.log(shortest))), LENGTHS[1]


def _estimates(settings: Settings, seed: np.random.SeedSequence, n_jobs: int | None) -> Estimates:
    def estimate(points: Floats, numbers: Indices) -> Floats:
        runs = _run_plans(settings, [Plan(points, numbers, 0.0)], [seed], n_jobs)
        return np.array([run.log_evidence for run in runs[0]])

    return estimate


def _run_plans(
    settings: Settings,
    plans: list[Plan],
    seeds: list[np.random.SeedSequence],
    n_jobs: int | None,
) -> list[list[PointRun]]:
    """Populations at all points of all plans."""
    from joblib import Parallel, delayed  # only here: other fits need no sampler

    jobs = [
        (float(point[0]), float(point[1]), int(n), child)
        for plan, seed in zip(plans, seeds, strict=True)
        for point, n, child in zip(
            plan.points, plan.numbers, seed.spawn(len(plan.points)), strict=True
        )
    ]
    done: list[Any] = Parallel(n_jobs=n_jobs)(delayed(settings.run)(*job) for job in jobs)
    ends = np.cumsum([len(plan.points) for plan in plans])
    return [done[end - len(plan.points) : end] for plan, end in zip(plans, ends, strict=True)]


def _draws(task: Task, plans: list[Plan], runs: list[list[PointRun]]) -> Draws:
    """All draws; a point's draws share its estimated evidence."""
    logs = [
        run.log_evidence + plan.log_area
        for plan, some in zip(plans, runs, strict=True)
        for run in some
    ]
    share = np.exp(np.array(logs) - logsumexp(logs))
    pairs = [(population, run) for population, some in enumerate(runs) for run in some]
    bundles = (
        Bundle(
            float(np.exp(run.log_length)), run.u, run.x, run.log_likelihood,
            float(weight / run.x.shape[1]), population,
        )
        for (population, run), weight in zip(pairs, share, strict=True)
    )  # fmt: skip
    return Draws(task, tuple(bundles))


def _report(
    task: Task, draws: Draws, plans: list[Plan], runs: list[list[PointRun]]
) -> SamplerReport:
    names, values = _watched(task, draws)
    chains = _chains(draws, values)
    evidence = np.array(
        [
            logsumexp([run.log_evidence for run in some]) + plan.log_area
            for plan, some in zip(plans, runs, strict=True)
        ]
    )
    pooled, error = log_mean_exp(evidence)
    work = [run for some in runs for run in some]
    shortest = min(run.log_length for run in work)
    features = task.landscape(shortest).features
    return SamplerReport(
        log_evidence=float(pooled),
        log_evidence_error=float(error),
        run_log_evidences=evidence,
        names=names,
        r_hat=np.array([rank_r_hat(c) for c in chains]),
        ess=np.array([bulk_ess(c) for c in chains]),
        acceptance=sum(w.updates for w in work) / sum(w.evaluations for w in work),
        n_steps=np.array([max(run.n_steps for run in some) for some in runs]),
        unexplained=float((1.0 - (features**2).sum(axis=1)).max()),
    )


def _watched(task: Task, draws: Draws) -> tuple[tuple[str, ...], Floats]:
    """Names and values, (P, S), of what the report looks at."""
    likelihood = task.likelihood
    laws = (*likelihood.effect.parameters, *likelihood.law.parameters)
    names = [f"λ({t:g})" for t in _TIMES] + ["Λ", "log-likelihood", "l"]
    names += [law.name for law in laws] + [f"β{i + 1}" for i in range(task.n_beta)]
    whole = draws.squares(np.linspace(0.0, 1.0, _N_TIMES)).mean(axis=0)
    values = [draws.squares(_TIMES), whole, draws.log_likelihood, draws.tails]
    for name, row in (("u", draws.each("u")), ("ln a", np.log(draws.each("length_scale")))):
        if np.ptp(row) > 0:
            names.append(name)
            values.append(row)
    return tuple(names), np.vstack(values)


def _chains(draws: Draws, values: Floats) -> Floats:
    """Equally weighted draws of each population, (P, populations, n).

    Where a population has many points, its draws are taken in random order: neighbours would
    share their hyper-parameters. What is left for R̂ and effective sizes to see is then how far
    populations differ.
    """
    rng = np.random.default_rng(0)
    weights, population = draws.weights, draws.population
    each = min(int((population == p).sum()) for p in np.unique(population))
    chosen = []
    for p in np.unique(population):
        members = np.flatnonzero(population == p)
        taken = members[systematic(weights[members], each, rng)]
        many = sum(bundle.population == p for bundle in draws.bundles) > 1
        chosen.append(rng.permutation(taken) if many else taken)
    return np.stack([values[:, who] for who in chosen], axis=1)
