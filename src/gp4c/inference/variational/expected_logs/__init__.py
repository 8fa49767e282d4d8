"""Expected logarithms of squares and of quadratic forms in Gaussians."""
