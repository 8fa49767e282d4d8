"""Plots show the model's numbers, on the axes given, in styles that differ without colour."""

import itertools
import warnings
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from gp4c.exceptions import NoIntensityError, PanelDataError
from gp4c.reporting.figures import plots
from gp4c.reporting.figures.count_checks import check_counts, plot_pit, plot_rootogram
from gp4c.reporting.figures.curves import curves_of
from gp4c.reporting.figures.plot_style import STYLES, safe, save_plot, tint
from gp4c.reporting.figures.subject_plots import plot_fan, plot_subject, plot_subjects

mpl.use("agg")


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def rendered(ax):
    """Draw it as a file would be; warnings are errors."""
    ax.figure.canvas.draw()
    return ax


def test_the_intensity_and_its_band_are_the_models(smooth, visits, ax):
    assert plots.plot_intensity(smooth, ax, level=0.8, panel=visits) is ax
    line = rendered(ax).lines[0]
    times = np.asarray(line.get_xdata())
    np.testing.assert_array_equal(line.get_ydata(), smooth.intensity(times))
    low, high = smooth.intensity_band(times, 0.8)
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx(high.max())
    assert corners.min() == pytest.approx(low.min())
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > high.max()
    assert ax.get_xlabel() == "time (months)"
    assert ax.get_ylabel() == "events per month"
    rug = ax.collections[1]
    assert len(rug.get_paths()) == len(np.unique(visits.stop))


def test_a_step_function_is_drawn_as_steps(stepwise, ax):
    line = rendered(plots.plot_cumulative(stepwise, ax)).lines[0]
    assert line.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(line.get_ydata(), stepwise.cumulative(line.get_xdata()))
    with pytest.raises(NoIntensityError, match="plot_cumulative"):
        plots.plot_intensity(stepwise, ax)


def test_a_model_is_drawn_as_what_it_has(smooth, stepwise):
    def axes():
        return Figure().subplots()

    assert plots.plot_model(smooth, axes()).get_ylabel() == "events per month"
    assert plots.plot_model(stepwise, axes()).get_ylabel() == "mean number of events"
    assert plots.plot_model(smooth, axes(), what="history").get_xlabel() == "step"
    with pytest.raises(ValueError, match="what must be 'intensity', 'cumulative' or 'history'"):
        plots.plot_model(smooth, what="everything")


def test_groups_differ_without_colour_and_all_fit(arms, ax):
    plots.plot_groups(arms, ax, what="intensity", title="arm")
    dashes = {str(line._unscaled_dash_pattern) for line in ax.lines}
    assert len(dashes) == 2
    tallest = max(np.max(band) for m in arms.values() for band in curves_of(m).rate_bands[0.95])
    assert ax.get_ylim()[1] > tallest
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert ax.get_legend().get_title().get_text() == "arm, 95% bands"
    rendered(ax)


def test_bands_are_left_out_where_they_would_hide_each_other(smooth, ax):
    curves = curves_of(smooth)
    plots.plot_groups(dict.fromkeys("abcd", curves), ax)
    assert len(ax.collections) == 0
    assert len(ax.lines) == 4


def test_only_the_first_of_several_estimators_has_a_band(smooth, stepwise, ax):
    plots.plot_estimators({"GP4C": smooth, "NPMLE": stepwise}, ax)
    assert len(ax.collections) == 1
    assert ax.get_legend().get_title().get_text() == "95% band of GP4C"
    rendered(ax)


@pytest.mark.parametrize("scale", [1.0, 8.0, 400.0])
def test_the_ratio_is_on_a_log_scale_with_one_marked(ax, scale):
    comparison = SimpleNamespace(
        panel=SimpleNamespace(window=(0.0, 10.0), time_unit="years", time_origin=None),
        groups=["a", "b"],
        tested=SimpleNamespace(adjustment=None),
        ratio=lambda t, curve, pair, at=None: 0.5 + 0.01 * t,
        ratio_band=lambda t, level, curve, pair, at=None: (
            (0.4 + 0 * t) / scale,
            (1.1 + 0 * t) * scale,
        ),
    )
    rendered(plots.plot_ratio(comparison, ax))
    assert ax.get_yscale() == "log"
    assert any(np.all(np.asarray(line.get_ydata()) == 1) for line in ax.lines)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert "1" in labels
    assert 3 <= len(labels) <= 9
    assert ax.get_ylabel() == "ratio of rates, b / a"


def test_the_history_is_the_objective_step_by_step(smooth, ax):
    line = rendered(plots.plot_history(smooth, ax)).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), smooth.history_)


def test_a_subjects_counts_and_expectation_add_up(smooth, visits, ax):
    subject = visits.subjects[3]
    counted, expected = rendered(plot_subject(smooth, visits, subject, ax)).lines
    own = visits.to_frame().query("subject == @subject")
    assert counted.get_ydata()[-1] == own["count"].sum()
    whole = smooth.subject_effects_[3] * smooth.expected_counts(
        own["start"].min(), own["stop"].max()
    )
    assert expected.get_ydata()[-1] == pytest.approx(whole)
    with pytest.raises(PanelDataError, match="no subject"):
        plot_subject(smooth, visits, "nobody", ax)
    with pytest.raises(PanelDataError, match="fitted to 20 subjects"):
        plot_subject(smooth, visits.where(arm="a"), visits.subjects[0], ax)


