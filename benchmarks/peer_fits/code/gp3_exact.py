"""GP3, which is given the exact times of the events that the others see as counts."""

import gp4c


def fit(data, times):
    events = gp4c.RecurrentEvents.from_frame(data, window=(0.0, times[-1]), subjects=range(1, 51))
    model = gp4c.GP3().fit(events)
    low, high = model.intensity_band(times, level=0.95)
    curve = {"rate": model.intensity(times), "rate_low": low, "rate_high": high}
    low, high = model.cumulative_band(times, level=0.95)
    return model, curve | {"sum": model.cumulative(times), "sum_low": low, "sum_high": high}
