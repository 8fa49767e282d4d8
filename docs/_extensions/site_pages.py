"""Pages that follow the package: the API reference, from the names that it declares public.

A name or page that is not there yet is left out, so that the documentation builds at any time.
"""

from __future__ import annotations

import importlib
from pathlib import Path

#: sections of the reference: title, folders of the package, further modules with their members
SECTIONS = (
    ("Data", ("data",), ("gp4c.data.intensities",)),
    ("Models", ("models",), ()),
    ("Analysis", ("analysis",), ()),
    ("Reporting", ("reporting",), ("gp4c.reporting.panel_picture",)),
    ("Errors and warnings", (), ("gp4c.exceptions",)),
)


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
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    text = "API reference\n=============\n\n" + "\n".join(section(*s) for s in SECTIONS)
    target = folder / "index.rst"
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def leave_out_missing(app, docname, source):
    """Drop pages that do not exist from the table of contents of the front page."""
    if docname != "index":
        return
    before, rest = source[0].split("```{toctree}", 1)
    entries, after = rest.split("```", 1)
    kept = [e for e in entries.splitlines() if not is_missing(e, app.env.found_docs)]
    source[0] = before + "```{toctree}" + "\n".join(kept) + "\n```" + after


def is_missing(entry, known):
    return bool(entry.strip()) and not entry.startswith(":") and entry not in known


def setup(app):
    app.connect("source-read", leave_out_missing)
    # before Sphinx looks which sources there are
    app.connect("config-inited", write_reference)
    return {"parallel_read_safe": True}
