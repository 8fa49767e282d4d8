"""Groups of subjects: their columns, relabellings, statistics, intervals and hypotheses."""
