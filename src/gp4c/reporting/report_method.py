"""How a result was obtained, as a paragraph and a reference ready to paste."""

from __future__ import annotations

from typing import Any

from gp4c import __version__

PAPER = (
    "Ding, H., Lee, Y., Sato, I. and Sugiyama, M. (2018). Variational inference for Gaussian "
    "process with panel count data. In: Proceedings of the 34th Conference on Uncertainty in "
    "Artificial Intelligence (UAI)."
)
BIBTEX = """@inproceedings{ding2018gp4c,
  author    = {Ding, Hongyi and Lee, Young and Sato, Issei and Sugiyama, Masashi},
  title     = {Variational Inference for {Gaussian} Process with Panel Count Data},
  booktitle = {Proceedings of the 34th Conference on Uncertainty in Artificial Intelligence},
  year      = {2018}
}"""

_KERNELS = {"se": "squared exponential", "matern32": "Matérn 3/2", "matern52": "Matérn 5/2"}
_COUNT_TERMS = {
    "exact": "with the expected log-intensity of each interval evaluated exactly",
    "pointwise": "with a pointwise lower bound on the expected log-intensity of each interval",
    "lemma2": "with the bound of the original paper (b = {b:g})",
}
_CLASSICAL = {
    "LocalEM": (
        "The event rate was estimated by local EM: the events of each interval are spread over "
        "time according to the current rate and smoothed with a Gaussian kernel, in turn (Fan, "
        "Stafford and Brown, 2011)."
    ),
    "NPMLE": (
        "The mean number of events was estimated by nonparametric maximum likelihood for a "
        "Poisson process seen through its counts between visits (Wellner and Zhang, 2000)."
    ),
    "NPMPLE": (
        "The mean number of events was estimated by the nonparametric maximum "
        "pseudo-likelihood estimator (Sun and Kalbfleisch, 1995)."
    ),
    "NPMPLGF": (
        "The mean number of events was estimated by nonparametric maximum pseudo-likelihood "
        "with gamma frailty (Zhang and Jamshidian, 2003)."
    ),
    "HomogeneousPoisson": "A constant event rate was estimated by maximum likelihood.",
}


def method_paragraph(model: Any, by: str | None = None) -> str:
    """Describe how a fitted model was obtained, for a methods section."""
    name = type(model).__name__
    parts = [_gaussian_process(model) if hasattr(model, "posterior_") else _CLASSICAL[name]]
    parts.append(_effects(model))
    parts.append(_covariates(model))
    if by is not None:
        parts.append(f"Each level of {by} was fitted separately.")
    parts.append(_bands(model))
    parts.append(f"Computations used gp4c {__version__}.")
    return " ".join(part for part in parts if part)


def _gaussian_process(model: Any) -> str:
    kernel = _KERNELS[model.kernel]
    how = _COUNT_TERMS[getattr(model, "count_term", "exact")].format(b=getattr(model, "b", 0))
    hyper = (
        "Hyper-parameters were integrated out under weak priors."
        if model.hyper == "integrate"
        else "Hyper-parameters were set to the values that maximise the bound."
    )
    return (
        "Event counts between visits were modelled as a Poisson process whose rate is the square "
        f"of a Gaussian process ({kernel} covariance; Ding, Lee, Sato and Sugiyama, 2018). The "
        f"posterior was approximated by variational inference, {how}. {hyper}"
    )


def _effects(model: Any) -> str:
    if model.effect_ == "gamma":
        why = " (preferred by the evidence)" if getattr(model, "effect", "") == "auto" else ""
        return (
            "Differences between subjects were modelled as gamma-distributed frailties with mean "
            f"1{why}."
        )
    if model.effect_ == "weight":
        return "Each subject had a weight of its own, estimated from its counts."
    return "All subjects were taken to have the same rate."


def _covariates(model: Any) -> str:
    if getattr(model, "coefficients_", None) is None:
        return ""
    return (
        f"Covariates ({model.formula}) multiply the rate; their coefficients were estimated "
        "together with the curve, by maximising the same bound, with standard errors from a "
        "sandwich estimator over subjects."
    )


def _bands(model: Any) -> str:
    if hasattr(model, "posterior_"):
        return (
            "Bands are pointwise credible intervals with equal tails; that of the rate begins at "
            "zero where the rate may be zero."
        )
    if hasattr(model, "bootstrap_"):
        n = len(next(iter(model.bootstrap_.values())))
        return f"Bands are pointwise percentiles of {n} bootstrap samples of the subjects."
    if hasattr(model, "rate_interval"):
        return "Intervals of the rate are exact Poisson or profile-likelihood intervals."
    return ""
