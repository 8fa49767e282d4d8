"""Factors of a fitted rate that change within intervals: how they are chosen, and asked for."""
