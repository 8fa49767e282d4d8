"""What a reader should know before relying on a fit."""

from __future__ import annotations

from collections.abc import Iterator

from gp4c.data.checks import plural
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.fit_warnings import burst_remedy
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.inference.variational.count_terms import count_term
from gp4c.reporting.page.classes.class_rows import class_remarks
from gp4c.reporting.words import span

#: frailty variance above which few subjects carry the mean
_HEAVY_FRAILTY = 2.0


def warnings_of(model: PanelEstimator) -> Iterator[str]:
    """What to beware of, the worst first."""
    if not model.converged_:
        yield _unconverged(model)
    if model.data_summary_.get("n_events") == 0:
        yield "there were no events: the curve is an upper limit set by a weak prior"
    yield from _check_warnings(model)
    yield from class_remarks(model)
    yield from _effect_warnings(model)
    yield from _approximation_warnings(model)
    if model.n_left_out_:
        rows, was = plural(model.n_left_out_, "row"), "was" if model.n_left_out_ == 1 else "were"
        yield f"{rows} after a late entry, a gap or a change of exposure {was} not used"
    if not model.band_text():
        remedy = "; call model.bootstrap(200)" if model.can_bootstrap else ""
        yield f"no bands yet: this estimator gives a curve alone{remedy}"


def _unconverged(model: PanelEstimator) -> str:
    if model.get_params().get("count_term", "") is None:
        return (
            "the bands rest on few independent curves and may be rough: compare with "
            "method='mcmc' before using them"
        )
    return "the fit did not converge: raise max_iter, or loosen tol, before using it"


def _check_warnings(model: PanelEstimator) -> Iterator[str]:
    found = model.fit_check_
    if found is None:
        return
    if found.varies_more:
        yield (
            f"counts vary {found.excess:.2g} times as much within subjects as the fitted "
            f"model allows: {burst_remedy(model)}"
        )
    if found.comes_at_other_times:
        yield (
            "events come at other times than the fitted curve says, above all from "
            + span(found.worst_start, found.worst_stop, TimeAxis.of(model))
        )


def _effect_warnings(model: PanelEstimator) -> Iterator[str]:
    law = model.effect_law_
    if law.caution:
        yield law.caution
    if law.varies:
        if 1.0 / model.frailty_shape_ > _HEAVY_FRAILTY:
            yield (
                "subjects differ a great deal, so the mean rests on few of them; the band allows "
                "for it, but look at a picture of the panel"
            )
    elif _assumes_one_rate(model):
        yield (
            "without subject effects the bands are too narrow if some subjects have many more "
            "events than others; effect='gamma' allows for it"
        )


def _assumes_one_rate(model: PanelEstimator) -> bool:
    """Whether the user, not the data, ruled out differences, and bands rest on that."""
    chosen = model.get_params().get("effect") != "auto" and model.effect_ is None
    return chosen and bool(model.band_text()) and not model.n_bootstraps_ and model.dispersion_ == 1


def _approximation_warnings(model: PanelEstimator) -> Iterator[str]:
    if not isinstance(model, GaussianProcessModel):
        return
    options = model.get_params()
    remark = count_term(model.count_term).remark
    if remark:
        yield remark.format(b=options["b"])
    if not model.has_evidence:
        remedy = "count_term=None" if model.count_term else "hyper='integrate'"
        if model.effect_law_.is_free:
            remedy = "GP4C()"
        yield f"the band leaves out the uncertainty of the length scale; {remedy} has it"
