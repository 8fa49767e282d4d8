"""The paper's own numbers: the only ones on the page that are typed by hand.

From the LaTeX source of Ding, Lee, Sato and Sugiyama (UAI 2018).
"""

from __future__ import annotations

from typing import NamedTuple


class SyntheticRow(NamedTuple):
    """One row of Table 1: mean L_test, median MISE ± its standard deviation, seconds."""

    l_test: float
    mise: float
    mise_sd: float
    seconds: float


class RealRow(NamedTuple):
    """One row of Tables 3 and 4: seconds and mean L_test."""

    seconds: float
    l_test: float


class SetRow(NamedTuple):
    """One row of Table 2: end of the window, subjects, different end points and intervals."""

    window_end: float
    subjects: int
    end_points: int
    intervals: int


#: Table 1, set -> method -> row
TABLE1 = {
    "A": {
        "GP3": SyntheticRow(37099.66, 29.23, 1.27, 12.70),
        "LocalEM": SyntheticRow(37088.12, 46.06, 3.25, 21.03),
        "b=0": SyntheticRow(37091.24, 41.72, 3.38, 20.20),
        "b=0.3": SyntheticRow(37091.67, 41.18, 3.61, 22.89),
        "b=1": SyntheticRow(35635.63, 42.71, 6.34, 27.89),
    },
    "B": {
        "GP3": SyntheticRow(4473.25, 0.52, 0.18, 7.70),
        "LocalEM": SyntheticRow(4454.53, 4.70, 1.43, 21.94),
        "b=0": SyntheticRow(4465.90, 1.59, 0.53, 19.51),
        "b=0.3": SyntheticRow(4466.17, 1.63, 0.52, 18.70),
        "b=1": SyntheticRow(4184.74, 2.17, 0.83, 32.23),
    },
    "C": {
        "GP3": SyntheticRow(6213.15, 1.06, 0.37, 8.52),
        "LocalEM": SyntheticRow(6175.75, 17.67, 3.40, 22.10),
        "b=0": SyntheticRow(6204.30, 2.38, 0.76, 16.77),
        "b=0.3": SyntheticRow(6205.17, 2.34, 0.79, 16.70),
        "b=1": SyntheticRow(5954.84, 2.49, 1.02, 27.89),
    },
}

#: Table 2; the paper gives one row for each arm of the skin data
TABLE2 = {
    "Nausea A": SetRow(55, 65, 45, 109),
    "Nausea B": SetRow(55, 48, 38, 84),
    "Bladder A": SetRow(53, 38, 52, 176),
    "Bladder B": SetRow(53, 47, 52, 201),
    "Skin A": SetRow(61.57, 143, 751, 816),
    "Skin C": SetRow(62.63, 147, 808, 887),
}

#: Tables 3 (LocalEM, GP4C) and 4 (all), set -> method -> row
TABLE4 = {
    "Nausea A": {"LocalEM": RealRow(0.98, -156.99), "GP4C": RealRow(11.42, -155.97),
                 "GP4CW": RealRow(11.95, 65.23)},
    "Nausea B": {"LocalEM": RealRow(0.71, -183.61), "GP4C": RealRow(10.10, -104.94),
                 "GP4CW": RealRow(19.22, 49.81)},
    "Bladder A": {"LocalEM": RealRow(1.15, -122.11), "GP4C": RealRow(29.63, -107.82),
                  "GP4CW": RealRow(38.74, -40.80)},
    "Bladder B": {"LocalEM": RealRow(1.12, -147.61), "GP4C": RealRow(20.32, -146.23),
                  "GP4CW": RealRow(38.89, -74.87)},
    "Skin A": {"LocalEM": RealRow(62.88, -161.86), "GP4C": RealRow(34.96, -161.48),
               "GP4CW": RealRow(31.91, -111.90)},
    "Skin B": {"LocalEM": RealRow(62.67, -121.12), "GP4C": RealRow(34.57, -117.48),
               "GP4CW": RealRow(29.66, -62.65)},
    "Skin C": {"LocalEM": RealRow(74.07, -228.48), "GP4C": RealRow(19.69, -227.22),
               "GP4CW": RealRow(18.86, -150.54)},
    "Skin D": {"LocalEM": RealRow(72.77, -128.47), "GP4C": RealRow(34.64, -128.24),
               "GP4CW": RealRow(39.12, -78.39)},
}  # fmt: skip

#: Section 4.3: the b with the smallest variance of h(φ, b)
BEST_B = 0.3061
TRIALS = 40
#: CPU seconds of the published program on Synthetic A, re-run under GNU Octave on one core (the
#: project's own measurement, not the paper's)
PUBLISHED_SECONDS = {"GP3": 7.5, "LocalEM": 8.6, "b=0": 18.6, "b=0.3": 19.1, "b=1": 23.1}
