"""Pure functions of arrays: bounds, optimisers, posteriors, classical algorithms."""
