"""
Courses that subjects combine
=============================

Patients with gallstones reported episodes of nausea, some in the first weeks, others late.
``GP4CMixture`` finds two basis intensities, and how much of each every patient has.
"""

import warnings

import gp4c

panel = gp4c.load_dataset("nausea").where(group="A")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gp4c.exceptions.FitWarning)  # the end of this page is about it
    model = gp4c.GP4CMixture(n_bases=2).fit(panel)

# %%
# The bases, each for a patient with its mean weight. The second one is the early course.
model.plot_bases()

# %%
# Most patients have one of the two courses and little of the other.
model.plot_weights()

# %%
# The expected number of episodes of two patients over time, each with its own combination.
table = model.weight_table().set_index("subject")
for basis in (1, 2):
    patient = (table["events"] * table[f"share_{basis}"]).idxmax()
    numbers = model.cumulative([10.0, 25.0, 50.0], subjects=patient)
    print(f"patient {patient}, mostly basis {basis}: {numbers.round(1)} episodes")

# %%
# The fit says that counts vary more within patients than Poisson counts would, even around their
# own courses: episodes come in bursts, which ``GP4C()`` has.
print(f"variance within patients over that of the model: {model.fit_check_.excess:.1f}")
