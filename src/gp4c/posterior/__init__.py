"""What is known after a fit: draws of curves, bands, scores, forecasts."""
