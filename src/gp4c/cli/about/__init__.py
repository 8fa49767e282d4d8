"""Commands about gp4c itself: its data sets, its paper, what to cite."""
