"""GP4C with its defaults."""

import gp4c


def fit(data, times):
    panel = gp4c.PanelCounts.from_frame(data, window=(0.0, times[-1]))
    model = gp4c.GP4C().fit(panel)
    low, high = model.intensity_band(times, level=0.95)
    curve = {"rate": model.intensity(times), "rate_low": low, "rate_high": high}
    low, high = model.cumulative_band(times, level=0.95)
    return model, curve | {"sum": model.cumulative(times), "sum_low": low, "sum_high": high}


# -- for the comparison --


def about(model, fresh):
    """The score leaves Σ ln m! out, which the other peers have."""
    from scipy.special import gammaln

    panel = gp4c.PanelCounts.from_frame(fresh, window=model.window_)
    return {"score": model.score(panel) - gammaln(panel.count + 1).sum()}
