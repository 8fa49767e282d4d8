"""Hostile tables in every format: damaged ones, ones that lie, and ones made to exhaust a reader.

Run as a program (folder, seed, number of damaged files) it reads them all, each in a process of
its own under a limit on memory, and prints what happened as JSON. A file must be read or refused
in one short message, within seconds; hostile queries may neither write nor read elsewhere.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import resource
import sqlite3
import struct
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gp4c
from gp4c.exceptions import GP4CError
from table_files import WRITERS

#: bytes of address space and of memory, and seconds of processor time, that a file may take
ROOM, MEMORY, PATIENCE = 2_000_000_000, 1_000_000_000, 5.0
LONGEST = 1500
#: rows of the table in a good file; crafted files that hold all of them, whatever they claim
ROWS = 4
READABLE = {"minus one row.sav", "two milliard rows.sav", "two milliard columns.sav"}
SECRET = "subject,start,stop,count\nsecret,0,1,7\n"

BOMB = b" " * (1 << 20)


def bombed_book(parts: dict[str, bytes], bomb: str, size: int) -> bytes:
    """An archive with some parts, and one that unpacks to `size` bytes of nothing."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        with archive.open(bomb, "w") as file:
            for _ in range(size >> 20):
                file.write(BOMB)
    return target.getvalue()


def parts_of(book: bytes) -> dict[str, bytes]:
    """Files in an archive, unpacked."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes]) -> bytes:
    """An archive of files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return target.getvalue()


def overwritten(data: bytes, place: int, form: str, value: float) -> bytes:
    """The file with a number in its header replaced."""
    number = struct.pack(form, value)
    return data[:place] + number + data[place + len(number) :]


def sas_header(page: int, pages: int, header: int = 1024) -> bytes:
    """The header of a SAS data set, with the sizes that it claims, and nothing after it."""
    content = bytearray(header if header <= 1 << 16 else 1024)
    content[:32] = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
    content[32], content[35], content[37], content[39] = 0x22, 0x22, 0x01, ord("1")
    content[70] = 20  # UTF-8
    content[84:92] = b"SAS FILE"
    content[156:164] = b"DATA    "
    for place, size in ((196, header), (200, page), (204, pages)):
        content[place : place + 4] = struct.pack("<I", size)
    return bytes(content)


