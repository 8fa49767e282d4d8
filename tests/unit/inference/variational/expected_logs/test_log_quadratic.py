"""E ln Q of Gaussian quadratic forms: arbitrary precision, closed forms, sampling, differences."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import psi
from scipy.stats import poisson

from gp4c.inference.variational.expected_logs.log_quadratic import expected_log_quadratic
from gp4c.inference.variational.expected_logs.log_square import expected_log_square

TOL = 1e-8  # the default, and the promise
FINE = 1e-12


def rotated(lam, c, seed=0):
    """(d, A) of one case with eigenvalues lam and mean c in a random eigenbasis."""
    lam, c = np.asarray(lam, float), np.asarray(c, float)
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((lam.size, lam.size)))[0]
    A = (basis * lam) @ basis.T
    return (basis @ c)[None], (A + A.T)[None] / 2


def gp_interval(length, phi, n=8):
    """Weighted mean and covariance of a Gaussian process at n nodes of an interval.

    The length is in length-scales; phi is mean²/variance of the process.
    """
    x, w = np.polynomial.legendre.leggauss(n)
    x, w = length * (1 + x) / 2, length * w / 2
    mean = np.sqrt(phi) * (1 + 0.4 * np.sin(x))
    covariance = np.exp(-((x[:, None] - x) ** 2) / 2)
    root = np.sqrt(w)
    return (root * mean)[None], (root[:, None] * covariance * root)[None]


def in_30_digits(d, A):
    """Frullani's integral of the rounded input by tanh-sinh quadrature, its own eigenvalues."""
    with mpmath.workdps(30):
        values, vectors = mpmath.eigsy(mpmath.matrix(A.tolist()))
        c = vectors.T * mpmath.matrix(d.tolist())
        lam = [max(v, mpmath.mpf(0)) for v in values]
        scale = mpmath.fsum(lam) + mpmath.fsum(x * x for x in c)
        lam, c2 = [v / scale for v in lam], [x * x / scale for x in c]

        def integrand(y):
            t = mpmath.exp(y)
            product, exponent = mpmath.mpf(1), mpmath.mpf(0)
            for v, x2 in zip(lam, c2, strict=True):
                product *= 1 + 2 * t * v
                exponent += t * x2 / (1 + 2 * t * v)
            return mpmath.exp(-t) - mpmath.exp(-exponent) / mpmath.sqrt(product)

        breaks = [-40, -10, -3, 0, 3, 6, 10, 15, 21, 30, 50, 80]
        return float(mpmath.quad(integrand, breaks) + mpmath.log(scale))


def by_dense_trapezoid(lam, c2):
    """Same transform, another quadrature: 1700 equal steps in ln t; diagonal A only."""
    t = np.exp(np.arange(-40.0, 130.0, 0.1))
    denominator = 1 + 2 * t[:, None] * lam[:, None, :]
    exponent = (t[:, None] * c2[:, None, :] / denominator).sum(-1)
    M = np.exp(-exponent - 0.5 * np.log(denominator).sum(-1))
    first = (0.1 * t * M)[:, None, :] @ (1 / denominator)
    return 0.1 * (np.exp(-t) - M).sum(-1), first[:, 0, :]


def adversarial_spectra(n_cases, n, rng):
    """Eigenvalues and squared means with sum one: graded, gapped, tied, of low rank."""
    i = np.arange(n)
    kind = rng.integers(6, size=n_cases)[:, None]
    u = rng.random((n_cases, 1))
    lam = np.select(
        [kind == 0, kind == 1, kind == 2, kind == 3, kind == 4],
        [
            10 ** (-4 * u * i),
            10 ** rng.uniform(-16, 0, (n_cases, n)),
            1.0 * (i < 1 + np.floor(3 * u)),
            np.where(i == 0, 1.0, 10 ** (-16 * u)),
            10 ** (-3 * u * i**1.5),
        ],
        rng.random((n_cases, n)),
    )
    lam /= lam.sum(axis=1, keepdims=True)
    share = rng.dirichlet(np.full(n, 0.3), n_cases)
    share = np.where(rng.random((n_cases, 1)) < 0.3, lam, share)
    phi = 10 ** rng.uniform(-7, 7, (n_cases, 1))
    phi = np.where(rng.random((n_cases, 1)) < 0.5, 10 ** rng.uniform(-1, 2.5, (n_cases, 1)), phi)
    return lam / (1 + phi), share * phi / (1 + phi)


def diagonal(lam, c2):
    return np.sqrt(c2), lam[:, :, None] * np.eye(lam.shape[1])


