"""Latent classes: each subject follows one of several curves; which one is not known."""
