"""Arrays that depend on visit times and kernels only: quadrature, kernels, distinct intervals."""
