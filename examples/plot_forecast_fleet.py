"""
Forecast a fleet
================

Sixty pumps wear out, some faster than others; failures are found at irregular inspections. How
many will there be next quarter, in the fleet and per pump?
"""

import numpy as np

import gp4c
from gp4c.reporting.figures.subject_plots import plot_fan

fleet, _ = gp4c.simulate_panel(
    ([0, 24], [0.10, 0.22]), window=(0, 24), n_subjects=60, n_intervals=6, frailty=0.5,
    time_unit="months", random_state=7,
)  # fmt: skip
model = gp4c.GP4C().fit(fleet)
print(model.forecast(24, 27, subjects="all"))

# %%
# The fan: failures of the whole fleet from month 24 on. Its width has three sources: chance, how
# uncertain the rate is, and how uncertain it is which pumps are the bad ones.
months = np.linspace(24, 30, 25)[1:]
ahead = model.forecast(np.full_like(months, 24), months, subjects="all")
levels = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
plot_fan(
    months, {p: ahead.quantile(p) for p in levels}, time_unit="months", ylabel="failures, 60 pumps"
)

# %%
# Beyond the data the rate has to be assumed. By default it returns to its long-run level; it can
# also stay where it is. Where the two differ much, the data do not decide.
print(model.forecast(24, 27, subjects="all", beyond="hold"))

# %%
# Which pumps to look at first: forecasts use what was seen of each.
each = model.forecast(24, 27, subjects=list(fleet.subjects)).to_frame()
print(each.nlargest(5, "mean")[["subject", "mean", "low", "high"]].round(2).to_string(index=False))
