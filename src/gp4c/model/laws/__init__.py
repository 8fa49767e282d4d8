"""Laws of counts, and laws of the effects of subjects: one class each, one file each."""

from gp4c.model.laws.bursts import Bursts
from gp4c.model.laws.count_law import LAWS, CountLaw, Parameter
from gp4c.model.laws.effects import EFFECTS, GammaEffect, NoEffect, SubjectEffect
from gp4c.model.laws.poisson import Poisson
from gp4c.model.laws.weights import FreeWeights

__all__ = [
    "EFFECTS", "LAWS", "Bursts", "CountLaw", "FreeWeights", "GammaEffect", "NoEffect", "Parameter",
    "Poisson", "SubjectEffect",
]  # fmt: skip
