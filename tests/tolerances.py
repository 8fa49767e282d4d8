"""The tolerances of the tests, by name, each with the reason for its size.

A tolerance here is a claim about the code; loosening one is a change to be reviewed like code.
They are keyword arguments for ``numpy.testing.assert_allclose``.
"""

from __future__ import annotations

#: closed forms and spectral quadrature against adaptive quadrature: what the issue asks for
CLOSED_FORM = {"rtol": 1e-10, "atol": 1e-12}
#: two ways of adding the same numbers; a few hundred terms at most
ROUNDING = {"rtol": 1e-11, "atol": 1e-13}
#: no arithmetic is allowed to differ at all
BIT_FOR_BIT = {"rtol": 0.0, "atol": 0.0}
#: central differences with step h ≈ 1e-5: truncation h² ≈ 1e-10, rounding ε/h ≈ 1e-11 of a value
#: of order 1e2; a hundredfold margin on both
FINITE_DIFFERENCE = {"rtol": 1e-6, "atol": 1e-7}
#: the same of an optimum that is itself only found to 1e-11 nat: error 1e-11 / h with h = 1e-4
RE_OPTIMISED = {"rtol": 1e-5, "atol": 1e-5}
#: numerical inversion of a distribution function against SciPy's own inversion
QUANTILE = {"rtol": 1e-9, "atol": 1e-12}
#: a maximum found twice by different optimisers: the objective is flat to second order there, so
#: it agrees far better than its argument does
SAME_MAXIMUM = {"rtol": 0.0, "atol": 1e-6}
#: the argument of that maximum, √(gap in nats) in posterior standard deviations
SAME_MAXIMISER = {"rtol": 0.0, "atol": 2e-3}
#: a fit repeated on data that differ by rounding alone: the optimiser stops at a predicted gain
#: of 1e-6 nat and amplifies rounding by its condition number, about 1e4
SAME_FIT = {"rtol": 1e-9, "atol": 1e-10}
#: weighted draws of data that differ by rounding alone: the random numbers are the same, and draws
#: are kept in 32 bits, so that one which falls between two such numbers moves by 6e-8 of itself
SAME_DRAWS = {"rtol": 1e-6, "atol": 1e-8}
#: largest step down allowed to a sequence that never decreases: rounding of a sum of size 1e3
NEVER_DOWN = 1e-9
#: Monte-Carlo comparisons pass within this many standard errors; with fixed seeds they do so
#: always, and a bias of the size of one more standard error would show
STANDARD_ERRORS = 4.0
