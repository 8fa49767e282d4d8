"""Classical estimators, each beside its numerics."""
