"""Messages of the library in terms of the page: an argument is a field that one can choose."""

from __future__ import annotations

import re

#: what the fields of the page are called
FIELDS = {
    "subject": "Subject",
    "start": "Interval starts",
    "stop": "Interval ends",
    "time": "Visit time",
    "count": "Number of events",
    "exposure": "Exposure",
    "usage": "Usage",
    "end": "Out of service",
    "event": "Type of event",
    "sheet": "Sheet",
    "table": "Table",
    "query": "Query",
    "delimiter": "Delimiter",
    "decimal": "Decimal mark",
    "encoding": "Encoding",
}
#: those that are folded away, so that a message says where they are
_FOLDED = {
    **dict.fromkeys(("usage", "end", "event"), "More columns"),
    **dict.fromkeys(
        ("sheet", "table", "query", "delimiter", "decimal", "encoding"), "Format of the file"
    ),
}
_ARGUMENT = re.compile(rf"\b({'|'.join(FIELDS)})=(\.\.\.|'[^']*'|\"[^\"]*\"|[\w.-]+)")


def on_the_page(message: str) -> str:
    """Say ``count=...`` as “Number of events”, which is where the user can mend it.

    Examples
    --------
    >>> from gp4c.app.page_words import on_the_page
    >>> on_the_page("say which it is with count=...")
    'say which it is with “Number of events”'
    """
    message = message.replace("; found origin=0.0", "")
    message = message.replace("day_first=True", "“day first” under Dates")
    message = message.replace("day_first=False", "“month first” under Dates")
    message = message.replace("origin=a date", "“A time or date” under First interval")
    message = message.replace("origin='column of entry dates'", "a column of entry dates")
    message = message.replace("origin=None", "“from the first visit” under First interval")
    message = message.replace("clock='usage'", "“Draw curves over usage instead of time”")
    message = message.replace("since_entry=True", "“Count time from each subject's entry”")
    message = message.replace("pass missing='drop'", "tick “Leave out what is missing”")
    message = message.replace('missing="drop" (--drop-missing)', "“Leave out what is missing”")
    message = message.replace("missing='drop'", "“Leave out what is missing”")
    return _ARGUMENT.sub(_field, message)


def _field(found: re.Match[str]) -> str:
    value = "" if found[2] == "..." else f" {found[2]}"
    place = f" under {_FOLDED[found[1]]}" if found[1] in _FOLDED else ""
    return f"“{FIELDS[found[1]]}”{place}{value}"
