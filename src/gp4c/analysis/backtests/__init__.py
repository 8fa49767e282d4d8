"""How forecasts would have done."""
