"""What was found, in plain words."""
