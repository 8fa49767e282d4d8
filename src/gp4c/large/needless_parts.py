r"""Parts of a law that the rows of a large panel do not ask for.

A law with one part more, bursts or subject effects, has the simpler law at the end of its range:
φ → 0, or α → ∞. Near this end the part changes neither the curve nor its height, so that the
simpler law's curve tells what the part is worth: its log-likelihood on all rows there, over the
values of its parameter θ, less that at the end,

.. math::
    \frac{p_1(\text{counts})}{p_0(\text{counts})} \approx
        \int p(\theta)\, e^{\ell(\theta) - \ell(\text{end})}\, d\theta .

All rows are visited once, where a fit of the richer law visits them several times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.climb import Mode
from gp4c.inference.engine.nested_laws import nested_parameters
from gp4c.inference.engine.posterior_fit import CLEARLY_AGAINST, Laws, task_for
from gp4c.large.expanded_cells import ManyRows
from gp4c.model.laws.count_law import Parameter

Floats = NDArray[np.float64]

#: where the likelihood is taken, in deviations of the prior from its mean: the last is the end.
#: Two neighbours are a factor of e² in φ or α, which no peak worth nats falls between
_PLACES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0])
#: variance of an effect, or excess of a dispersion, that is none
_NOTHING = 1e-4
#: log odds below which a part is not asked for: a nat more than `richest_plausible` asks for, since
#: curve and height are held fixed, which costs some tenths
_CLEARLY_LESS = -CLEARLY_AGAINST - 1.0


def needless_parts(many: ManyRows, mode: Mode, laws: list[Laws]) -> dict[Laws, float]:
    """Laws with parts more than that of a mode which the rows do not ask for, and their log odds.

    With two parts more, a law is needless if each of them is: either would show the other's
    dispersion as its own.
    """
    likelihood, found = mode.landscape.task.likelihood, dict[Laws, float]()
    simple = likelihood.law, likelihood.effect
    for law, effect in reversed(laws):
        halves = [(law, simple[1]), (simple[0], effect)]
        if simple not in halves:
            odds = sum(found.get(half, np.inf) for half in halves)
        else:
            odds = odds_of_part(many, mode, (law, effect))
        if odds < _CLEARLY_LESS:
            found[law, effect] = odds
    return found


def odds_of_part(many: ManyRows, mode: Mode, laws: Laws) -> float:
    """Log odds of a law with one parameter more than that of a mode; infinite if it is no such."""
    simple, m = mode.landscape.task, mode.landscape.size
    rich = task_for(next(many.chunks(laws, 1)), *laws, **many.settings)
    kept = nested_parameters(rich, simple)
    if kept is None or rich.n_params != simple.n_params + 1:
        return np.inf
    added = int(np.setdiff1d(np.arange(rich.n_params), kept)[0])
    towards = _towards_the_end(laws, added)
    if towards is None:
        return np.inf
    values, amount = towards
    x = np.empty((m + 1 + rich.n_params, len(values)))
    x[: m + 1] = mode.x[: m + 1, None]
    x[m + 1 + kept] = mode.x[m + 1 :, None]
    x[m + 1 + added] = values
    u, total = np.full(len(values), mode.u), np.zeros(len(values))
    for cells in many.chunks(laws):
        land = task_for(cells, *laws, **many.settings).landscape(mode.landscape.log_length)
        total += land.log_density(x, u) - land.log_prior(x, u)
    return _log_odds(total - total[-1], amount)


def _towards_the_end(laws: Laws, added: int) -> tuple[Floats, Floats] | None:
    """Values of a parameter at `_PLACES`, on the side where its part vanishes, and what is left.

    None if the part vanishes on neither side.
    """
    law, effect = laws
    of_effect = added < len(effect.parameters)
    place = added if of_effect else added - len(effect.parameters)
    parameters: tuple[Parameter, ...] = effect.parameters if of_effect else law.parameters
    one, at = parameters[place], np.array([[q.mean] * len(_PLACES) for q in parameters])
    for sign in (-1.0, 1.0):
        at[place] = one.mean + sign * one.deviation * _PLACES
        amount = effect.variance(at) if of_effect else law.dispersion(at) - 1.0
        if amount[-1] < _NOTHING:
            return at[place], np.asarray(amount)
    return None


def _log_odds(gain: Floats, amount: Floats) -> float:
    """ln ∫ p(θ) e^gain dθ, θ in deviations of its prior.

    Between two places the gain is a parabola in what the part amounts to, through 0 at the end.
    """
    places = np.linspace(-6.0, 12.0, 1801)
    here = np.exp(np.interp(places, _PLACES, np.log(amount)))
    k = np.clip(np.searchsorted(_PLACES, places) - 1, 0, len(_PLACES) - 2)
    slope = gain / amount
    bend = (np.diff(slope) / np.diff(amount))[k]
    gain_here = here * (slope[k] + bend * (here - amount[k]))
    log_each = gain_here - 0.5 * places**2 - 0.5 * np.log(2 * np.pi)
    return float(np.logaddexp.reduce(log_each) + np.log(places[1] - places[0]))
