r"""A season: a periodic factor of the rate on the calendar.

The logarithm of the factor at phase p of the cycle, from 0 to 1, is

.. math::
    s(p) = \sum_{k=1}^{4} \sigma_k \{a_k \cos 2\pi k p + b_k \sin 2\pi k p\}, \qquad
    \sigma_k = \tfrac12 k^{-3/2},

with standard normal a and b. Its mean over a cycle is 0, so that it cannot be mistaken for the
level of the curve. The deviations fall as those of a function with a continuous slope do. The prior
of the largest over the smallest factor has median 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gp4c.model.modulation.modulator import Modulator

Floats = NDArray[np.float64]

#: harmonics, prior deviation of the first, and how deviations fall
HARMONICS, FIRST, FALL = 4, 0.5, 1.5
#: panels per cycle: polynomials of degree 5 carry the fourth harmonic to 0.4%, the first to 1e-6
_PANELS = 6
#: names of the parts of cycles; a month is a twelfth of a year
_NAMES = {
    "year": ("January", "February", "March", "April", "May", "June", "July", "August",
             "September", "October", "November", "December"),
    "week": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}  # fmt: skip
#: phases that subjects with a calendar of their own may begin at: a subject's phase is off by at
#: most 1/192 of a cycle (two days of a year), which lowers harmonic k by a share of 0.0002 k²
PHASES = 96


@dataclass(frozen=True)
class Season(Modulator):
    """A periodic factor.

    Attributes
    ----------
    window : (t0, t1)
    period : float
        In the user's unit of time.
    phase : float
        Of the cycle at time 0, from 0 to 1; a negative one where each subject has a calendar of
        its own and brings the phase of its time 0.
    cycle : str
        "year", "week", or empty for a period without a name.
    dated : bool
        Whether the clock is the calendar.
    """

    window: tuple[float, float]
    period: float
    phase: float
    cycle: str
    dated: bool = False

    name = "season"

    @property
    def size(self) -> int:
        """A cosine and a sine for each harmonic."""
        return 2 * HARMONICS

    @property
    def method(self) -> str:
        """The period and the form of the season."""
        period = f"one {self.cycle}" if self.cycle else f"{self.period:g} units of time"
        return (
            f"A season with a period of {period} multiplies the rate: its logarithm is a sum of "
            f"{HARMONICS} harmonics, whose coefficients are shrunk towards no season."
        )

    @property
    def new_words(self) -> str:
        """Which season a new subject has."""
        if self.is_own:
            return "New subjects have the average season, a factor of 1, whenever they enter."
        return "The season is that of the calendar in the window."

    @property
    def is_own(self) -> bool:
        """Whether subjects bring their phases."""
        return self.phase < 0

    @property
    def neutral(self) -> Floats:
        """Without a calendar there is no season."""
        return np.full(int(self.is_own), -1.0)

    def features(self, x: Floats, inputs: Floats, goes_on: bool) -> Floats:
        """σ cos and σ sin of the harmonics at times in windows; seasons always go on."""
        begin = inputs[0] if self.is_own else self.phase
        if begin < 0:
            return np.zeros((len(x), self.size))
        low, high = self.window
        return self.at_phase(begin + (low + (high - low) * x) / self.period)

    def at_phase(self, phase: Floats) -> Floats:
        """The same at phases of the cycle, (Q, size)."""
        k = np.arange(1.0, HARMONICS + 1)
        angle = 2 * np.pi * np.outer(phase, k)
        both = np.stack([np.cos(angle), np.sin(angle)], axis=2) * (FIRST * k**-FALL)[:, None]
        return both.reshape(len(phase), self.size)

    def over(self, window: tuple[float, float]) -> Self:
        """The same season over another window."""
        return replace(self, window=window)

    def edges(self, low: float, high: float) -> Floats:
        """So many panels per cycle."""
        cycles = (high - low) * (self.window[1] - self.window[0]) / self.period
        number = int(np.ceil(_PANELS * cycles))
        return np.linspace(low, high, number + 1)


def parts_of(cycle: str) -> list[str]:
    """Names of the parts of a cycle, evenly long; numbers where it has no names."""
    return list(_NAMES.get(cycle, [f"{k}/12" for k in range(1, 13)]))


def rounded(phase: Floats) -> Floats:
    """Phases of subjects' own calendars, on the grid that keeps their number small."""
    return np.asarray(np.rint(phase % 1.0 * PHASES) % PHASES / PHASES)
