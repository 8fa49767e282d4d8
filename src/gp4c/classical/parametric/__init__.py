"""Rates with a formula: constant, power law and log-linear."""
