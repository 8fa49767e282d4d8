"""One BLAS thread during a fit, whatever the setting around it."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gp4c.threads import one_blas_thread


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("around", [1, 2])
def test_blas_has_one_thread_inside_and_its_own_number_afterwards(around):
    with threadpool_limits(around, user_api="blas"):
        before = blas_threads()
        assert before  # NumPy and SciPy bring at least one
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
