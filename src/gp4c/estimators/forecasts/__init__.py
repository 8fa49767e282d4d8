"""Counts to come: what is asked, what is said."""
