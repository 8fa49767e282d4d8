"""Hostile model files: mutations of valid ones, and files made to exhaust or to deceive a reader.

Run as a program (folder, first seed, number of mutations) it loads them all under a limit on
memory and prints what happened as JSON; test_hostile_files.py runs a few, campaign.py many.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gp4c
from gp4c.exceptions import ModelFileError
from gp4c.files import persistence
from problems import visits_panel

#: address space of the reader beyond what it has when it begins; most seconds of processor time
#: for one file
ROOM, PATIENCE = 400_000_000, 10.0
NASTY: list[Any] = [
    None, True, False, 0, -1, 1, 2**53, 10**30, -(10**30), 0.5, -0.0, 1e308, 1e-308, "", "nan",
    "GP4C", "__class__", "os.system", "\ud800", "\x00", "x" * 10_000, "</script>", [], {}, [[]],
    [0] * 1000, {"float": "inf"}, {"float": "nan"}, {"float": "Infinity"}, {"float": []},
    {"tuple": []}, {"tuple": 3}, {"dict": []}, {"dict": [[1, 2]]}, {"dict": [["a"]]},
    {"dict": {"a": 1}}, {"array": "<f8", "shape": [0], "values": []},
    {"array": "<f8", "shape": [10**15, 10**15], "values": [1.0]},
    {"array": "<f8", "shape": [-1], "values": [1.0]},
    {"array": "<f8", "shape": [1, True], "values": [1.0]},
    {"array": "|V999999999", "shape": [1], "values": ["a"]},
    {"array": "<U999999999", "shape": [2], "values": ["a", "b"]},
    {"array": "|S999999999", "shape": [1], "values": ["a"]},
    {"array": "O", "shape": [1], "values": [None]}, {"array": "f8,f8", "shape": [1], "values": [1]},
    {"array": "object", "shape": [1], "values": [{"array": "object", "shape": [0], "values": []}]},
    {"array": ["<f8"], "shape": [1], "values": [1.0]},
    {"array": "<i8", "shape": [1], "values": [2**70]},
    {"class": "Posterior", "fields": {}}, {"class": "Posterior", "fields": []},
    {"class": "subprocess.Popen", "fields": {"args": "touch owned"}},
    {"class": "Bound", "fields": {"counts": 1, "__init__": 2}}, {"class": {}, "fields": {}},
]  # fmt: skip


def models() -> dict[str, Any]:
    """Small fitted models of every kind of state."""
    panel = visits_panel(61, 7, 3, level=3.0, window=(0.0, 24.0), frailty=1.0)
    frame = panel.to_frame()
    frame["arm"] = ["ab"[int(k) % 2] for k in panel.subject_index]
    panel = gp4c.PanelCounts.from_frame(frame)
    base = {"n_inducing": 4, "tol": 1e-2, "count_term": "lemma2", "hyper": "optimize"}
    return {
        "gp4c": gp4c.GP4C(effect=None, **base).fit(panel),
        "covariates": gp4c.GP4C(effect="gamma", formula="arm", n_inducing=4).fit(panel),
        "npmle": gp4c.NPMLE(effect="gamma").fit(panel).bootstrap(3, random_state=1),
        "local-em": gp4c.LocalEM(bandwidth=4.0).fit(panel).bootstrap(2, random_state=1),
        "constant": gp4c.HomogeneousPoisson(effect="gamma").fit(panel),
    }


# -- mutations -------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values inside a document."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def mutate_value(document: dict[str, Any], rng: random.Random) -> None:
    """Replace, delete, repeat, rename or move one value somewhere inside."""
    *path, last = rng.choice(list(places(document)))
    holder: Any = document
    for key in path:
        holder = holder[key]
    how = rng.choice(["replace", "replace", "delete", "repeat", "rename", "swap", "nudge"])
    if how == "delete":
        del holder[last]
    elif how == "repeat" and isinstance(holder, list):
        holder.insert(last, holder[last])
    elif how == "rename" and isinstance(holder, dict):
        holder[rng.choice(["class", "array", "dict", "x", "__dict__"])] = holder.pop(last)
    elif how == "swap" and isinstance(holder, list):
        holder[last], holder[-1] = holder[-1], holder[last]
    elif how == "nudge" and isinstance(holder[last], float):
        holder[last] *= 1 + 1e-12
    else:
        holder[last] = copy.deepcopy(rng.choice(NASTY))


def mutate_bytes(text: bytes, rng: random.Random) -> bytes:
    """Cut, flip, insert or repeat bytes, or change what numbers look like."""
    place, how = rng.randrange(len(text)), rng.randrange(7)
    piece = text[place : place + rng.randrange(1, 200)]
    if how == 0:
        return text[:place]
    if how == 1:
        return text[:place] + bytes([text[place] ^ (1 << rng.randrange(8))]) + text[place + 1 :]
    if how == 2:
        return text[:place] + rng.randbytes(rng.randrange(1, 20)) + text[place:]
    if how == 3:
        return text[:place] + piece + text[place:]
    if how == 4:
        return text[:place] + text[place + len(piece) :]
    words = [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"9" * 5000,
        b'"',
        b"[" * 3000,
        b"{}",
        b"\\",
    ]
    if how == 5:
        return text[:place] + rng.choice(words) + text[place:]
    number = rng.choice(text.split(b", "))
    return text.replace(number, rng.choice(words), 1)


def signed(document: dict[str, Any]) -> bytes:
    """The document with a check sum that fits: the work of an attacker, not of an accident."""
    body = {key: document.get(key) for key in ("class", "parameters", "state")}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    document["sha256"] = persistence.hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(document).encode()


# -- files made by hand ----------------------------------------------------------------------------


def crafted(valid: dict[str, Any]) -> dict[str, Callable[[], bytes]]:
    """Files that aim at a reader's memory, stack or trust; made when they are needed."""

    def state(name: str, value: Any) -> bytes:
        document = copy.deepcopy(valid)
        pairs = document["state"]["dict"]
        document["state"]["dict"] = [pair for pair in pairs if pair[0] != name] + [[name, value]]
        return signed(document)

    def nested(n: int, left: str, right: str) -> bytes:
        return state("objective_", 1.5).replace(b"1.5", (left * n + "1" + right * n).encode())

    def zipped() -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("fit.json", b"0" * 10_000_000)
        return buffer.getvalue()

    def array(kind: str, length: int) -> dict[str, Any]:
        return {"array": kind, "shape": [length], "values": ["a"]}

    def many(item: bytes, n: int = 10**7) -> bytes:
        return b'{"format": "gp4c-model", "version": 2, "a": [' + (item + b",") * n + b"0]}"

    text = json.dumps(valid)
    return {
        "deep lists": lambda: nested(100_000, "[", "]"),
        "deep tuples": lambda: nested(300, '{"tuple": [', "]}"),
        "deep dictionaries": lambda: nested(5000, '{"dict": [["a", ', "]]}"),
        "many lists": lambda: many(b"[]"),
        "many objects": lambda: many(b"{}"),
        "many texts": lambda: many(b'""'),
        "many numbers": lambda: many(b"1e9"),
        "many keys": lambda: b"{" + b",".join(b'"%d":0' % k for k in range(10**6)) + b"}",
        "a long number": lambda: many(b"9" * 50_000_000, 1),
        "a long fraction": lambda: many(b"0." + b"9" * 50_000_000, 1),
        "a long text": lambda: many(b'"' + "€".encode() * 20_000_000 + b'"', 1),
        "escapes": lambda: many(b'"' + b"\\ud83d\\ude00" * 5_000_000 + b'"', 1),
        "blanks": lambda: b" " * 50_000_000 + b"{}",
        "a huge shape": lambda: state("history_", array("<f8", 10**9)),
        "wide texts": lambda: state("subjects_", array("<U1000000000", 1)),
        "void bytes": lambda: state("history_", array("|V1000000000", 1)),
        "a method replaced": lambda: state("fit", "gone"),
        "a private attribute": lambda: state("_bound_with", "gone"),
        "another class": lambda: state("__class__", "Popen"),
        "twice the same key": lambda: text.replace('"format"', '"version": 2, "format"').encode(),
        "UTF-16": lambda: text.encode("utf-16"),
        "a byte order mark": lambda: b"\xef\xbb\xbf" + text.encode(),
        "compressed": lambda: gzip.compress(b"0" * 10_000_000),
        "zipped": zipped,
        "pickled": lambda: b"cos\nsystem\n(S'touch owned'\ntR.",
        "empty": lambda: b"",
    }


