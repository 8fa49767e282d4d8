"""Examples in the order in which a reader needs them."""

from __future__ import annotations

_ORDER = (
    "plot_estimate.py",
    "plot_compare_arms.py",
    "plot_forecast_fleet.py",
    "plot_diagnostics.py",
    "plot_choose_estimator.py",
    "plot_classical.py",
    "plot_event_times.py",
)


class GalleryOrder:
    """Sort key of sphinx-gallery; examples that are not listed come last, by name."""

    def __init__(self, source_folder):
        self.source_folder = source_folder

    def __call__(self, name):
        return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)

    def __repr__(self):
        return "<GalleryOrder>"
