"""Tables as CSV: numbers in full, and no text that a spreadsheet would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gp4c.reporting.csv_tables import to_csv
from gp4c.reporting.publication.table_writer import TableWriter

if TYPE_CHECKING:
    from gp4c.data.summaries.table import Table


class CsvWriter(TableWriter):
    """The numbers behind a table."""

    suffix = ".csv"

    def text(self, table: Table) -> str:
        """One row per number or group of numbers, as ``to_frame()`` has them."""
        return to_csv(table.to_frame())
