"""A Bayesian model by NUTS: ln λ by a Hilbert-space Gaussian process, frailties, bursts."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

numpyro.enable_x64()
N_BASES, FACTOR = 40, 1.3


def log_rate(times, end):
    """A squared-exponential process on [0, end] by sines on a wider interval."""
    half = FACTOR * end / 2
    order = jnp.arange(1, N_BASES + 1) * jnp.pi / (2 * half)
    bases = jnp.sin(order * (times[:, None] - end / 2 + half)) / jnp.sqrt(half)
    level = numpyro.sample("level", dist.Normal(0.0, 3.0))
    size = numpyro.sample("size", dist.HalfNormal(1.0))
    scale = numpyro.sample("scale", dist.LogNormal(jnp.log(end / 10), 0.7))
    spectrum = size * jnp.sqrt(scale * jnp.sqrt(2 * jnp.pi)) * jnp.exp(-((scale * order) ** 2) / 4)
    with numpyro.plate("bases", N_BASES):
        weight = numpyro.sample("weight", dist.Normal(0.0, 1.0))
    return level + bases @ (spectrum * weight)


def counts(subject, start, stop, times, count=None):
    """Negative-binomial counts with variance (1 + φ) times their mean, given the frailty."""
    rate = jnp.exp(log_rate(times, times[-1]))
    steps = jnp.diff(times) * (rate[1:] + rate[:-1]) / 2
    total = jnp.concatenate([jnp.zeros(1), jnp.cumsum(steps)])
    numpyro.deterministic("rate", rate)
    numpyro.deterministic("sum", total)
    mean = jnp.interp(stop, times, total) - jnp.interp(start, times, total)
    variance = numpyro.sample("variance", dist.HalfNormal(1.0))
    phi = numpyro.sample("phi", dist.HalfNormal(2.0))
    with numpyro.plate("subjects", int(subject.max()) + 1):
        effect = numpyro.sample("effect", dist.Gamma(1 / variance, 1 / variance))
    law = dist.NegativeBinomialProbs(effect[subject] * mean / phi, phi / (1 + phi))
    numpyro.sample("count", law, obs=count)


def fit(data, times):
    subject = np.unique(data.subject, return_inverse=True)[1]
    sampler = MCMC(NUTS(counts), num_warmup=500, num_samples=500, progress_bar=False)
    start, stop, count = (data[name].to_numpy() for name in ("start", "stop", "count"))
    sampler.run(jax.random.PRNGKey(0), subject, start, stop, jnp.asarray(times), count)
    draws = sampler.get_samples()
    curve = {}
    for name in ("rate", "sum"):
        low, high = np.quantile(draws[name], [0.025, 0.975], axis=0)
        curve |= {name: draws[name].mean(axis=0), f"{name}_low": low, f"{name}_high": high}
    return (times, draws), curve


# -- for the comparison --


def about(model, fresh):
    """Log-likelihood of fresh subjects, averaged over draws and over 60 points of the frailty."""
    from scipy.special import logsumexp
    from scipy.stats import gamma, nbinom

    times, draws = model
    middle = (np.arange(60) + 0.5) / 60
    group = np.unique(fresh.subject, return_inverse=True)[1]
    count, each = fresh["count"].to_numpy()[:, None], []
    for k in range(0, len(draws["phi"]), 5):
        total, phi = np.asarray(draws["sum"][k]), float(draws["phi"][k])
        mean = np.interp(fresh.stop, times, total) - np.interp(fresh.start, times, total)
        effect = gamma.ppf(middle, 1 / draws["variance"][k], scale=draws["variance"][k])
        size = np.maximum(np.outer(mean, effect), 1e-12) / phi
        sums = np.zeros((group.max() + 1, len(middle)))
        np.add.at(sums, group, nbinom.logpmf(count, size, 1 / (1 + phi)))
        each.append(logsumexp(sums, axis=1) - np.log(len(middle)))
    return {"score": float((logsumexp(each, axis=0) - np.log(len(each))).sum())}
