"""The default engine: find the modes, then weigh draws around them exactly."""
