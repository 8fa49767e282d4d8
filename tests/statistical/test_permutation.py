"""Size of the permutation test between groups, on few simulations; the full study is a benchmark.

``benchmarks/permutation_size.py`` has 2,000 trials per scenario. Here p-values of 120 null
trials with strong frailty and drop-out must look uniform.
"""

import numpy as np
import pytest
from scipy import stats

import gp4c
from gp4c.analysis.permutation import permutation_test, subject_scores


@pytest.mark.parametrize("kind", ["level", "curve"])
def test_p_values_are_uniform_without_a_difference(kind):
    p_values = []
    for seed in range(120):
        panel, _ = gp4c.simulate_panel(
            0.1,
            n_subjects=24,
            n_intervals=5,
            frailty=("gamma", 0.7),
            dropout=0.02,
            random_state=seed,
        )
        scores = subject_scores(
            panel.start, panel.stop, panel.count.astype(float), panel.exposure,
            panel.subject_index, panel.n_subjects,
        )  # fmt: skip
        rng = np.random.default_rng(seed)
        groups = (np.arange(24) < 9).astype(np.intp)
        p_values.append(
            permutation_test(scores, groups, kind=kind, n_permutations=199, rng=rng).p_value
        )
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert np.mean(np.array(p_values) <= 0.05) < 0.12
