"""
Are there subgroups?
====================

Do the patients of the gallstone trial fall into groups with courses of their own, or do they differ
gradually? One call looks for latent classes, and says if the data do not ask for them.
"""

import gp4c
from gp4c.reporting.page.classes.class_plots import plot_class_panel, plot_classes

panel = gp4c.load_dataset("nausea")
model = gp4c.GP4CClasses(max_classes=2, random_state=0).fit(panel)
print(model.choice_.answer())
print(model.choice_.held_out_words(2))
print(model.choice_.to_frame())

# %%
# The answer is "no", though barely: one class whose patients differ by a frailty does as well as
# two. So there is one curve, and no patient has to be put into a box:
plot_classes(model, what="cumulative")

# %%
# The data. With more classes, patients would be sorted by class.
plot_class_panel(model, panel)
