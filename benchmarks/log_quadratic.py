"""E ln Q of Gaussian quadratic forms: time per call, kept tolerance, agreement with 10⁷ draws.

``python benchmarks/log_quadratic.py`` writes ``benchmarks/results/log_quadratic.json``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
from numpy.typing import NDArray
from provenance import stamp

from gp4c.inference.variational.expected_logs.log_quadratic import expected_log_quadratic

Floats = NDArray[np.float64]

#: what the result stands on
STANDS_ON = ("inference/variational/expected_logs",)
RESULTS = Path(__file__).parent / "results" / "log_quadratic.json"
SIZES = ((500, 4, 0.5), (500, 8, 2.0), (500, 16, 6.0), (200, 25, 12.0))  # J, n, length-scales
PHI = {"diffuse": 1.0, "mixed": 40.0, "concentrated": 300.0}  # mean² / variance of f
LENGTHS = (1e-3, 0.1, 1.0, 5.0, 20.0)
MEANS = (0.0, 1e-6, 1.0, 30.0, 1e6)
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
N_DRAWS = 10_000_000
#: standard errors allowed to the worst of the 25 sampled cases
Z_LIMIT = 4.5
#: a call on concentrated intervals against one batched eigendecomposition of the same matrices
EIGH_LIMIT = 1.0


def intervals(lengths: Floats, phi: float, n: int) -> tuple[Floats, Floats]:
    """Weighted means and covariances of a Gaussian process on intervals, in length-scales."""
    node, weight = np.polynomial.legendre.leggauss(n)
    x = lengths[:, None] * (1 + node) / 2
    root = np.sqrt(lengths[:, None] * weight / 2)
    mean = np.sqrt(phi) * (1 + 0.4 * np.sin(x))
    covariance = np.exp(-((x[:, :, None] - x[:, None, :]) ** 2) / 2)
    return root * mean, root[:, :, None] * covariance * root[:, None, :]


def best_ms(function: Callable[[], object], repeats: int = 40) -> float:
    """Shortest processor time of a few calls, in milliseconds."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return 1e3 * min(times)


def timings() -> list[dict[str, float | str]]:
    rng = np.random.default_rng(0)
    rows: list[dict[str, float | str]] = []
    for n_cases, n, length in SIZES:
        lengths = length * rng.uniform(0.5, 1.5, n_cases)
        for kind, phi in PHI.items():
            d, A = intervals(lengths, phi, n)
            call = best_ms(lambda d=d, A=A: expected_log_quadratic(d, A))
            eigh = best_ms(lambda A=A: np.linalg.eigh(A))
            rows.append({"J": n_cases, "n": n, "kind": kind, "ms": call, "eigh_ms": eigh})
            print(f"J={n_cases} n={n:2d} {kind:12s} {call:6.2f} ms  (batched eigh {eigh:5.2f} ms)")
    return rows


