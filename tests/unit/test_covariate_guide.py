"""What the guide to covariates says it prints is what it prints."""

import io
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "covariates.md"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Standard output of the guide's Python, up to the curves."""
    text = GUIDE.read_text(encoding="utf-8").split("## Curves")[0]
    namespace, out = {"__name__": "__main__"}, io.StringIO()
    with chdir(tmp_path_factory.mktemp("guide")), redirect_stdout(out):
        for block in re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
            exec(compile(block, str(GUIDE), "exec"), namespace)
    return out.getvalue()


def test_the_output_shown_is_the_output(printed):
    text = GUIDE.read_text(encoding="utf-8").split("## Curves")[0]
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    shown = [line[4:].rstrip() for line in outside.splitlines() if line.startswith("    ")]
    assert len(shown) == 11
    lines = [line.rstrip() for line in printed.splitlines()]
    assert [line for line in shown if line not in lines] == []


def test_the_readme_quotes_the_guide(printed):
    readme = (GUIDE.parents[2] / "README.md").read_text(encoding="utf-8")
    pattern = r"by a factor of [\d.]+ \(95% interval [\d.]+ to [\d.]+\)"
    (quoted,) = re.findall(pattern, " ".join(readme.split()))
    assert f"treatment[thiotepa] changes the rate {quoted}" in printed
