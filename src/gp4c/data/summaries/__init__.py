"""What a panel holds: a summary of all of it, a table by groups of subjects."""
