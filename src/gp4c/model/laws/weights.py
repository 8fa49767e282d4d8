"""Free weights of subjects, the paper's GP4CW (Appendix F): parameters, not draws from a law."""

from __future__ import annotations

from gp4c.model.laws.effects import NoEffect


class FreeWeights(NoEffect):
    """υ of each subject is a parameter with mean 1 over subjects; given it, nothing is integrated.

    To everything that integrates over effects, subjects are therefore equal: the weights stand in
    the exposures.
    """

    name = "weight"
    title = "free weights"
    method = "Each subject had a weight of its own, estimated from its counts."
    noun = "with free weights"
    is_free = True
    caution = (
        "weights are fitted to the subjects' own counts: scores of other subjects are no "
        "predictions"
    )


class BasisWeights(FreeWeights):
    """Free weights of each subject on several bases; it has no name to be asked for by itself."""

    title = "free weights on each basis; together"
    method = "Each subject had a weight of its own on each basis, estimated from its counts."
    caution = (
        "weights are fitted to the subjects' own counts, and more bases always fit these better: "
        "cross_validate says how many predict best"
    )
