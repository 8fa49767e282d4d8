"""Pages that follow the package: the API reference, from the names that it declares public, and
the benchmarks, from their results.

A name or page that is not there yet is left out, so that the documentation builds at any time.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from benchmark_page import benchmark_page

#: sections of the reference: title, folders of the package, further modules with their members
SECTIONS = (
    ("Data", ("data",), ("gp4c.data.simulate.intensities",)),
    (
        "Models",
        ("estimators", "classical", "files"),
        (
            "gp4c.estimators.forecasts.count_forecast",
            "gp4c.estimators.forecasts.subject_effects",
            "gp4c.files.arviz_export",
        ),
    ),
    ("Analysis", ("analysis",), ("gp4c.analysis.comparison", "gp4c.analysis.diagnostics")),
    (
        "Plots",
        (),
        (
            "gp4c.reporting.figures.plots",
            "gp4c.reporting.figures.panel_picture",
            "gp4c.reporting.figures.subject_plots",
            "gp4c.reporting.figures.count_checks",
            "gp4c.reporting.figures.score_plots",
            "gp4c.reporting.figures.plot_style",
        ),
    ),
    (
        "Summaries, tables and reports",
        ("reporting",),
        (
            "gp4c.reporting.summary",
            "gp4c.reporting.figures.curves",
            "gp4c.reporting.csv_tables",
            "gp4c.reporting.page.html_report",
        ),
    ),
    ("Errors and warnings", (), ("gp4c.exceptions",)),
)


#: pages whose tables of contents may name pages that are not there yet
CONTENTS = ("index", "guide/index")


def importable(module):
    """Whether a module is there; an error inside it is not hidden."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gp4c"):
            return False
        raise
    return True


def public_names(folders):
    """Names of the package that live in these folders."""
    import gp4c

    return [
        f"gp4c.{name}"
        for name, home in gp4c._HOMES.items()
        if home.split(".")[1] in folders and importable(home)
    ]


def section(title, folders, modules):
    """Text of one section: a table of names, then modules in full."""
    names = public_names(folders)
    found = [module for module in modules if importable(module)]
    if not names and not found:
        return ""
    lines = [title, "-" * len(title), ""]
    if names:
        lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        lines.append("")
    if found:
        lines += [".. autosummary::", "   :toctree: .", "   :template: autosummary/module.rst", ""]
        lines += [f"   {module}" for module in found]
        lines.append("")
    return "\n".join(lines)


def write_reference(app, config):
    """Write the index of the reference; autosummary makes a page for each name in it."""
    text = "API reference\n=============\n\n" + "\n".join(section(*s) for s in SECTIONS)
    write_if_new(Path(app.srcdir) / "api" / "generated" / "index.rst", text)


def write_benchmarks(app, config):
    """Write the page of benchmarks from the results of the last runs."""
    source = Path(app.srcdir)
    text = benchmark_page(source.parent / "benchmarks" / "results")
    write_if_new(source / "benchmarks.md", text)


def write_if_new(target, text):
    """Write a page only if it has changed, so that Sphinx does not build it again for nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def leave_out_missing(app, docname, source):
    """Drop pages that do not exist from the tables of contents of the site and of the guide."""
    if docname not in CONTENTS:
        return
    folder = docname.removesuffix("index")
    before, rest = source[0].split("```{toctree}", 1)
    entries, after = rest.split("```", 1)
    kept = [e for e in entries.splitlines() if not is_missing(e, folder, app.env.found_docs)]
    source[0] = before + "```{toctree}" + "\n".join(kept) + "\n```" + after


def is_missing(entry, folder, known):
    return bool(entry.strip()) and not entry.startswith(":") and folder + entry not in known


def contents_pages(app, env, added, changed, removed):
    """Read tables of contents again in every build: pages may have come since the last."""
    return [page for page in CONTENTS if page in env.found_docs]


def setup(app):
    app.connect("env-get-outdated", contents_pages)
    app.connect("source-read", leave_out_missing)
    # before Sphinx looks which sources there are
    app.connect("config-inited", write_reference)
    app.connect("config-inited", write_benchmarks)
    return {"parallel_read_safe": True}
