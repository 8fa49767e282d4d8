"""A negative-binomial GLM of counts at mid-intervals; spline chosen by AIC, errors by subject."""

import numpy as np
import statsmodels.formula.api as smf


def fit(data, times):
    mid, length = (data.start + data.stop) / 2, data.stop - data.start
    data = data.assign(mid=mid, log_length=np.log(length))
    errors = {"cov_type": "cluster", "cov_kwds": {"groups": data.subject}}
    fits = []
    for df in (5, 10, 15, 20):
        model = smf.negativebinomial(f"count ~ cr(mid, df={df}) - 1", data, offset=data.log_length)
        try:
            fits.append(model.fit(disp=0, maxiter=200, **errors))
        except np.linalg.LinAlgError:  # a spline with more freedom than the counts can bear
            continue
    model = min(fits, key=lambda one: one.aic if np.isfinite(one.aic) else np.inf)
    found = model.get_prediction({"mid": times}, offset=np.zeros(len(times))).summary_frame()
    return model, {
        "rate": found["predicted"],
        "rate_low": found["ci_lower"],
        "rate_high": found["ci_upper"],
    }


# -- for the comparison --


def about(model, fresh):
    length = np.log(fresh.stop - fresh.start)
    expected = model.predict({"mid": (fresh.start + fresh.stop) / 2}, offset=length)
    return {"expected": expected, "family": "nb2", "dispersion": model.params["alpha"]}
