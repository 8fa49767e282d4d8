"""The variational family: the paper's bound, its optimisers, covariates."""
