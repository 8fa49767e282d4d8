"""
Check a fit
===========

Do the counts look like those of the model? Two pictures tell, one of intervals and one of
patients. Here they show what goes wrong when all patients are given the same rate; GP4C warns of
it.
"""

import matplotlib.pyplot as plt

import gp4c
from gp4c.analysis.diagnostics import dispersion
from gp4c.reporting.figures.count_checks import check_counts, plot_pit, plot_rootogram
from gp4c.reporting.figures.subject_plots import plot_subjects

panel = gp4c.load_dataset("bladder").where(treatment="placebo")
models = {
    "one rate for all": gp4c.GP4C(effect=None, count_term="pointwise").fit(panel),
    "gamma frailty": gp4c.GP4C(effect="gamma", count_term="pointwise").fit(panel),
}
figure, grid = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for (name, model), (left, right) in zip(models.items(), grid, strict=True):
    check = check_counts(model, panel)
    plot_rootogram(check, left).set_title(name, loc="left")
    plot_pit(check, right)

# %%
# Left: bars hang from the expected numbers of intervals and should end at zero. Right: bars
# should be level, within the dotted lines; the U shape of the first row says that patients differ
# more than the model allows. A number for the same:
for name, model in models.items():
    print(name, dispersion(model, panel), sep="\n", end="\n\n")

# %%
# Counted and expected tumours of the patients with most of them, with their own frailties.
plot_subjects(models["gamma frailty"], panel, most=6)
