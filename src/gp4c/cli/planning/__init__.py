"""Commands for before there are data: simulated panels, the power of trials."""
