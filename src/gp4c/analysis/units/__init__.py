"""Questions about units in service: is there a trend, and which fail most often."""
