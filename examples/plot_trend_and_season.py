"""
A trend and a season
====================

Machines wear out with age, and fail more often in summer. They entered service at different dates,
so age and calendar can be told apart: the curve runs over age, with a trend, and the season over
the calendar.
"""

import numpy as np
import pandas as pd

import gp4c
from gp4c.reporting.figures.factor_plots import plot_season

rng, rows = np.random.default_rng(3), []
for machine in range(40):
    entry = pd.Timestamp("2020-01-01") + pd.Timedelta(days=rng.uniform(0, 700))
    effect = rng.gamma(4.0, 0.25)
    rows.append((machine, entry, 0))
    for month in range(2, 31, 2):
        now = entry + pd.Timedelta(days=30.44 * month)
        summer = np.exp(0.5 * np.cos(2 * np.pi * (now.day_of_year - 30 - 196) / 365.25))
        mean = 0.4 * effect * summer * np.exp(0.03 * month)
        rows.append((machine, now, rng.poisson(mean)))
visits = pd.DataFrame(rows, columns=["subject", "time", "count"])
panel = gp4c.PanelCounts.from_visits(visits, origin=None, since_entry=True, time_unit="months")
model = gp4c.GP4C(trend="loglinear", season="year", effect="gamma", bursts=False).fit(panel)
print(model.trend_)  # the truth: 43% a year
print(model.season_)

# %%
# The season, with the months named. The truth is highest in the middle of July, 1.65 times the
# average, and lowest in January, 0.61 times.
plot_season(model)

# %%
# Failures of all machines in the next half year of their lives: each follows its own calendar, and
# the trend goes on.
print(model.forecast(30, 36, subjects="all"))
