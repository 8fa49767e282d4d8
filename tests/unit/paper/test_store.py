"""Finished trials: found again, never mixed up, never half-written."""

import gzip
import json

import pytest

import gp4c
from gp4c.exceptions import ModelFileError
from gp4c.paper.store import (
    PackedStore,
    Store,
    Task,
    digest,
    pack,
    source_version,
    without_times,
)

TASK = Task.of("choices", set="A", draw=1, trial=3, seed=0)
RECORD = {"methods": {"GP3": {"mise": 0.1 + 0.2, "seconds": 1.5}}, "cpu_seconds": 2.0}


def test_a_record_comes_back_bit_for_bit(tmp_path):
    Store(tmp_path).write(TASK, RECORD)
    assert Store(tmp_path).read(TASK) == RECORD
    assert Store(tmp_path).found([TASK]) == {TASK: RECORD}


def test_the_order_of_settings_does_not_matter():
    assert Task.of("s", trial=1, seed=2) == Task.of("s", seed=2, trial=1)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"trial": 4}, {"draw": 2}, {"set": "B"}, {"extra": [1]}]
)
def test_other_settings_are_another_trial(tmp_path, change):
    store = Store(tmp_path)
    store.write(TASK, RECORD)
    other = Task.of("choices", **(TASK.settings | change))
    assert other.name != TASK.name
    assert store.read(other) is None


def test_a_file_under_the_wrong_name_is_not_trusted(tmp_path):
    store = Store(tmp_path)
    store.write(TASK, RECORD)
    other = Task.of("choices", **(TASK.settings | {"seed": 1}))
    (store.folder / f"{TASK.name}.json").rename(store.folder / f"{other.name}.json")
    assert store.read(other) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"record": {}}'])
def test_a_broken_file_counts_as_absent(tmp_path, content):
    store = Store(tmp_path)
    store.write(TASK, RECORD)
    (store.folder / f"{TASK.name}.json").write_text(content)
    assert store.read(TASK) is None


def test_versions_of_the_source_do_not_mix(tmp_path):
    Store(tmp_path, "old").write(TASK, RECORD)
    now = Store(tmp_path)
    assert now.read(TASK) is None
    assert now.other_versions() == {"old": 1}
    # nor when a file is copied into the folder of another version
    now.folder.mkdir()
    (now.folder / f"{TASK.name}.json").write_bytes(
        (tmp_path / "old" / f"{TASK.name}.json").read_bytes()
    )
    assert now.read(TASK) is None


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("inference/variational/estep.py", True),
        ("data/datasets/skin.csv", True),
        ("paper/studies/real.py", True),
        ("paper/exhibits/table1.py", False),
        ("cli/fit.py", False),
    ],
)
def test_the_version_follows_what_computes(tmp_path, monkeypatch, name, counts):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(gp4c, "__file__", str(tmp_path / "__init__.py"))
    compute = source_version.__wrapped__
    path.write_text("one")
    before = compute()
    path.write_text("two")
    assert (compute() != before) is counts


def test_times_are_no_part_of_the_digest():
    slower = json.loads(json.dumps(RECORD))
    slower["methods"]["GP3"]["seconds"] = 9.0
    slower["cpu_seconds"] = 9.0
    assert (
        without_times(slower) == without_times(RECORD) == {"methods": {"GP3": {"mise": 0.1 + 0.2}}}
    )
    assert digest({TASK: slower}) == digest({TASK: RECORD})
    slower["methods"]["GP3"]["mise"] = 0.3  # the last bit
    assert digest({TASK: slower}) != digest({TASK: RECORD})


def test_the_digest_does_not_depend_on_order():
    other = Task.of("split", trial=0)
    both = {TASK: RECORD, other: {"x": 1}}
    assert digest(both) == digest(dict(reversed(both.items())))


def test_names_are_readable():
    assert TASK.name.startswith("choices-A-1-003-")
    assert str(TASK) == "choices A 1 trial 3"
    assert Task.of("split", set="Skin A", ratio="2/3", trial=0).name.startswith(
        "split-SkinA-2of3-000-"
    )


def test_a_finished_run_in_one_file(tmp_path):
    other = Task.of("split", set="Skin A", ratio="2/3", trial=0)
    found = {TASK: RECORD, other: {"x": [1, 2.5]}}
    path, again = tmp_path / "trials.jsonl.gz", tmp_path / "again.jsonl.gz"
    pack(found, "abc", path)
    pack(dict(reversed(found.items())), "abc", again)
    assert path.read_bytes() == again.read_bytes()
    store = PackedStore(path)
    assert store.version == "abc"
    assert store.found([TASK, other]) == found
    assert store.read(Task.of("split", trial=9)) is None


@pytest.mark.parametrize(
    "content", [b"", b"not gzip", gzip.compress(b"{}\n", mtime=0), gzip.compress(b"x", mtime=0)]
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "trials.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"trials\.jsonl\.gz: not a file of trials"):
        PackedStore(path)
