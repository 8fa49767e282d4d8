"""Calibration study: how often the bands of λ and Λ cover the truth, against what they say."""
