"""Ratios and differences of groups: of their curves, at equal covariates, beside centres."""
