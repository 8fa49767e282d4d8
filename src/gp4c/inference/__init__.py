"""How the posterior is found: the variational family and the sampler."""
