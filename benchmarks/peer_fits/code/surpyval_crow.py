"""Crow-AMSAA, a power law. Interval counts of 0 are refused, so events stand at mid-intervals."""

import numpy as np
from surpyval import CrowAMSAA


def fit(data, times):
    events = data.loc[data.index.repeat(data["count"])]
    ends = data.groupby("subject").stop.max()
    model = CrowAMSAA.fit(
        x=np.concatenate([(events.start + events.stop) / 2, ends]),
        i=np.concatenate([events.subject, ends.index]),
        c=np.repeat([0, 1], [len(events), len(ends)]),
    )
    after = times[1:]
    curve = {"rate": model.iif(after), "sum": model.cif(after)}
    for name, band in {"rate": model.iif_cb(after), "sum": model.cif_cb(after)}.items():
        curve |= {f"{name}_low": band[:, 0], f"{name}_high": band[:, 1]}
    return model, {name: np.concatenate([[v[0]], v]) for name, v in curve.items()}


# -- for the comparison --


def about(model, fresh):
    expected = model.cif(fresh.stop.to_numpy()) - model.cif(fresh.start.to_numpy())
    return {"expected": expected, "family": "poisson"}
