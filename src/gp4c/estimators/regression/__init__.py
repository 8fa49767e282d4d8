"""Fits with covariates."""
