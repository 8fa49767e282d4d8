"""What the benchmark `peers` is made of.

`panels` simulates panels and judges curves; `roster` lists the peers; `processes` runs the code of
one peer in a process of its own; `summary` makes the figures. ``code/`` has what a user would write
for each peer, and `drive.py` and `drive.R` call it.
"""
