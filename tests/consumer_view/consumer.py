"""Code of somebody who uses gp4c and checks types strictly; see requirements/build_check.py."""

from __future__ import annotations

from typing import assert_type

import gp4c
from gp4c.exceptions import PanelDataError

panel = gp4c.load_dataset("bladder")
assert_type(panel, gp4c.PanelCounts)
model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
assert_type(model, gp4c.GP4C)
low, high = model.intensity_band([1.0, 2.0], level=0.9)
print(model.intensity(12.0), low, high, model.summary())
model.table("curve", times=[12.0, 24.0]).save("table.tex")
model.plot(what="cumulative", level=0.8)

found = gp4c.compare(panel, by="treatment")
print(found.p_value, found.interval(0.95), found.table().to_markdown())
found.plot(what="ratio")
forecast = model.forecast(53, 60, level=0.8)
forecast.plot()
text: str = forecast.table().to_latex()

report = gp4c.Report({"all": model}, panel=panel, title="Trial")
report.save("report.html")
gp4c.Report(found.models, panel, "treatment", found).save("groups.html")
assert_type(gp4c.citation(), str)
try:
    gp4c.read_panel("visits.csv", subject="id")
except PanelDataError as error:
    print(error)
