"""What a fitted model answers, one interface in each module."""
