"""Fits to more rows than fit: sums stand for them, or expansions of their likelihood."""
