"""Columns of times: numbers, dates in any form, durations."""