def endless_view(path: Path, view: str) -> None:
    """A database whose only table is a view without an end."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE VIEW visits AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
            + view
        )
    connection.close()


def crafted(good: dict[str, bytes]) -> dict[str, Callable[[], bytes]]:
    """Files that lie about what they hold or stand for far more, by name."""
    book, sheet = parts_of(good["xlsx"]), "xl/worksheets/sheet1.xml"
    rest = {name: content for name, content in book.items() if name != sheet}
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    entities = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 10))
    laughs = f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY e0 "ha">{entities}]><w>&e9;</w>'.encode()
    sav, dta, xpt = good["sav"], good["dta"], good["xpt"]
    lines = good["jsonl"].splitlines(keepends=True)
    return {
        "a sheet of 400 MB.xlsx": lambda: bombed_book(rest, sheet, 400 << 20),
        "shared texts of 400 MB.xlsx": lambda: bombed_book(book, "xl/sharedStrings.xml", 400 << 20),
        "a far corner.xlsx": lambda: packed(
            {**book, sheet: book[sheet].replace(b"</sheetData>", far)}
        ),
        "entities.xlsx": lambda: packed({**book, "xl/workbook.xml": laughs}),
        "entities in a sheet.xlsx": lambda: packed({**book, sheet: laughs}),
        "archive without a book.xlsx": lambda: packed({"xl/nothing": b""}),
        "absurd repeats.ods": lambda: packed(
            {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet",
             "content.xml": b'<table:table table:name="a"><table:table-row '
             b'table:number-rows-repeated="999999999"><table:table-cell '
             b'table:number-columns-repeated="999999999" office:value="1"/>'
             b"</table:table-row></table:table>"}
        ),
        "an old book of nothing.xls": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 5000,
        "pages of 4 GB.sas7bdat": lambda: sas_header(2**32 - 1, 1),
        "four milliard pages.sas7bdat": lambda: sas_header(4096, 2**32 - 1),
        "a header of 4 GB.sas7bdat": lambda: sas_header(4096, 1, 2**32 - 1),
        "no pages.sas7bdat": lambda: sas_header(0, 0),
        "zero pages of zeros.sas7bdat": lambda: sas_header(4096, 2) + bytes(8192),
        "two milliard rows.sav": lambda: overwritten(sav, 80, "<i", 2**31 - 1),
        "two milliard columns.sav": lambda: overwritten(sav, 68, "<i", 2**31 - 1),
        "minus one row.sav": lambda: overwritten(sav, 80, "<i", -1),
        "milliards of rows.dta": lambda: dta.replace(
            dta[dta.index(b"<N>") : dta.index(b"</N>")], b"<N>" + b"\xff" * 8, 1
        ),
        "65535 columns.dta": lambda: dta.replace(
            dta[dta.index(b"<K>") : dta.index(b"</K>")], b"<K>" + b"\xff" * 2, 1
        ),
        "9999 columns.xpt": lambda: xpt.replace(b"000000000400", b"000000999900", 1),
        "header alone.xpt": lambda: xpt[:240],
        "a footer of 2 GB.parquet": lambda: overwritten(
            good["parquet"], len(good["parquet"]) - 8, "<i", 2**31 - 1
        ),
        "a footer of 2 GB.feather": lambda: overwritten(
            good["feather"], len(good["feather"]) - 10, "<i", 2**31 - 1
        ),
        "deep lists.jsonl": lambda: b'{"a": ' + b"[" * 10**6 + b"]" * 10**6 + b"}\n",
        "deep objects.json": lambda: b"[" + b'{"a": ' * 10**6 + b"1" + b"}" * 10**6 + b"]",
        "a long number.jsonl": lambda: b'{"subject": ' + b"9" * 10**7 + b"}\n",
        "many keys.jsonl": lambda: b"".join(
            b'{"k%d": 1}\n' % k for k in range(3000)
        ),
        "a line that is none.jsonl": lambda: b"".join(lines) + b"\x00" * 10**6,
        "50 MB of brackets.json": lambda: b"[" * 50_000_000,
        "gzip of 2 GB.csv.gz": lambda: gzip.compress(BOMB * 64, mtime=0) * 32,
        "gzip of gzip.csv.gz": lambda: gzip.compress(gzip.compress(BOMB * 64, mtime=0), mtime=0),
        "a page of nothing.duckdb": lambda: bytes(8) + b"DUCK" + b"\xff" * 12_276,
        "a header alone.sqlite": lambda: b"SQLite format 3\0" + b"\xff" * 84,
    }  # fmt: skip


#: what a database may not be asked to do; {other} is a file that must not come to be
QUERIES = [
    "DROP TABLE visits",
    "SELECT 1; DROP TABLE visits",
    "SELECT * FROM visits; ATTACH '{other}' AS o",
    "WITH x AS (SELECT 1) DELETE FROM visits",
    "WITH x AS (DELETE FROM visits RETURNING *) SELECT * FROM x",
    "INSERT INTO visits SELECT * FROM visits",
    "REPLACE INTO visits SELECT * FROM visits",
    "UPDATE visits SET \"count\" = 9 RETURNING *",
    "/* */ ATTACH DATABASE '{other}' AS o",
    "ATTACH '{other}' (READ_ONLY FALSE)",
    "VACUUM INTO '{other}'",
    "PRAGMA journal_mode = WAL",
    "SELECT * FROM pragma_journal_mode('WAL')",
    "COPY visits TO '{other}'",
    "COPY (SELECT 1) TO '{other}' (FORMAT parquet)",
    "EXPORT DATABASE '{other}'",
    "SELECT writefile('{other}', 'x')",
    "SELECT load_extension('{secret}')",
    "SELECT readfile('{secret}')",
    "SELECT * FROM read_csv_auto('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{secret}')",
    "FROM '{secret}'",
    "FROM read_parquet('{secret}')",
    "SELECT * FROM sqlite_scan('{secret}', 'x')",
    "WITH s AS (SELECT * FROM '{secret}') SELECT * FROM s",
    "SELECT 1 --; \n; DROP TABLE visits",
    "SELECT ';' ; DROP TABLE visits",
    "CALL pragma_version()",
    "LOAD httpfs",
    "SET memory_limit = '1TB'",
    "SELECT set_config('enable_external_access', 'true')",
    "SELECT current_setting('x'), nextval('y')",
    "CREATE TEMP TABLE t AS SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM visits",
]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The file cut, or with bytes overwritten, repeated, inserted or left out."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        place, size = rng.randrange(max(len(data), 1)), rng.choice([1, 2, 4, 8, 64])
        junk = rng.choice([rng.randbytes(size), b"\xff" * size, bytes(size)])
        data = rng.choice(
            [data[:place], data[:place] + junk + data[place + size :], data[:place] + junk
             + data[place:], data[:place] + data[place + size :],
             data[: place + size] + data[place:]]
        )  # fmt: skip
    return data


def attempt(path: Path, query: str | None = None) -> tuple[str, str]:
    """Read a file in a process of its own: the outcome in a word, and what was said or read.

    An AssertionError if it is none of those promised.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _read_and_say(path, query, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status, used = os.wait4(child, 0)
    name = f"{path.name}{'' if query is None else f' ({query})'}"
    assert os.waitstatus_to_exitcode(status) == 0, (name, status, said[-2000:])
    outcome, _, message = said.partition("\n")
    assert len(message) <= LONGEST, (name, message)
    assert message.count("\n") < 8, (name, message)
    assert used.ru_utime + used.ru_stime < PATIENCE, (name, used.ru_utime + used.ru_stime)
    assert used.ru_maxrss * 1024 < MEMORY, (name, used.ru_maxrss)
    return outcome, message


def _read_and_say(path: Path, query: str | None, write: int) -> None:
    """The life of the process that reads."""
    said = "failed\n"
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries in C say what they like
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, resource.RLIM_INFINITY))
        limit = int(4 * PATIENCE)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        try:
            panel = gp4c.read_panel(path, **({} if query is None else {"query": query}))
            said = f"read\n{panel.n_intervals}"
        except GP4CError as error:
            said = f"refused\n{error}"
        code = 0
    except BaseException as error:
        said, code = f"{said}{type(error).__name__}: {error}", 1
    os.write(write, said.encode(errors="replace")[: 1 << 16])
    os._exit(code)


