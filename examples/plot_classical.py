"""
Classical estimators beside GP4C
================================

All estimators of gp4c on the placebo arm of the bladder tumour trial: the mean number of new
tumours over time, and the rate where there is one.
"""

import gp4c
from gp4c.reporting.figures.plots import plot_estimators

panel = gp4c.load_dataset("bladder").where(treatment="placebo")

# %%
# The step functions are maximum likelihood and pseudo-likelihood estimates without any smoothing.
# They have no posterior; their bands come from a bootstrap of the patients.
steps = {
    "NPMLE": gp4c.NPMLE().fit(panel).bootstrap(100, random_state=0),
    "NPMPLE": gp4c.NPMPLE().fit(panel),
    "NPMPLGF": gp4c.NPMPLGF().fit(panel),
}
plot_estimators(steps)

# %%
# GP4C beside the NPMLE: the same course, smooth, with a posterior band.
smooth = gp4c.GP4C(count_term="pointwise").fit(panel)
plot_estimators({"GP4C": smooth, "NPMLE": steps["NPMLE"]})

# %%
# Rates: GP4C, the kernel smoother LocalEM with a bandwidth of five months (its default chooses
# one by cross-validation), and a constant.
rates = {
    "GP4C": smooth,
    "LocalEM": gp4c.LocalEM(bandwidth=5.0).fit(panel),
    "constant, gamma frailty": gp4c.HomogeneousPoisson(effect="gamma").fit(panel),
}
plot_estimators(rates, what="intensity")
