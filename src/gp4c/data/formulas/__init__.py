"""Formulas of covariates."""