# -- the reader ------------------------------------------------------------------------------------


def attempt(content: bytes, place: Path, original: bytes | None) -> str:
    """Load a file; the outcome in a word, or an AssertionError if it is none of those promised."""
    path = place / "file.json"
    path.write_bytes(content)
    began = time.process_time()
    try:
        model = gp4c.load_model(path)
    except ModelFileError as error:
        message = str(error)
        assert "\n" not in message, message
        assert len(message) < 600 + len(str(path)), message
        outcome = "refused"
    else:
        model.save(place / "again.json")
        outcome = "loaded"
        if original is not None:
            assert (place / "again.json").read_bytes() == original, "loaded as another model"
            outcome = "equal"
    assert time.process_time() - began < PATIENCE
    return outcome


def limit_memory() -> None:
    import resource

    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, resource.RLIM_INFINITY))


def run(place: Path, seed: int, number: int) -> dict[str, Any]:
    """Load `number` mutations, then the crafted files, under a limit on memory."""
    texts = {}
    for name, model in models().items():
        model.save(place / "valid.json")
        texts[name] = (place / "valid.json").read_bytes()
        gp4c.load_model(place / "valid.json")
    limit_memory()
    rng, outcomes = random.Random(seed), Counter()
    for k in range(number):
        text = texts[rng.choice(sorted(texts))]
        kind = ("bytes", "values", "signed values")[k % 3]
        if kind == "bytes":
            content = mutate_bytes(text, rng)
        else:
            document = json.loads(text)
            for _ in range(rng.choice([1, 1, 1, 3])):
                mutate_value(document, rng)
            content = json.dumps(document).encode() if kind == "values" else signed(document)
        found = attempt(content, place, None if kind == "signed values" else text)
        outcomes[f"{kind}: {found}"] += 1
    for name, make in crafted(json.loads(texts["gp4c"])).items():
        found = attempt(make(), place, texts["gp4c"])
        assert found == "refused", name
        outcomes["crafted: refused"] += 1
    return {"files": sum(outcomes.values()), **dict(sorted(outcomes.items()))}


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
