"""Users' texts have plain words: what needs a gloss is glossed, folded away or in the glossary."""

import ast
import json
import re
from html import unescape
from pathlib import Path

import pytest

import gp4c
from gp4c.reporting.summary import summarise

ROOT = Path(__file__).parents[3]
WORDS = json.loads((ROOT / "tests" / "plain_words.json").read_text(encoding="utf-8"))
GLOSSARY = ROOT / "docs" / "glossary.md"
#: labels of rows that say themselves what they are
SPEAKING = {
    "subjects", "intervals", "events", "in other words", "why", "within subjects", "over time",
    "without a model", "range of the rate", "average rate", "jumps",
}  # fmt: skip


@pytest.fixture(scope="module")
def found(visits):
    return gp4c.compare(visits, by="arm", n_permutations=99, random_state=0)


def said(text: str) -> list[str]:
    """Sentences of a text with a word that it must not have, and what to say instead."""
    return [
        f"{word!r} ({instead}): {sentence.strip()}"
        for sentence in re.split(r"(?<=[.:;])\s|\n", text)
        for group, kept in (("never", sentence), ("only in brackets", _unbracketed(sentence)))
        for word, instead in WORDS[group].items()
        if _has(kept, word)
    ]


def _unbracketed(sentence: str) -> str:
    return re.sub(r"\([^)]*\)", "", sentence)


def _has(sentence: str, word: str) -> bool:
    """Whether a word occurs; abbreviations in capitals are not words in small letters."""
    flags = 0 if word.isupper() else re.IGNORECASE
    return re.search(rf"(?<![\w-]){re.escape(word)}", sentence, flags) is not None


def visible(html: str) -> str:
    """What a page shows or reads out with its folds closed."""
    open_parts = re.sub(r"<(details|script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    spoken = re.findall(r'(?:alt|aria-label|title)="([^"]*)"', open_parts)
    shown = re.sub(r"<[^>]+>", "\n", open_parts)
    return unescape("\n".join([*spoken, shown]))


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("a gain of 3.1 nats", 1),
        ("signatures of 3 combinations", 0),  # no word begins with nats
        ("the PIT of totals", 1),
        ("a pit", 0),
        ("few draws (Pareto k 0.8, reliable below 0.7)", 0),
        ("Pareto k is 0.8 (reliable below 0.7)", 1),
        ("<p>plain</p><details><p>ELBO</p></details>", 0),
        ('<p>plain</p><img alt="ELBO over time"/>', 1),
    ],
)
def test_the_check_itself(text, bad):
    assert len(said(visible(text))) == bad


@pytest.mark.parametrize("name", ["smooth", "stepwise"])
def test_summaries_have_plain_words(name, request):
    summary = summarise(request.getfixturevalue(name))
    assert said(str(summary)) == []
    assert said(visible(summary._repr_html_())) == []


def test_comparisons_and_forecasts_have_plain_words(found):
    assert said(found.summary()) == []
    assert said(visible(found._repr_html_())) == []
    model = found.models["a"]
    for beyond in ("auto", "hold"):
        forecast = model.forecast(12, 15, beyond=beyond)
        assert said(f"{forecast}\n{forecast.note}") == []
    assert said(str(summarise(model))) == []
    assert said(model.methods_text()) == []


def test_reports_have_plain_words(found, visits, smooth):
    for report in (
        gp4c.Report(found.models, panel=visits, by="arm", comparison=found),
        gp4c.Report({"all": smooth}, panel=visits),
    ):
        assert said(visible(report.html())) == []
        labels = [figure[key] for figure in report.figures.values() for key in ("xlabel", "ylabel")]
        assert said("\n".join(map(str, labels))) == []


def test_details_are_folded_away_and_kept(smooth, visits):
    summary = summarise(smooth)
    assert "ELBO" not in str(summary)
    assert summary["ELBO"].value == smooth.elbo_
    assert "ELBO" in summary.to_dict()["Fit"]
    assert "ELBO" in set(summary.to_frame()["quantity"])
    page = gp4c.Report({"all": smooth}, panel=visits).html()
    for html in (page, summary._repr_html_()):
        assert "ELBO" in html
        assert "ELBO" not in visible(html)


# -- sentences that small fits do not reach -----------------------------------------------------


def _texts(path: Path):
    """String literals, parts of formatted ones joined, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for owner in ast.walk(tree)
        if isinstance(owner, ast.Expr)
        for node in ast.walk(owner)
        if isinstance(owner.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            yield "".join(v.value if isinstance(v, ast.Constant) else "7" for v in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in skipped:
            yield from [node.value] if isinstance(node.value, str) else []


def test_every_message_has_plain_words():
    """All of the package but the reproduction of the paper, which is for those who read it."""
    source = ROOT / "src" / "gp4c"
    bad = [
        f"{path.relative_to(source)}: {sentence}"
        for path in sorted(source.rglob("*.py"))
        if "paper" not in path.relative_to(source).parts
        for text in _texts(path)
        if " " in text and not any(folded in text for folded in WORDS["behind a fold"])
        for sentence in said(text)
    ]
    assert bad == []


# -- the glossary -------------------------------------------------------------------------------


def glossary_terms() -> set[str]:
    text = GLOSSARY.read_text(encoding="utf-8").partition("```{glossary}")[2].partition("```")[0]
    return {line.strip().lower() for line in text.splitlines() if line and line[0] != " "}


def test_the_glossary_has_the_words_of_summaries(smooth, stepwise, found):
    rows = [
        row.quantity
        for model in (smooth, stepwise, *found.models.values())
        for row in summarise(model).plain_rows
    ]
    assert set(rows) - SPEAKING - glossary_terms() == set()


def test_the_glossary_has_what_texts_avoid(smooth):
    text = GLOSSARY.read_text(encoding="utf-8").lower()
    for word in ("nats", "PIT", "ELBO", "inducing inputs", "Pareto k", "R̂", "rootogram"):
        assert word.lower() in text
