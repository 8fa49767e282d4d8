"""From rows of a table to the arrays of a panel: intervals, visits, histories of subjects."""
