"""Estimators: they assemble data, design and inference."""
