"""
Estimate a rate
===============

Patients of the placebo arm of a trial were seen at irregular visits; at each, the bladder tumours
that had grown since the last were counted. How fast do new ones appear, and does that change?
"""

import gp4c
from gp4c.reporting.figures.panel_picture import plot_panel
from gp4c.reporting.figures.plots import plot_cumulative, plot_intensity

panel = gp4c.load_dataset("bladder").where(treatment="placebo")
plot_panel(panel, order="events")

# %%
# One row per patient, one rectangle per interval between visits. A few patients have most of the
# tumours: a model that gave everybody the same rate would be far too sure of itself. GP4C looks
# whether the data ask for subject effects, and says so.
model = gp4c.GP4C().fit(panel)
print(model.summary())

# %%
# The rate over time with its 95% band. Ticks are visits, darker where many patients were seen.
plot_intensity(model, panel=panel)

# %%
# The mean number of tumours since enrolment is what the data determine best.
plot_cumulative(model, panel=panel)

# %%
# Numbers come from the same model: rates, bands, expected counts of any interval.
low, high = model.cumulative_band(24.0)
print(f"{model.cumulative(24.0):.2f} tumours by month 24 (95% band {low:.2f} to {high:.2f})")
print(f"{model.expected_counts(24.0, 36.0):.2f} in the third year")
