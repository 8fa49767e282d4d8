"""
What counts lose against event times
====================================

GP3 fits the same curve to exact event times, where they are known. Simulated data show both: the
subjects are the same, but GP4C sees only how many events fell between two visits.
"""

import numpy as np

import gp4c
from gp4c.reporting.figures.plots import plot_estimators

times = np.linspace(0, 60, 241)
rate = 1.5 + np.sin(times / 6) + 0.4 * np.sin(times / 2.4)
panel, events = gp4c.simulate_panel(
    (times, rate), window=(0, 60), n_subjects=40, n_intervals=8, random_state=3
)
print(panel, events, sep="\n")

# %%
# Eight visits in sixty units of time blur what is faster than the gaps between them, and the band
# says so. The dotted line is the truth.
models = {
    "GP4C, counts": gp4c.GP4C(effect=None).fit(panel),
    "GP3, event times": gp4c.GP3().fit(events),
}
ax = plot_estimators(models, what="intensity")
ax.plot(times, rate, color="#202020", linestyle=":", linewidth=1.5)

# %%
# Mean squared error of the rate, and the average width of the 95% band.
for name, model in models.items():
    error = np.mean((model.intensity(times) - rate) ** 2)
    low, high = model.intensity_band(times)
    print(f"{name:17} mean squared error {error:.4f}, width of the band {np.mean(high - low):.2f}")
