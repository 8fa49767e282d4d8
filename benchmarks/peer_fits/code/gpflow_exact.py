"""A log-Gaussian Cox process of the exact event times of 50 subjects, in bins of half a unit."""

import gpflow
import numpy as np

N_SUBJECTS = 50


def fit(data, times):
    edges = np.linspace(0.0, times[-1], 2 * round(times[-1]) + 1)
    count = np.histogram(data.time, edges)[0].astype(float)
    middle, width = (edges[1:] + edges[:-1]) / 2, edges[1]
    model = gpflow.models.VGP(
        (middle[:, None], count[:, None]),
        gpflow.kernels.SquaredExponential(lengthscales=times[-1] / 10),
        gpflow.likelihoods.Poisson(binsize=N_SUBJECTS * width),
        gpflow.functions.Constant(np.log(count.mean() / (N_SUBJECTS * width))),
    )
    gpflow.optimizers.Scipy().minimize(
        model.training_loss, model.trainable_variables, options={"maxiter": 1000}
    )
    mean, variance = (values.numpy()[:, 0] for values in model.predict_f(times[:, None]))
    half = 1.96 * np.sqrt(variance)
    return model, {
        "rate": np.exp(mean + variance / 2),
        "rate_low": np.exp(mean - half),
        "rate_high": np.exp(mean + half),
    }
