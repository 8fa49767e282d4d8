"""Latent classes as an estimator: fitting, the number of classes, forecasts."""
