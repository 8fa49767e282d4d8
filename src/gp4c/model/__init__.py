"""What is assumed: kernels, priors, cells, laws of counts and of subject effects, likelihood."""
