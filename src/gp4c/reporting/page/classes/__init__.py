"""Latent classes in words and pictures."""