def asked(place: Path, good: dict[str, bytes]) -> Iterator[str]:
    """Outcomes of hostile queries on both kinds of database."""
    secret, other = place / "secret.csv", place / "other"
    secret.write_text(SECRET, encoding="utf-8")
    for suffix in ("db", "duckdb"):
        path = place / f"table.{suffix}"
        path.write_bytes(good[suffix])
        for query in QUERIES:
            filled = query.format(other=other, secret=secret, folder=place)
            outcome, message = attempt(path, filled)
            assert outcome == "refused", (suffix, query)
            assert "0,1,7" not in message, (suffix, query, message)
            assert not other.exists(), (suffix, query)
            assert path.read_bytes() == good[suffix], (suffix, query)
            yield f"queries, {suffix}: refused"
    left = {file.name for file in place.iterdir()} - {"secret.csv", "table.db", "table.duckdb"}
    assert not left, left


def run(place: Path, seed: int, number: int) -> dict[str, Any]:
    """Read `number` damaged files of every format in turn, the crafted ones, and ask queries."""
    good = {}
    for suffix, write in WRITERS.items():
        path = place / f"good.{suffix}"
        write(path)
        good[suffix] = path.read_bytes()
        assert gp4c.read_panel(path).n_intervals == ROWS, suffix  # in this process: all is loaded
        path.unlink()
    outcomes, slowest = Counter(asked(place, good)), 0.0
    for name, make in crafted(good).items():
        path = place / name.replace(" ", "-")
        path.write_bytes(make())
        found, message = attempt(path)
        whole = name in READABLE and message == str(ROWS)
        assert found == "refused" or whole, (name, found, message)
        outcomes[f"crafted: {found}"] += 1
        path.unlink()
    rng = random.Random(seed)
    for k in range(number):
        suffix = list(good)[k % len(good)]
        path = place / f"damaged.{suffix}"
        path.write_bytes(damaged(good[suffix], rng))
        began = time.monotonic()
        outcomes[f"damaged {suffix}: {attempt(path)[0]}"] += 1
        slowest = max(slowest, time.monotonic() - began)
        path.unlink()
    return {
        "files": sum(outcomes.values()), "slowest damaged file, seconds": round(slowest, 2),
        **dict(sorted(outcomes.items())),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
