"""Which tests to try on a mutant: those that run its lines, the quickest first.

``make coverage`` leaves in ``.coverage`` which test ran which line, and in ``.coverage.xml`` how
long each test took; ``.coverage_added`` and ``.coverage_added.xml``, if they are there, say the
same of tests that were written later.
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


class Lines:
    """Which test ran which line, from one file of coverage; nothing if there is no such file."""

    def __init__(self, path: Path) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(path))
        if path.exists():
            self.data.read()
        self.files = {file.split("/src/")[-1]: file for file in self.data.measured_files()}
        self._by_module: dict[str, dict[int, set[str]]] = {}

    def tests_by_line(self, module: str) -> dict[int, set[str]]:
        """Tests that ran each line of a module."""
        if module not in self._by_module:
            file = self.files.get(module)
            contexts = {} if file is None else self.data.contexts_by_lineno(file)
            self._by_module[module] = {
                line: {name.rpartition("|")[0] for name in names if "|" in name}
                for line, names in contexts.items()
            }
        return self._by_module[module]

    def tests(self) -> set[str]:
        """All tests that ran anything."""
        return {name.rpartition("|")[0] for name in self.data.measured_contexts() if "|" in name}

    def covering(self, module: str, lines: tuple[int, int]) -> set[str]:
        """Tests that ran some of these lines."""
        by_line = self.tests_by_line(module)
        first, last = lines
        found = set().union(*(by_line.get(n, set()) for n in range(first, last + 1)))
        if not found:  # constants of a module run on import
            found = set().union(*by_line.values())
        return found


class Selection:
    """Tests by line, from a coverage run with contexts.

    `busy` says how many times longer tests took in that run than they will here: coverage slows
    them down, and so do other programs on the machine.
    """

    def __init__(self, root: Path, busy: float = 1.0) -> None:
        self.seconds = seconds_by_test(root / ".coverage.xml")
        self._all = Lines(root / ".coverage")
        self._added = Lines(root / ".coverage_added")
        if (root / ".coverage_added.xml").exists():
            self.seconds.update(seconds_by_test(root / ".coverage_added.xml"))
        for test in self.seconds:
            self.seconds[test] /= busy

    def tests(self, module: str, lines: tuple[int, int], limit: float) -> list[str]:
        """Tests for a place, as many as `limit` seconds allow but at least one.

        Those of the module's own file come first, the quickest first; and after all others those
        of its file that ran the line only through a cache or a fixture that another test filled.
        """
        covering = self._all.covering(module, lines)
        by_line = self._all.tests_by_line(module)
        file = f"test_{Path(module).stem}.py::"
        own = {test for test in covering if file in test}
        kin = {t for tests in by_line.values() for t in tests if file in t} - covering
        ordered = [*self._quickest(own), *self._quickest(covering - own), *self._quickest(kin)]
        return self._within(ordered, limit)

    def added(self, module: str, lines: tuple[int, int], limit: float) -> list[str]:
        """Tests that were written after the coverage run: those that run a place, then the others.

        The others are for what runs on import, such as the default of an argument.
        """
        covering = self._added.covering(module, lines)
        others = self._added.tests() - covering
        return self._within([*self._quickest(covering), *self._quickest(others)], limit)

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
