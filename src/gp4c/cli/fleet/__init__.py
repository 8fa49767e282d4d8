"""Commands about what is to come: forecasts, bad actors, how forecasts would have done."""
