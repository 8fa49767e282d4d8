"""
Classical estimators beside GP4C
================================

All estimators of gp4c on the placebo arm of the bladder tumour trial: the mean number of new
tumours over time, the rate where there is one, and how well each predicts patients it has not
seen.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gp4c

panel = gp4c.load_dataset("bladder").where(treatment="placebo")
train, test = panel.split(test_size=1 / 3, random_state=0)
models = {
    "GP4C": gp4c.GP4C(random_state=0),
    "LocalEM": gp4c.LocalEM(),
    "NPMLE": gp4c.NPMLE(),
    "NPMLE, gamma frailty": gp4c.NPMLE(effect="gamma"),
    "NPMPLE": gp4c.NPMPLE(),
    "NPMPLGF": gp4c.NPMPLGF(),
    "constant rate": gp4c.HomogeneousPoisson(),
    "constant rate, gamma frailty": gp4c.HomogeneousPoisson(effect="gamma"),
}

# %%
# Step functions first: NPMLE with a 95% bootstrap band of the patients; then the smooth curves,
# GP4C with its posterior band.
times = np.linspace(*panel.window, 400)
fig, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
for number, (name, model) in enumerate(models.items()):
    model.fit(panel)
    left.plot(times, model.cumulative(times), color=f"C{number}", label=name)
    if name in ("GP4C", "LocalEM") or name.startswith("constant"):
        right.plot(times, model.intensity(times), color=f"C{number}", label=name)
models["NPMLE"].bootstrap(200, random_state=0)
left.fill_between(times, *models["NPMLE"].cumulative_band(times), color="C2", alpha=0.15)
right.fill_between(times, *models["GP4C"].intensity_band(times), color="C0", alpha=0.15)
left.set(xlabel="months", ylabel="new tumours per patient", title="Mean number of events")
right.set(xlabel="months", ylabel="new tumours per month", title="Rate")
left.legend(fontsize="small")
right.legend(fontsize="small")

out = Path("gp4c-demo")
out.mkdir(exist_ok=True)
fig.savefig(out / "classical-bladder.png", dpi=120)
print(f"The picture: {out / 'classical-bladder.png'}")

# %%
# A third of the patients held out. A step function has no mass where it saw no event; the score
# then uses a floor and says so in a warning. Frailty makes the largest difference.
for name, model in models.items():
    print(f"{name:30} held-out log-likelihood {model.fit(train).score(test):9.2f}")
