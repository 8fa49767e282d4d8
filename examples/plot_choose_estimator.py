"""
Choose an estimator
===================

Estimators are compared by the log-likelihood of patients that they have not seen, on the same
splits for all.
"""

import gp4c
from gp4c.reporting.figures.score_plots import plot_scores

panel = gp4c.load_dataset("bladder").where(treatment="placebo")
models = {
    "GP4C": gp4c.GP4C(count_term="pointwise"),
    "GP4C, one rate for all": gp4c.GP4C(count_term="pointwise", effect=None),
    "LocalEM": gp4c.LocalEM(bandwidth=5.0),
    "constant rate": gp4c.HomogeneousPoisson(),
    "constant + gamma frailty": gp4c.HomogeneousPoisson(effect="gamma"),
}
scores = gp4c.cross_validate(models, panel, n_splits=5)
print(gp4c.score_differences(scores).round(2).to_string(index=False))

# %%
# Dots are folds, diamonds means with two standard errors. On these data it matters most to allow
# for differences between patients; the shape of the curve comes second.
plot_scores(scores)
