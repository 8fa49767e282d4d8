"""How many classes: what the evidence says, what held-out subjects say, and the answer in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.classes.class_fit import ClassFit

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

#: nats by which the evidence must be for one more class: odds of 20 to 1. Where there is one class,
#: the evidence is this high in at most one data set of 20, whatever else the model says
CLEARLY_FOR = 3.0
#: k̂ above which the leave-one-out likelihood of a subject is not reliable
_RELIABLE = 0.7
#: standard errors of a held-out difference that count as a difference
_CLEAR_ERRORS = 2.0


@dataclass(frozen=True)
class ClassChoice:
    """Evidence and held-out likelihood of every number of classes that was fitted.

    Attributes
    ----------
    n_classes : (R,)
    log_evidence : (R,)
        ln p(counts), of one class under the law that describes it best, of more classes averaged
        over the laws; Σ ln m! left out.
    held_out : (R,)
        Σ_k ln p(counts of subject k | the other subjects).
    held_out_error : (R,)
        Standard error, over subjects, of its difference from that of one class.
    unreliable : (R,)
        Subjects whose leave-one-out likelihood is not reliable.
    effective : (R,)
        Effective draws.
    """

    n_classes: Floats
    log_evidence: Floats
    held_out: Floats
    held_out_error: Floats
    unreliable: Floats
    effective: Floats

    @classmethod
    def of(cls, fits: Sequence[ClassFit]) -> ClassChoice:
        """Of fits to the same counts, that of one class first."""
        gains = [fit.held_out - fits[0].held_out for fit in fits]
        return cls(
            np.array([float(fit.n_classes) for fit in fits]),
            np.array([fit.support for fit in fits]),
            np.array([float(fit.held_out.sum()) for fit in fits]),
            np.array([float(np.sqrt(len(gain) * gain.var())) for gain in gains]),
            np.array([float((fit.held_out_k > _RELIABLE).sum()) for fit in fits]),
            np.array([fit.effective for fit in fits]),
        )

    @property
    def chosen(self) -> int:
        """The smallest number whose evidence is not clearly below the highest."""
        enough = self.log_evidence >= self.log_evidence.max() - CLEARLY_FOR
        return int(self.n_classes[int(np.argmax(enough))])

    def to_frame(self) -> pd.DataFrame:
        """One row per number of classes.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")[::8]
        >>> quick = dict(effect=None, bursts=False, n_inducing=8, n_refits=0)
        >>> model = gp4c.GP4CClasses(n_classes=2, **quick).fit(panel)
        >>> list(model.choice_.to_frame().columns[:3])
        ['n_classes', 'log_evidence', 'held_out']
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "n_classes": self.n_classes.astype(int),
                "log_evidence": self.log_evidence,
                "held_out": self.held_out,
                "held_out_gain": self.held_out - self.held_out[0],
                "held_out_error": self.held_out_error,
                "unreliable_subjects": self.unreliable.astype(int),
                "effective_draws": self.effective,
            }
        )

    def answer(self) -> str:
        """Whether there are subgroups, in a sentence."""
        if len(self.n_classes) == 1:
            return "only one class was fitted"
        chosen, most = self.chosen, int(self.n_classes[int(self.log_evidence.argmax())])
        gain = float(self.log_evidence.max() - self.log_evidence[0])
        if chosen > 1:
            more = f" ({most} fit as well)" if most > chosen else ""
            own = float(self.log_evidence[list(self.n_classes).index(chosen)])
            odds = odds_words(own - float(self.log_evidence[0]))
            return f"yes: {chosen} classes{more}; the evidence for them over one is {odds}"
        if most == 1:
            against = odds_words(float(self.log_evidence[0] - self.log_evidence[1]))
            return f"no: one class describes the subjects; the evidence against two is {against}"
        return (
            f"not clearly: the evidence for {most} classes over one is {odds_words(gain)}, and 20 "
            "to 1 is asked for"
        )

    def held_out_words(self, n_classes: int) -> str:
        """What subjects say that were left out, about a number of classes against one."""
        at = list(self.n_classes.astype(int)).index(n_classes)
        if at == 0 and len(self.n_classes) > 1:
            at = 1
        gain, error = float(self.held_out[at] - self.held_out[0]), float(self.held_out_error[at])
        number = int(self.n_classes[at])
        word = "no clear difference"
        if abs(gain) > _CLEAR_ERRORS * error:
            word = f"{number} classes predict better" if gain > 0 else "one class predicts better"
        text = (
            f"{number} classes score {gain:+.1f} ± {error:.1f} on subjects that are left out, "
            f"relative to one; {word}"
        )
        if self.unreliable[at]:
            text += f" (rough for {int(self.unreliable[at])} subjects)"
        return text


def odds_words(nats: float) -> str:
    """Odds in words: ``7 to 1``."""
    odds = float(np.exp(min(abs(nats), 50.0)))
    if odds > 1000:
        return "above 1000 to 1"
    return f"{odds:.0f} to 1" if odds >= 10 else f"{odds:.1f} to 1"
