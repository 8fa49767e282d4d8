"""
Are there subgroups?
====================

Do the patients of the gallstone trial fall into groups with courses of their own, or do they differ
gradually? One call looks for latent classes, and says if the data do not ask for them.
"""

import gp4c
from gp4c.reporting.page.classes.class_plots import plot_class_panel, plot_classes, plot_membership

panel = gp4c.load_dataset("nausea")
model = gp4c.GP4CClasses(n_classes=2, n_refits=1, random_state=0).fit(panel)
print(model.choice_.answer())
print(model.choice_.held_out_words(2))

# %%
# The answer is "not clearly": one class whose patients differ by a frailty does nearly as well. Two
# classes are fitted all the same, because we asked for them. Their curves, with 95% bands:
plot_classes(model, what="cumulative")

# %%
# How sure are we of each patient's class? Bars of one colour are sure, mixed ones are not.
plot_membership(model)

# %%
# The data, sorted by class.
plot_class_panel(model, panel)