def spectra(n_cases: int, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Eigenvalues and squared means that sum to one: random, graded, gapped and of low rank."""
    i = np.arange(n)
    lam = np.empty((n_cases, n))
    for j in range(n_cases):
        u = rng.random()
        lam[j] = (
            10 ** (-4 * u * i),
            10 ** rng.uniform(-16, 0, n),
            1.0 * (i < 1 + int(3 * u)),
            np.where(i == 0, 1.0, 10 ** (-16 * u)),
            10 ** (-3 * u * i**1.5),
            rng.random(n),
        )[rng.integers(6)]
    lam /= lam.sum(axis=1, keepdims=True)
    share = rng.dirichlet(np.full(n, 0.3), n_cases)
    phi = 10 ** np.where(
        rng.random(n_cases) < 0.5, rng.uniform(-7, 7, n_cases), rng.uniform(-1, 2.5, n_cases)
    )
    return lam / (1 + phi)[:, None], share * (phi / (1 + phi))[:, None]


def dense_trapezoid(lam: Floats, c2: Floats) -> Floats:
    """Frullani's integral by 1700 equal steps in ln t."""
    t = np.exp(np.arange(-40.0, 130.0, 0.1))
    total = np.empty(len(lam))
    for j, (values, squares) in enumerate(zip(lam, c2, strict=True)):
        denominator = 1 + 2 * t[:, None] * values
        exponent = t * (squares / denominator).sum(1) + 0.5 * np.log(denominator).sum(1)
        total[j] = 0.1 * (np.exp(-t) - np.exp(-exponent)).sum()
    return total


def tolerance_study(n_cases: int = 2000) -> dict[str, float]:
    """Worst error over adversarial spectra, in units of the tolerance asked for."""
    rng = np.random.default_rng(2018)
    worst = dict.fromkeys(map(str, TOLERANCES), 0.0)
    for n in (1, 2, 3, 5, 8, 16):
        lam, c2 = spectra(n_cases, n, rng)
        exact = dense_trapezoid(lam, c2)
        for tol in TOLERANCES:
            value, _, _ = expected_log_quadratic(np.sqrt(c2), lam[:, :, None] * np.eye(n), tol)
            worst[str(tol)] = max(worst[str(tol)], float(np.abs(value - exact).max()) / tol)
    for tol, ratio in worst.items():
        print(f"tolerance {tol:>6s}: worst error {ratio:.2f} tolerances of {6 * n_cases} spectra")
    return worst


def in_30_digits(d: Floats, A: Floats) -> float:
    """Frullani's integral by tanh-sinh quadrature, from eigenvalues in 30 digits."""
    with mpmath.workdps(30):
        values, vectors = mpmath.eigsy(mpmath.matrix(A.tolist()))
        c = vectors.T * mpmath.matrix(d.tolist())
        pairs = [(max(v, mpmath.mpf(0)), x * x) for v, x in zip(values, c, strict=True)]
        scale = mpmath.fsum(v + x2 for v, x2 in pairs)

        def integrand(y: mpmath.mpf) -> mpmath.mpf:
            t = mpmath.exp(y) / scale
            product = mpmath.fprod(1 + 2 * t * v for v, _ in pairs)
            exponent = mpmath.fsum(t * x2 / (1 + 2 * t * v) for v, x2 in pairs)
            return mpmath.exp(-t * scale) - mpmath.exp(-exponent) / mpmath.sqrt(product)

        breaks = [-40, -10, -3, 0, 3, 6, 10, 15, 21, 30, 50, 80]
        return float(mpmath.quad(integrand, breaks) + mpmath.log(scale))


def sampled(d: Floats, A: Floats, n_draws: int, rng: np.random.Generator) -> tuple[float, float]:
    """Mean of ln Q over draws and its standard error."""
    factor = np.linalg.cholesky(A + 1e-15 * np.trace(A) * np.eye(len(d)))
    total = squares = 0.0
    batch = 500_000
    for _ in range(n_draws // batch):
        y = rng.standard_normal((batch, len(d))) @ factor.T + d
        logs = np.log(np.einsum("ij,ij->i", y, y)) - np.log(np.trace(A) + d @ d)
        total += logs.sum()
        squares += logs @ logs
    mean = total / n_draws
    error = np.sqrt((squares / n_draws - mean**2) / n_draws)
    return mean + float(np.log(np.trace(A) + d @ d)), float(error)


def agreement(n_draws: int) -> list[dict[str, float]]:
    """Intervals of 1e-3 to 20 length-scales, mean² / variance from 0 to 1e6."""
    rows = []
    rng = np.random.default_rng(4)
    for length in LENGTHS:
        for phi in MEANS:
            d, A = intervals(np.array([length]), phi, 6)
            value = float(expected_log_quadratic(d, A)[0][0])
            digits = in_30_digits(d[0], A[0])
            mean, error = sampled(d[0], A[0], n_draws, rng)
            rows.append(
                {
                    "length": length,
                    "phi": phi,
                    "value": value,
                    "error_against_30_digits": value - digits,
                    "monte_carlo": mean,
                    "standard_error": error,
                    "z": (mean - value) / error,
                }
            )
            print(
                f"length {length:6g} phi {phi:6g}: {value:+.10f}, 30 digits {value - digits:+.0e}, "
                f"{n_draws:.0e} draws {mean:+.6f} ± {error:.0e} (z {rows[-1]['z']:+.1f})"
            )
    return rows


def main(n_draws: int = N_DRAWS) -> None:
    results = {
        "timings": timings(),
        "worst_error_in_tolerances": tolerance_study(),
        "draws": n_draws,
        "agreement": agreement(n_draws),
    } | stamp(STANDS_ON)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    worst_tolerance = max(results["worst_error_in_tolerances"].values())
    worst_digits = max(abs(row["error_against_30_digits"]) for row in results["agreement"])
    worst_z = max(abs(row["z"]) for row in results["agreement"])
    usual = next(r for r in results["timings"] if (r["n"], r["kind"]) == (8, "concentrated"))
    assert worst_tolerance < 1, f"an error of {worst_tolerance:.2f} tolerances"
    assert worst_digits < 1e-8, f"an error of {worst_digits:.1e} against 30 digits"
    assert worst_z < Z_LIMIT, f"{worst_z:.1f} standard errors from sampling"
    assert usual["ms"] < EIGH_LIMIT * usual["eigh_ms"], "slower than an eigendecomposition"


if __name__ == "__main__":
    main()
