"""
Two kinds of cancer in one analysis
===================================

The patients of the skin cancer trial have basal and squamous cancers. One fit has a curve for each
type, and says whether who has more of the one has more of the other.
"""

import matplotlib.pyplot as plt

import gp4c
from gp4c.reporting.figures.plots import plot_groups

panel = gp4c.load_dataset("skin")
model = gp4c.GP4C().fit(panel)
print(model.effect_correlation_)

# %%
# The curves of the types, with their bands:
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, what in zip(axes, ("intensity", "cumulative"), strict=True):
    plot_groups(model.type_models_, ax, what=what)

# %%
# Does the treatment change either? The first test is of all types together; each type has its own,
# adjusted for their number.
found = gp4c.compare(panel, by="treatment", n_permutations=999, bayes_factor=False)
print("\n".join(found.conclusions()))
