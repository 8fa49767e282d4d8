"""The mean cumulative function, which takes events at exact times: here, at mid-intervals."""

import numpy as np
from surpyval import NonParametricCounting


def fit(data, times):
    events = data.loc[data.index.repeat(data["count"])]
    ends = data.groupby("subject").stop.max()
    model = NonParametricCounting.fit(
        x=np.concatenate([(events.start + events.stop) / 2, ends]),
        i=np.concatenate([events.subject, ends.index]),
        c=np.repeat([0, 1], [len(events), len(ends)]),
    )
    band = model.mcf_cb(times)
    return model, {"sum": model.mcf(times), "sum_low": band[:, 0], "sum_high": band[:, 1]}
