"""Which tests to try on a mutant: those that run its lines, the quickest first.

``make coverage`` leaves in ``.coverage`` which test ran which line, and in ``.coverage.xml`` how
long each test took.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

#: seconds that pytest itself takes
PER_TEST, PER_FILE = 0.01, 0.3


def seconds_by_test(path: Path) -> dict[str, float]:
    """How long each test took, from pytest's own report."""
    found: dict[str, float] = defaultdict(float)
    for case in ET.parse(path).iter("testcase"):
        found[f"{case.get('file')}::{case.get('name')}"] += float(case.get("time", 0.0))
    return found


class Selection:
    """Tests by line, from a coverage run with contexts."""

    def __init__(self, root: Path) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(root / ".coverage"))
        self.data.read()
        self.files = {file.split("/src/")[-1]: file for file in self.data.measured_files()}
        self.seconds = seconds_by_test(root / ".coverage.xml")
        self._by_module: dict[str, dict[int, set[str]]] = {}

    def tests_by_line(self, module: str) -> dict[int, set[str]]:
        """Tests that ran each line of a module."""
        if module not in self._by_module:
            contexts = self.data.contexts_by_lineno(self.files[module])
            self._by_module[module] = {
                line: {name.rpartition("|")[0] for name in names if "|" in name}
                for line, names in contexts.items()
            }
        return self._by_module[module]

    def tests(self, module: str, lines: tuple[int, int], limit: float) -> list[str]:
        """Tests for a place, as many as `limit` seconds allow but at least one.

        Those of the module's own file come first, the quickest first; and after all others those
        of its file that ran the line only through a cache or a fixture that another test filled.
        """
        by_line = self.tests_by_line(module)
        first, last = lines
        covering = set().union(*(by_line.get(n, set()) for n in range(first, last + 1)))
        if not covering:  # constants of a module run on import
            covering = set().union(*by_line.values())
        file = f"test_{Path(module).stem}.py::"
        own = {test for test in covering if file in test}
        kin = {t for tests in by_line.values() for t in tests if file in t} - covering
        ordered = [*self._quickest(own), *self._quickest(covering - own), *self._quickest(kin)]
        return self._within(ordered, limit)

    def _within(self, ordered: list[str], limit: float) -> list[str]:
        chosen: list[str] = []
        files: set[str] = set()
        spent = 0.0
        for test in ordered:
            file = test.partition("::")[0]
            spent += self.seconds[test] + PER_TEST + (PER_FILE if file not in files else 0.0)
            if chosen and spent > limit:
                break
            chosen.append(test)
            files.add(file)
        return chosen

    def _quickest(self, tests: set[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds[test], test))
