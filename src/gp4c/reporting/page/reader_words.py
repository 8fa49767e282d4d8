"""Notes of the library for who reads a report and does not write code."""

from __future__ import annotations

import re

#: what a note says to programmers, and what it says to readers
_PHRASES = (
    (r' \(subjects="all" counts them\)', ""),
    (r'; subjects="active" leaves them out', ""),
    (r'; beyond="hold" keeps it at its last value', ""),
    (r'; beyond="\w+" takes it', ""),
    (r"compare with method='mcmc' before using them", "compare them with the sampler's"),
    (r"raise max_iter, or loosen tol, before using it", "do not rely on it"),
    (r"; call model\.bootstrap\(200\)", "; resampling of the subjects would give bands"),
    (r"effect='gamma' allows for it", "a model with subject effects allows for it"),
    (r"(count_term=None|hyper='integrate'|GP4C\(\)) has it", "the default model has it"),
    (r"the default, count_term=None, has no bound", "the default model has no bound"),
    (r"cross_validate says", "cross-validation says"),
    (r"use a model with bursts=True", "use a model in which events may come in bursts"),
    (r"fit with bursts=True", "fit a model in which events may come in bursts"),
    (
        r"leave out count_term, which counts events one by one",
        "fit a model in which events may come in bursts",
    ),
    (r" \(hyper='optimize'\)", ""),
    (r"n_bases=(\d+) says as much", r"a fit with \1 of the bases says as much"),
)


def for_readers(text: str) -> str:
    """A note without arguments and calls of Python.

    Examples
    --------
    >>> from gp4c.reporting.page.reader_words import for_readers
    >>> for_readers('1 is out of service and not counted (subjects="all" counts them).')
    '1 is out of service and not counted.'
    """
    for phrase, words in _PHRASES:
        text = re.sub(phrase, words, text)
    return text
