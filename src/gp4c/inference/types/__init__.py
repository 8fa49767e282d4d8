"""Types of events weighed together."""