# --- the value ---------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [0.0, 1e-6, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("length", [1e-3, 1.0, 20.0])
def test_intervals_agree_with_30_digits(length, phi):
    d, A = gp_interval(length, phi, n=6)
    expected = in_30_digits(d[0], A[0])
    assert_allclose(expected_log_quadratic(d, A)[0], expected, rtol=0, atol=TOL)
    assert_allclose(expected_log_quadratic(d, A, FINE)[0], expected, rtol=0, atol=20 * FINE)


@pytest.mark.parametrize(
    ("lam", "c"),
    [
        ([1.0], [0.0]),
        ([1.0, 1e-9, 0.0], [0.0, 0.0, 0.0]),
        ([1.0, 1e-6, 0.0], [0.0, 0.0, 1e-3]),  # a drop of the transform behind a slow decay
        ([1.0, 0.3, 1e-4, 1e-12], [2.0, 0.0, 1.0, 1e-5]),
        ([0.01, 0.01, 0.01, 0.01], [1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_degenerate_spectra_agree_with_30_digits(lam, c):
    d, A = np.array([c]), np.diag(lam)[None]
    assert_allclose(expected_log_quadratic(d, A)[0], in_30_digits(d[0], A[0]), rtol=0, atol=TOL)


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("n", [2, 8])
def test_the_tolerance_is_kept_on_adversarial_spectra(n, tol):
    rng = np.random.default_rng(n)
    lam, c2 = adversarial_spectra(400, n, rng)
    d, A = diagonal(lam, c2)
    expected, first = by_dense_trapezoid(lam, c2)
    value, grad_d, _ = expected_log_quadratic(d, A, tol)
    assert_allclose(value, expected, rtol=0, atol=max(tol, 1e-12))
    # grad_d = 2 c ∫ M ρ dt, compared on the scale √(λ + c²) of each component
    slack = np.abs(grad_d - 2 * d * first) * np.sqrt(lam + c2)
    assert slack.max() < 10 * tol


@pytest.mark.parametrize("phi", [36.0, 42.0, 48.0, 60.0])
def test_mass_near_zero_counts_at_the_finest_tolerance(phi):
    # Q = (√φ + ξ)² comes near 0 with a probability of about e^(-φ/2), far more than 1e-12
    d, A = np.array([[np.sqrt(phi)]]), np.ones((1, 1, 1))
    with mpmath.workdps(30):
        root = mpmath.sqrt(mpmath.mpf(phi))
        exact = mpmath.quad(
            lambda x: mpmath.log((root + x) ** 2) * mpmath.npdf(x),
            [-30, -root - 3, -root, -root + 3, 0, 5, 30],
        )
    assert_allclose(expected_log_quadratic(d, A, FINE)[0], float(exact), rtol=0, atol=3 * FINE)


@pytest.mark.parametrize("tol", [1e-6, 1e-8, 1e-12])
def test_a_drop_of_the_transform_is_seen_wherever_it_hides(tol):
    """t^(-1/2) from one variance, then exp(-t s) from a mean of square s in a still direction."""
    s = 10.0 ** -np.linspace(0.0, 20.0, 500)
    lam, c2 = np.column_stack([1 - s / 2, 0 * s]), np.column_stack([0 * s, s / 2])
    d, A = diagonal(lam, c2)
    expected, _ = by_dense_trapezoid(lam, c2)
    assert_allclose(expected_log_quadratic(d, A, tol)[0], expected, rtol=0, atol=tol)


@pytest.mark.parametrize("phi", 10.0 ** np.arange(-6, 7))
def test_rank_one_is_the_square_of_a_gaussian(phi):
    direction = np.array([3.0, -4.0, 12.0]) / 13.0
    d, A = np.sqrt(phi) * direction, np.outer(direction, direction)
    expected, d_mean, d_variance = expected_log_square(np.sqrt(phi), 1.0)
    value, grad_d, grad_A = expected_log_quadratic(d[None], A[None])
    # the rounding of A itself, ε = 1e-16, is felt as √ε times the density of y at zero
    assert_allclose(value, expected, rtol=0, atol=TOL + 1e-7 * np.exp(-phi / 2))
    assert_allclose(direction @ grad_d[0], d_mean, rtol=1e-7, atol=1e-6 * phi)
    assert_allclose(direction @ grad_A[0] @ direction, d_variance, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [1, 2, 5, 25])
@pytest.mark.parametrize("phi", [0.0, 0.5, 8.0, 90.0, 3000.0])
def test_a_multiple_of_the_identity_is_noncentral_chi_square(n, phi):
    """ln 2 + E ψ(n/2 + k), k ~ Poisson(φ/2), times the scale."""
    k = np.arange(int(phi / 2 + 12 * np.sqrt(phi / 2) + 40))
    expected = np.log(2 * 0.7) + poisson.pmf(k, phi / 2) @ psi(n / 2 + k)
    d = np.full((1, n), np.sqrt(0.7 * phi / n))
    value, _, _ = expected_log_quadratic(d, 0.7 * np.eye(n)[None])
    assert_allclose(value, expected, rtol=0, atol=TOL)


@pytest.mark.parametrize("ratio", [1.0, 0.1, 1e-3, 1e-6, 1e-12])
def test_two_eigenvalues_without_mean_have_a_closed_form(ratio):
    """In polar coordinates: ln 2 − C + 2 ln((√λ₁ + √λ₂)/2), gradient and all."""
    lam = np.array([2.0, 2.0 * ratio])
    root = np.sqrt(lam)
    value, _, grad_A = expected_log_quadratic(np.zeros((1, 2)), np.diag(lam)[None])
    expected = np.log(2) - np.euler_gamma + 2 * np.log(root.sum() / 2)
    assert_allclose(value, expected, rtol=0, atol=TOL)
    assert_allclose(lam * np.diag(grad_A[0]), root / root.sum(), rtol=0, atol=10 * TOL)


@pytest.mark.parametrize(("length", "phi"), [(0.3, 0.0), (2.0, 1.0), (5.0, 4.0), (2.0, 100.0)])
def test_agrees_with_sampling(length, phi):
    d, A = gp_interval(length, phi)
    factor = np.linalg.cholesky(A[0] + 1e-15 * np.eye(8))
    rng = np.random.default_rng(7)
    Q = np.concatenate(
        [((d + rng.standard_normal((250_000, 8)) @ factor.T) ** 2).sum(1) for _ in range(4)]
    )
    logs = np.log(Q)
    value, _, _ = expected_log_quadratic(d, A)
    assert abs(logs.mean() - value[0]) < 4 * logs.std() / np.sqrt(logs.size)


def test_no_covariance_leaves_the_logarithm():
    d = np.array([[3.0, 4.0]])
    value, grad_d, grad_A = expected_log_quadratic(d, np.zeros((1, 2, 2)))
    assert_allclose(value, np.log(25), atol=TOL)
    assert_allclose(grad_d, 2 * d / 25, rtol=1e-8)
    assert_allclose(grad_A[0], np.eye(2) / 25 - 2 * np.outer(d, d) / 625, atol=1e-9)


def test_nothing_at_all_is_minus_infinity_and_spoils_no_other_case():
    value, grad_d, grad_A = expected_log_quadratic([[0.0], [2.0]], [[[0.0]], [[0.0]]])
    assert value[0] == -np.inf
    assert np.isnan(grad_d[0]).all()
    assert np.isnan(grad_A[0]).all()
    assert_allclose(value[1], np.log(4), atol=TOL)


# --- the gradients -----------------------------------------------------------------------------


def difference(function, step):
    """Fourth-order central difference at zero."""
    one, two = function(step) - function(-step), function(2 * step) - function(-2 * step)
    return (8 * one - two) / (12 * step)


CASES = [gp_interval(length, phi, n=5) for length in (1.0, 6.0) for phi in (0.0, 2.0, 20.0, 400.0)]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_gradients_agree_with_differences_in_every_direction(case):
    d, A = CASES[case]
    rng = np.random.default_rng(case)
    _, grad_d, grad_A = expected_log_quadratic(d, A)
    root = np.linalg.cholesky(A[0] + 1e-14 * np.trace(A[0]) * np.eye(5))
    for _ in range(5):
        toward_d = root @ rng.standard_normal(5)
        half = rng.standard_normal((5, 5))
        toward_A = root @ (half + half.T) @ root.T / 4

        def along(s, u=toward_d, U=toward_A):
            return expected_log_quadratic(d + s * u, A + s * U, FINE)[0][0]

        slope = grad_d[0] @ toward_d + (grad_A[0] * toward_A).sum()
        assert_allclose(difference(along, 3e-3), slope, rtol=0, atol=1e-7)


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_the_gradient_is_that_of_the_returned_value_even_when_it_is_coarse(tol):
    """Far closer than the tolerance itself: what a line search needs."""
    d, A = gp_interval(2.0, 3.0, n=6)
    _, grad_d, grad_A = expected_log_quadratic(d, A, tol)

    def along(s):
        return expected_log_quadratic(d * (1 + s), A * (1 - 0.5 * s), tol)[0][0]

    slope = (grad_d * d).sum() - 0.5 * (grad_A * A).sum()
    assert_allclose(difference(along, 1e-3), slope, rtol=0, atol=1e-10)


def test_gradients_agree_with_sampling():
    """∂E/∂d = 2 E y/Q and, by the heat equation, ∂E/∂A = E(I/Q − 2 y yᵀ/Q²)."""
    rng = np.random.default_rng(11)
    factor, d = rng.standard_normal((9, 9)), rng.standard_normal(9)
    A = factor @ factor.T
    y = d + rng.standard_normal((400_000, 9)) @ factor.T
    Q = (y * y).sum(1)
    _, grad_d, grad_A = expected_log_quadratic(d[None], A[None])
    by_d = 2 * y / Q[:, None]
    assert np.all(np.abs(by_d.mean(0) - grad_d[0]) < 5 * by_d.std(0) / np.sqrt(len(y)))
    for i, k in [(0, 0), (0, 1), (3, 7), (8, 8)]:
        by_A = (i == k) / Q - 2 * y[:, i] * y[:, k] / Q**2
        assert abs(by_A.mean() - grad_A[0, i, k]) < 5 * by_A.std() / np.sqrt(len(y))


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 7),
    seed=st.integers(0, 10_000),
    spread=st.floats(0.0, 6.0),
    log_phi=st.floats(-6.0, 6.0),
    log_scale=st.floats(-80.0, 80.0),
)
def test_scale_rotation_and_jensen(n, seed, spread, log_phi, log_scale):
    rng = np.random.default_rng(seed)
    lam = 10 ** (-spread * rng.random(n))
    c = rng.standard_normal(n) * 10 ** (log_phi / 2)
    d, A = np.array([c]), np.diag(lam)[None]
    value, grad_d, grad_A = expected_log_quadratic(d, A)
    assert value[0] <= np.log(lam.sum() + c @ c) + TOL
    # multiplying Q by k adds ln k, so the derivatives along the scale are one
    k = 10**log_scale
    scaled = expected_log_quadratic(np.sqrt(k) * d, k * A)
    assert_allclose(scaled[0], value + np.log(k), rtol=1e-14, atol=1e-9)
    assert_allclose((grad_A * A).sum() + (grad_d * d).sum() / 2, 1.0, atol=1e-7)
    # any orthonormal basis gives the same, with gradients turned along
    turned_d, turned_A = rotated(lam, c, seed)
    turned = expected_log_quadratic(turned_d, turned_A)
    assert_allclose(turned[0], value, rtol=0, atol=1e-7)
    assert_allclose(turned[1] @ turned_d[0], grad_d @ c, rtol=1e-5, atol=1e-6)


def test_cases_do_not_depend_on_their_neighbours():
    """A batch may take both ways and many blocks; each case is what it is alone."""
    rng = np.random.default_rng(5)
    lam, c2 = adversarial_spectra(700, 4, rng)
    d, A = diagonal(lam, c2)
    together = expected_log_quadratic(d, A)
    for j in range(0, 700, 53):
        alone = expected_log_quadratic(d[j : j + 1], A[j : j + 1])
        for whole, part in zip(together, alone, strict=True):
            scale = 1 + np.abs(part).max()
            assert_allclose(whole[j] / scale, part[0] / scale, rtol=0, atol=TOL)


def test_the_change_from_diffuse_to_concentrated_is_invisible():
    """Across the switch between the two ways the value moves by far less than the tolerance."""
    phi = np.linspace(10.0, 80.0, 400)
    cases = [gp_interval(1.0, p) for p in phi]
    d, A = (np.concatenate(parts) for parts in zip(*cases, strict=True))
    coarse, fine = expected_log_quadratic(d, A)[0], expected_log_quadratic(d, A, FINE)[0]
    assert_allclose(coarse, fine, rtol=0, atol=TOL / 5)


def test_shapes_and_empty_input():
    value, grad_d, grad_A = expected_log_quadratic(np.empty((0, 3)), np.empty((0, 3, 3)))
    assert (value.shape, grad_d.shape, grad_A.shape) == ((0,), (0, 3), (0, 3, 3))
    _, _, grad_A = expected_log_quadratic(*gp_interval(3.0, 1.0))
    assert_allclose(grad_A, grad_A.transpose(0, 2, 1), atol=1e-12)
