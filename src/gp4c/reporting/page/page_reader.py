"""The blocks of a page: headings, paragraphs, tables and figures, in their order."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from html.parser import HTMLParser

#: what is for the screen only: buttons, and what is folded away
_SCREEN_ONLY = ("fieldset", "details", "nav", "script", "style", "noscript")
#: elements that are one block of text each, and the kind of block
_TEXTS = {"h2": "heading", "h3": "subheading", "p": "paragraph", "li": "item", "pre": "code",
          "figcaption": "caption", "caption": "title"}  # fmt: skip
#: what follows each line of a card when it becomes a sentence
_AFTER = {"name": ": ", "figure": " "}


@dataclass
class Block:
    """A piece of a page.

    Attributes
    ----------
    kind : str
        "heading", "subheading", "paragraph", "item", "code", "caption", "table", "plot" or
        "picture".
    text : str
        Its words; of a plot its key, of a table its title.
    head, rows : list
        Of a table.
    png : bytes
        Of a picture.
    """

    kind: str
    text: str = ""
    head: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    png: bytes = b""


def blocks_of(html: str, level: str) -> list[Block]:
    """Read the HTML of a section as a sequence of blocks.

    Parameters
    ----------
    html : str
        What :mod:`gp4c.reporting.page.report_page` makes.
    level : str
        What stands for the level of the bands, such as ``95%``; a script writes it on the page.
    """
    reader = _Reader(level)
    reader.feed(html)
    reader.close()
    return reader.blocks


class _Reader(HTMLParser):
    def __init__(self, level: str) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self._level, self._hidden = level, 0
        self._words: list[str] | None = None
        self._card = 0  # depth of divisions inside a card, which is one paragraph
        self._after = " "  # what follows the division of a card that is being read
        self._in_head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _SCREEN_ONLY:
            self._hidden += 1
        if self._hidden:
            return
        if tag in (*_TEXTS, "td", "th", "strong"):
            self._begin(tag)
        elif tag == "table":
            self.blocks.append(Block("table"))
        elif tag == "thead":
            self._in_head = True
        elif tag == "tr" and not self._in_head:
            self.blocks[-1].rows.append([])
        elif tag == "span" and "data-level" in given:
            self.handle_data(self._level)
        elif tag == "div":
            self._begin_division(given)
        elif tag == "img":
            data = given["src"].partition("base64,")[2]
            self.blocks.append(Block("picture", png=b64decode(data)))

    def _begin(self, tag: str) -> None:
        if tag != "strong" or self._words is None:  # strong within a text is part of it
            self._words = []

    def _begin_division(self, given: dict[str, str]) -> None:
        kind = given.get("class", "")
        if kind == "plot":
            self.blocks.append(Block("plot", given["id"]))
        elif kind == "card":
            self._card, self._words = 1, []
        elif self._card:
            self._card += 1
            self._after = _AFTER.get(kind, ", ")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._hidden -= tag in _SCREEN_ONLY
            return
        if tag == "thead":
            self._in_head = False
        elif tag in ("td", "th"):
            cells = self.blocks[-1].head if self._in_head else self.blocks[-1].rows[-1]
            cells.append(self._text())
        elif tag == "caption":
            self.blocks[-1].text = self._text()
        elif tag in _TEXTS:
            self.blocks.append(Block(_TEXTS[tag], self._text()))
        elif tag == "div" and self._card:
            self._card -= 1
            if not self._card:
                self.blocks.append(Block("paragraph", self._text().rstrip(", ")))
            elif self._words is not None:
                self._words.append(self._after)

    def handle_data(self, data: str) -> None:
        if self._words is not None and not self._hidden:
            self._words.append(data)

    def _text(self) -> str:
        text, self._words = "".join(self._words or ()), None
        return text.strip()
