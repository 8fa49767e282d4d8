"""Sphinx configuration: ``make docs`` builds the site and treats warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import gp4c  # noqa: E402

project = "gp4c"
author = "The gp4c developers"
project_copyright = "the gp4c developers"
version = release = gp4c.__version__

extensions = [
    "mathml_formulas",
    "myst_parser",
    "numpydoc",
    "site_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_extensions", "_templates", "sg_execution_times.rst"]

html_math_renderer = "mathml"  # browsers draw it themselves: nothing is fetched

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "ignore_pattern": r"demo\.py",  # the demonstration writes files: `make demo`
    "within_subsection_order": "gallery_order.GalleryOrder",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "capture_repr": (),
    "write_computation_times": False,
}

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

templates_path = ["_templates"]
autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"  # numpydoc says the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme = "pydata_sphinx_theme"
html_title = "gp4c"
# single pages have nothing to navigate in
html_sidebars = {
    page: []
    for page in (
        "start", "coming_from_r", "classical", "calibration", "calibration_record", "reliability",
        "reproduction", "glossary", "design_history", "benchmarks", "notation", "maths",
        "maths_exact",
    )
}  # fmt: skip
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,  # more would take a second line
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
