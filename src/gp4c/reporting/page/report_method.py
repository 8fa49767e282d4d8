"""How a result was obtained, as a paragraph and a reference ready to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gp4c import __version__
from gp4c.analysis.words.comparison_words import adjusted_for, asked_by_test, errors_of_ratios
from gp4c.data.checks import check_choice
from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.types.typed_answers import TypedCurves
from gp4c.model.kernels import KERNELS
from gp4c.reporting.fit_rows import is_variational, posterior_sentence

if TYPE_CHECKING:
    from gp4c.analysis.comparison import Comparison

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


SOFTWARE = f"""@software{{gp4c,
  author  = {{{{The gp4c developers}}}},
  title   = {{gp4c: smooth event rates with honest uncertainty from panel count data}},
  version = {{{__version__}}}
}}"""


def method_paragraphs(models: Mapping[str, PanelEstimator], by: str | None) -> list[str]:
    """One paragraph, or one per group where the groups have different laws."""
    if len({(model.law_, model.effect_) for model in models.values()}) == 1:
        return [method_paragraph(next(iter(models.values())), by)]
    return [f"{by}: {name}. {method_paragraph(model, by)}" for name, model in models.items()]


def comparison_method(found: Comparison) -> str:
    """How groups were compared: test, interval, regression, curves and probabilities."""
    parts = [_tested(found), _inverted(found)]
    table = found.adjusted()
    if len(table):
        centres = " and a random effect for each centre" if found.centres is not None else ""
        parts.append(
            f"The ratio of rates adjusted for {adjusted_for(found)} is from a regression with one "
            f"shape of the curve{centres}; {errors_of_ratios(found, table['errors'].iloc[0])}."
        )
    if found.tested.adjustment is not None:
        parts.append(
            "Standardised curves average the curves of a group over the covariates of all subjects."
        )
    if found.hypotheses is not None:
        parts.append(
            "Posterior probabilities weigh one common curve, one shape at different levels and a "
            "curve for each group by their evidence, equally likely beforehand, with a normal "
            "prior of standard deviation ln 2 for a log ratio of rates."
        )
    return " ".join(parts)


def _tested(found: Comparison) -> str:
    """The permutation test."""
    tested, result = found.tested, found.tested.overall
    whom = "whole centres" if tested.permutes_centres else "subjects"
    how = f"{tested.n_permutations:,} random permutations of the labels of {whom}"
    if result.exact:
        how = f"all {result.n_labellings:,} ways to label the {whom}"
    cells = [
        f"{role} of {column.name}"
        for role, column in (
            ("strata", tested.strata), ("blocks", tested.blocks),
            ("centres", None if tested.permutes_centres else tested.cluster),
        )
        if column is not None
    ]  # fmt: skip
    within = f" within {' and '.join(cells)}" if cells else ""
    text = (
        f"A two-sided permutation test asked {asked_by_test(found)}. It compares studentised "
        "scores of subjects, events less those expected under "
        f"{'the pooled rate of each stratum' if tested.strata is not None else 'one pooled rate'}, "
        f"with their distribution under {how}{within}."
    )
    if tested.adjustment is not None:
        text += f" The part of {tested.adjustment.formula} was taken out of the scores."
    return text


def _inverted(found: Comparison) -> str:
    """The interval of the test."""
    which = "this test" if found.test in ("level", "trend") else "the test of the level"
    holm = " Holm's method adjusts p-values and intervals of pairs." if len(found.pairs) > 1 else ""
    return f"Intervals for ratios of rates hold what {which} does not reject.{holm}"


def short_methods(models: Mapping[str, PanelEstimator], by: str | None) -> list[str]:
    """The same in a sentence or two, for an abstract or a caption."""
    if len({(model.law_, model.effect_) for model in models.values()}) == 1:
        return [short_method(next(iter(models.values())), by)]
    return [f"{by}: {name}. {short_method(model, by)}" for name, model in models.items()]


def typed_method(joint: TypedCurves) -> tuple[list[str], list[str]]:
    """Paragraphs in full and in brief about a fit to several types of events."""
    types = ", ".join(joint.event_types_)
    dependence = (
        f"Types of events ({types}) had a rate each. The effects of a subject on different types, "
        "as normal scores, were taken to be correlated (a Gaussian copula with uniform priors of "
        "the correlations), and integrated out together with the curves."
    )
    models = dict(joint.type_models_)
    full = [
        text for name, model in models.items() for text in (f"{name}: {method_paragraph(model)}",)
    ]
    if len({(model.law_, model.effect_) for model in models.values()}) == 1:
        full = [method_paragraph(next(iter(models.values())))]
    brief = short_method(next(iter(models.values())))
    return [dependence, *full], [
        f"{brief} Types of events ({types}) were fitted jointly, with correlated subject effects."
    ]


def methods_text(model: PanelEstimator, length: str = "full") -> str:
    """What ``model.methods_text()`` returns."""
    check_choice("length", length, ("full", "short"))
    if isinstance(model, TypedCurves) and model.event_types_:
        return " ".join(typed_method(model)[0 if length == "full" else 1])
    return method_paragraph(model) if length == "full" else short_method(model)


def short_method(model: PanelEstimator, by: str | None = None) -> str:
    """Describe how a fitted model was obtained as briefly as a reader allows."""
    cited = " (Ding et al., 2018)" if isinstance(model, GaussianProcessModel) else ""
    facts = [model.title or type(model).__name__]
    if "yes" in model.burst_options:
        facts.append(f"{model.count_law_.noun or model.law_} {model.effect_law_.noun}".strip())
    if model.coefficients_ is not None:
        facts.append(f"covariates {model.get_params()['formula']}")
    if by is not None:
        facts.append(f"each level of {by} by itself")
    source = f"{type(model).__name__}{cited} in gp4c {__version__}"
    bands, _, _ = model.band_text().partition(". ")
    return f"Estimates are from {source}: {', '.join(facts)}." + (
        f" {bands.rstrip('.')}." if bands else ""
    )


def citation() -> str:
    """BibTeX entries to cite: the paper whose model this is, and this version of the software.

    Examples
    --------
    >>> import gp4c
    >>> print(gp4c.citation().splitlines()[0])
    @inproceedings{ding2018gp4c,
    """
    return f"{BIBTEX}\n\n{SOFTWARE}"


def method_paragraph(model: PanelEstimator, by: str | None = None) -> str:
    """Describe how a fitted model was obtained, for a methods section."""
    parts = [_model(model), *model.factor_methods(), model.effect_law_.method, _choice(model)]
    if isinstance(model, GaussianProcessModel):
        parts.append(posterior_sentence(model, counted=by is None))
    parts.append(_covariates(model))
    if by is not None:
        parts.append(f"Each level of {by} was fitted separately.")
    parts += [model.band_text(), f"Computations used gp4c {__version__}."]
    return " ".join(part for part in parts if part)


def _model(model: PanelEstimator) -> str:
    """The curve, and the law of counts where the estimator has a choice of it."""
    kernel = model.get_params().get("kernel")
    text = model.method_text.format(kernel=KERNELS[str(kernel)].title if kernel else "")
    return f"{text} {model.count_law_.method}" if "yes" in model.burst_options else text


def _choice(model: PanelEstimator) -> str:
    """Say what the evidence chose, where it was asked."""
    options = model.get_params()
    laws = {
        "bursts": "the distribution of counts",
        "effect": "the distribution of subject effects",
    }
    chosen = [words for name, words in laws.items() if options.get(name) == "auto"]
    if is_poisson_only(model):
        chosen = chosen[1:]
    verb = "was" if len(chosen) == 1 else "were"
    said = " and ".join(chosen)
    how = "chosen by the evidence (marginal likelihood)."
    return f"{said[:1].upper()}{said[1:]} {verb} {how}" if chosen else ""


def is_poisson_only(model: PanelEstimator) -> bool:
    """Whether bursts="auto" left no choice, as in the variational family."""
    return isinstance(model, GaussianProcessModel) and is_variational(model)


def _covariates(model: PanelEstimator) -> str:
    if model.coefficients_ is None:
        return ""
    return (
        f"Covariates ({model.get_params()['formula']}) multiply the rate; their coefficients were "
        "estimated together with the curve, with standard errors "
        f"({model.coefficients_.rows()[0].errors}) that are robust to overdispersion."
    )


def versions() -> Iterator[tuple[str, str]]:
    """Versions of what computed the page."""
    import platform
    from importlib.metadata import version

    yield "gp4c", __version__
    yield "Python", platform.python_version()
    for name in ("numpy", "scipy", "pandas", "plotly"):
        yield name, version(name)
