"""Formulas as MathML, which browsers draw themselves: no script, and nothing is fetched."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert

_FUNCTION = r"\\(?:ln|exp|sinh|coth|cos|sin)(?![a-zA-Z])"


def mathml(tex, display="inline"):
    """A formula of TeX as a ``<math>`` element.

    Examples
    --------
    >>> mathml("a^2").startswith("<math")
    True
    """
    # the converter takes sizes of angle brackets for letters
    plain = re.sub(r"\\[Bb]igg?[lr]?\s*(?=\\[lr]angle)", "", tex.strip())
    # and sets no space around the names of functions
    plain = re.sub(rf"(?<=[\w}}])\s*(?={_FUNCTION})", r"\\,", plain)
    plain = re.sub(rf"({_FUNCTION})\s*(?=\w|\\(?![a-zA-Z]*(?:[lL]|eft)\b))", r"\1\\,", plain)
    if r"\\" in plain and r"\begin" not in plain:
        plain = rf"\begin{{aligned}}{plain}\end{{aligned}}"
    return convert(plain, display=display)


def inline(self, node):
    """A formula in a line."""
    self.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def block(self, node):
    """A formula in a line of its own, with its number if it has one."""
    number = f'<span class="eqno">({escape(node["number"])})</span>' if node.get("number") else ""
    self.body.append(f'<div class="math">{number}{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
