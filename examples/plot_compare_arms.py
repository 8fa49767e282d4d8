"""
Compare two arms
================

Does thiotepa change the rate at which new bladder tumours appear?
"""

import gp4c
from gp4c.reporting.figures.plots import plot_groups, plot_ratio

panel = gp4c.load_dataset("bladder")
found = gp4c.compare(panel, by="treatment")
print(found)

# %%
# Each arm has its own curve. Bands allow for the large differences between patients; the numbers
# below are those of patients still observed.
arms = {arm: panel.where(treatment=arm) for arm in found.groups}
plot_groups(found.models, title="treatment", observed=arms)

# %%
# The ratio of the mean numbers of tumours, with its band; 1 is no difference.
plot_ratio(found, curve="cumulative")

# %%
# The same at chosen times, with the probability that the treated arm has had fewer.
for month in (12.0, 24.0, 36.0):
    ratio = found.ratio(month, curve="cumulative")
    low, high = found.ratio_band(month, curve="cumulative")
    fewer = found.probability(month, curve="cumulative")
    print(
        f"by month {month:.0f}: {ratio:.2f} times as many ({low:.2f} to {high:.2f}), "
        f"fewer with probability {fewer:.2f}"
    )