def test_the_busiest_subjects_are_shown_first(smooth, visits):
    totals = visits.to_frame().groupby("subject")["count"].sum()
    axes = plot_subjects(smooth, visits, most=4)
    assert len(axes) == 4
    assert axes[0].get_title(loc="left") == f"subject {totals.idxmax()}"
    rendered(axes[0])
    mpl.pyplot.close(axes[0].figure)


def test_a_fan_widens_and_names_its_intervals(ax):
    t = np.linspace(0, 5, 6)
    fan = {0.05: 2 * t, 0.25: 2.5 * t, 0.5: 3 * t, 0.75: 3.5 * t, 0.95: 4 * t}
    rendered(plot_fan(t, fan, ax, history=(t - 5, t), time_unit="weeks"))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["90% interval", "50% interval", "median", "counted"]


# -- checks of counts ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["smooth", "arms"])
def test_expected_frequencies_and_pit_are_what_simulation_gives(name, visits, rng, request):
    model = request.getfixturevalue(name)
    model, panel = (model, visits) if name == "smooth" else (model["a"], visits.where(arm="a"))
    check = check_counts(model, panel, n_bins=5)
    draws = 4000
    mean = model.posterior_.sample_integrals(panel.start, panel.stop, draws, rng)
    effect = np.ones((draws, panel.n_subjects))
    if np.isfinite(model.frailty_shape_):
        effect = rng.gamma(model.frailty_shape_, 1 / model.frailty_shape_, effect.shape)
    counts = rng.poisson(effect[:, panel.subject_index] * mean)
    top = len(check.expected) - 1
    frequency = [(np.minimum(counts, top) == k).sum() / draws for k in range(top + 1)]
    np.testing.assert_allclose(check.expected, frequency, atol=0.05 * panel.n_intervals**0.5)
    # randomised PIT: uniform between P(N < n) and P(N ≤ n), averaged over many randomisations
    owner = np.equal.outer(panel.subject_index, np.arange(panel.n_subjects))
    totals, seen = counts @ owner, panel.count @ owner
    below, upto = (totals < seen).mean(axis=0), (totals <= seen).mean(axis=0)
    pit = below + rng.random((2000, len(seen))) * (upto - below)
    shares = np.histogram(pit, bins=5, range=(0, 1))[0] / pit.size
    np.testing.assert_allclose(check.pit, shares, atol=0.03)
    assert check.observed.sum() == panel.n_intervals
    assert check.expected.sum() == pytest.approx(panel.n_intervals)


def test_bars_of_the_rootogram_hang_from_the_curve(smooth, visits, ax):
    check = check_counts(smooth, visits)
    rendered(plot_rootogram(check, ax))
    bar = ax.patches[0]
    assert bar.get_y() + bar.get_height() == pytest.approx(
        np.sqrt(check.expected[0]) - np.sqrt(check.observed[0])
    )
    assert bar.get_y() == pytest.approx(np.sqrt(check.expected[0]))


def test_the_pit_histogram_has_unit_area(smooth, visits, ax):
    rendered(plot_pit(check_counts(smooth, visits), ax))
    area = sum(bar.get_width() * bar.get_height() for bar in ax.patches)
    assert area == pytest.approx(1)


# -- style --------------------------------------------------------------------------------------


def test_colours_are_dark_enough_to_read_and_dashes_are_all_different():
    assert len({str(s.dashes) for s in STYLES}) == len({s.colour for s in STYLES}) == len(STYLES)
    assert tint("#000000", 0.0) == (1, 1, 1)
    assert tint("#102030", 1.0) == pytest.approx(to_rgb("#102030"))


def test_text_of_users_is_not_mathematics_and_is_cut(smooth, ax):
    plots.plot_groups({"$\\frac{": curves_of(smooth), "x" * 90: curves_of(smooth)}, ax)
    rendered(ax)
    assert len(safe("x" * 90)) <= 28


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_picture_is_the_same_file(smooth, tmp_path, suffix):
    curves = curves_of(smooth)
    files = [tmp_path / f"{k}.{suffix}" for k in range(2)]
    for file in files:
        save_plot(lambda ax: plots.plot_intensity(curves, ax), file, dpi=50)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == files


def test_a_busy_machine_is_no_reason_for_a_warning(tmp_path, monkeypatch):
    """Matplotlib warns where placing a key takes more than a second; here every step does."""
    clock = itertools.count(step=2.0)
    monkeypatch.setattr("matplotlib.legend.time", SimpleNamespace(perf_counter=lambda: next(clock)))

    def draw(axes):
        axes.plot([0, 1], label="a")
        axes.legend(loc="best")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_plot(draw, tmp_path / "plot.png")
    assert next(clock) >= 4.0  # the key was placed, by that clock
