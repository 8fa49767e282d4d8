"""The tables of docs/guide/scale.md: what was measured, and what more rows would cost.

The cost of a fit is that of reading and summing up, which grows with the rows, and that of the
iterations, which does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from readme_tables import RESULTS, figure, read

WORKERS = 100
BYTES_PER_ROW = 21
BYTES_PER_SUBJECT = 48
ROWS_PER_SUBJECT = 10
#: powers of ten
SIZES = (9, 10, 11)
FITS = ("plain", "gamma")


@dataclass(frozen=True)
class Cost:
    """Measured constants: seconds by the clock, and of processor time."""

    per_row: float
    cpu_per_row: float
    fit: float
    fit_with_frailty: float

    @classmethod
    def of(cls, sizes):
        """Per row between the two largest sizes; iterations where the sums of both are measured."""
        less, more = (size["sums"] for size in sizes[-2:])
        rows = sizes[-1]["rows"] - sizes[-2]["rows"]

        def slope(key):
            return (more[key] - less[key]) / rows

        def beyond(name):
            gaps = [size[name]["seconds"] - size["sums"]["seconds"] for size in sizes[:-1]]
            return max(gaps)

        return cls(slope("seconds"), slope("cpu_seconds"), beyond("plain"), beyond("gamma"))

    def alone(self, rows):
        """Seconds in one process on the cores of the measurement."""
        return self.per_row * rows + self.fit

    def shared(self, rows):
        """Seconds with workers that have a core each."""
        return self.cpu_per_row * rows / WORKERS + self.fit


def duration(seconds):
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"


def volume(n_bytes):
    """Gigabytes or terabytes, to two digits."""
    size, unit = (1e12, "TB") if n_bytes >= 1e12 else (1e9, "GB")
    return f"{float(f'{n_bytes / size:.2g}'):g} {unit}"


def sizes_found():
    return read(RESULTS / "scale.json")["sizes"]


def _table(head, rows):
    marks = ["---:"] * len(head)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, marks, *rows))


def sizes():
    """Seconds and memory by number of rows."""
    found = sizes_found()
    head = ("rows", "reading and summing up", "whole fit", "with gamma frailty",
            "peak of memory (with frailty)", "polars, read and group by (start, stop)")  # fmt: skip
    rows = [
        (
            f"{size['rows']:,}",
            *(f"{figure(size[name]['seconds'], 2)} s" for name in ("sums", *FITS)),
            "{:.1f} GB ({:.1f} GB)".format(*(size[name]["peak_bytes"] / 1e9 for name in FITS)),
            f"{figure(size['polars']['seconds'], 2)} s" if "polars" in size else "",
        )
        for size in found
    ]
    last = [size for size in found if "polars" in size][-1]
    beside = last["plain"]["seconds"] / last["polars"]["seconds"]
    frailty = last["gamma"]["seconds"] / last["plain"]["seconds"]
    return (
        f"{_table(head, rows)}\n\n"
        f"At {last['rows']:,} rows the whole fit takes {beside:.1f} times as long as polars takes "
        "to read the files and\ngroup them by (start, stop), and frailty takes "
        f"{frailty:.1f} times as long as no frailty."
    )


def cost():
    """What a fit costs beyond the rows that were measured."""
    found = sizes_found()
    known = Cost.of(found)
    rows = [
        (f"10{''.join('⁰¹²³⁴⁵⁶⁷⁸⁹'[int(digit)] for digit in str(power))}",
         volume(BYTES_PER_ROW * 10**power),
         duration(known.alone(10**power)),
         volume(BYTES_PER_SUBJECT * 10**power / ROWS_PER_SUBJECT),
         duration(known.shared(10**power)))
        for power in SIZES
    ]  # fmt: skip
    head = ("rows", "Parquet", f"one process on {read(RESULTS / 'scale.json')['cores']} cores",
            "its memory for subjects", f"{WORKERS} workers, one core each")  # fmt: skip
    parts = (
        f"    {known.per_row * 1e6:.2f} µs per row on two cores, {known.cpu_per_row * 1e6:.2f} µs "
        "of processor (reading, checking, summing up)",
        f"    + iterations of {known.fit:.1f} s in all ({known.fit_with_frailty:.1f} s with "
        "frailty), whatever the number of rows",
        f"    + {BYTES_PER_SUBJECT} bytes of memory per subject seen without a gap, in one process",
    )
    shown = "\n".join(parts)
    return (
        f"{shown}\n\n{_table(head, rows)}\n\n"
        f"The measured part of this table ends at {found[-1]['rows']:,} rows; the rest is the sum "
        "above."
    )
