"""One elliptical slice update of a target with an edge, where most proposals are refused."""

import numpy as np
from scipy.stats import kstest, truncnorm

from gp4c.inference.sampler.elliptical import Ellipse, Population, population_slice

EDGE = 1.0


class AboveTheEdge:
    """A standard normal variable that is known to exceed the edge."""

    size = 1

    def evaluate(self, x):
        inside = np.where(x[0] > EDGE, 0.0, -np.inf)
        return np.array([inside, np.zeros(x.shape[1])])


def test_a_truncated_normal_stays_what_it_is_and_moves(rng):
    n, target, law = 40_000, AboveTheEdge(), truncnorm(EDGE, np.inf)
    x = law.rvs(n, random_state=rng)[None]
    before = Population(x, target.evaluate(x))
    after = population_slice(target, before, 1.0, rng)
    assert after.updates == n
    assert after.evaluations > 1.5 * n  # many were refused at first
    assert np.all(after.x > EDGE)
    assert np.mean(after.x != x) > 0.999
    assert kstest(after.x[0], law.cdf).pvalue > 1e-3
    # and not a trace of where it was below or above: halves of the start end alike, in part
    assert abs(np.corrcoef(x[0], after.x[0])[0, 1]) < 0.6
    # detailed balance: (before, after) and (after, before) have one law
    low, high = law.ppf([1 / 3, 2 / 3])
    up = np.sum((x[0] < low) & (after.x[0] > high))
    down = np.sum((x[0] > high) & (after.x[0] < low))
    assert abs(up - down) < 4 * np.sqrt(up + down)


def test_an_ellipse_goes_through_both_points_around_its_centre(rng):
    x, other = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    for centre in (rng.normal(size=(3, 5)), rng.normal(size=(3, 1))):
        ellipse, who = Ellipse(centre, other), np.array([4, 1])
        np.testing.assert_allclose(ellipse.at(x, np.zeros(2), who), x[:, who])
        np.testing.assert_allclose(ellipse.at(x, np.full(2, np.pi / 2), who), other[:, who])
        opposite = ellipse.at(x, np.full(2, np.pi), who)
        middle = np.broadcast_to(centre, (3, 5))[:, who]
        np.testing.assert_allclose((opposite + x[:, who]) / 2, middle)
