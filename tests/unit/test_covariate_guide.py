"""The README quotes what the guide to covariates prints (which its own test has executed)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_quotes_the_guide():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "guide" / "covariates.md").read_text(encoding="utf-8")
    pattern = r"by a factor of [\d.]+ \(95% interval [\d.]+ to [\d.]+\)"
    (quoted,) = re.findall(pattern, " ".join(readme.split()))
    assert f"    treatment[thiotepa] changes the rate {quoted}" in guide
