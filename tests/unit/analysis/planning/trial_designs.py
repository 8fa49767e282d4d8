"""Designs of trials for the tests of planning."""

from gp4c.analysis.planning.trial_design import TrialDesign, constant_rate


def design(**changes):
    """A plain trial: rate 0.2, 24 months, 8 visits, frailty of variance 1."""
    rate, follow_up = changes.pop("rate", 0.2), changes.pop("follow_up", 24.0)
    times, cumulative = constant_rate(rate, follow_up)
    plain = {
        "visits": 8, "frailty_variance": 1.0, "dispersion": 1.0, "drop_out": 0.0,
        "allocation": 1.0, "strata": (1.0,), "jitter": 0.0, "test": "level",
        "n_permutations": 99,
    }  # fmt: skip
    return TrialDesign(times, cumulative, **(plain | changes))
