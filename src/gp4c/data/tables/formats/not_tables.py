"""Files that hold no table gp4c can read, and what to do about them."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from gp4c.data.tables.formats.content import TableFile
from gp4c.data.tables.formats.excel import archive_names
from gp4c.data.tables.formats.file_format import Choice, FileFormat, LabelColumn
from gp4c.exceptions import PanelDataError


class NotATable(FileFormat):
    """A kind of file that is refused, with advice."""

    advice: ClassVar[str] = ""
    takes = ("sheet", "table", "query", "delimiter", "decimal", "encoding")
    holds_table = False

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> NoReturn:
        """Say what the file is and what helps."""
        raise PanelDataError(f"{file.shown} is {self.title}; {self.advice}")


class RData(NotATable):
    """What R saves."""

    title = "a file of R objects"
    advice = "in R, write the table with write.csv(x, 'visits.csv', row.names = FALSE)"
    extensions = (".rds", ".rda", ".rdata")
    magic = (b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n", b"X\n\0\0\0", b"A\n2\n", b"A\n3\n")


class WebPage(NotATable):
    """HTML, also where its name says Excel."""

    title = "a web page (HTML)"
    advice = "open it in a spreadsheet and save the table as .xlsx or CSV"
    extensions = (".html", ".htm")

    def recognises(self, file: TableFile) -> bool:
        """By its first tag."""
        start = file.head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
        return start.startswith((b"<!doctype html", b"<html", b"<table", b"<head"))


class Xml(NotATable):
    """XML of any kind, such as the workbooks of Excel 2003."""

    title = "an XML file"
    advice = "open it in a spreadsheet and save the table as .xlsx or CSV"
    extensions = (".xml",)
    magic = (b"<?xml", b"\xef\xbb\xbf<?xml")


class Pdf(NotATable):
    """A document for printing."""

    title = "a PDF document"
    advice = "the table it was printed from is needed, as .xlsx or CSV"
    extensions = (".pdf",)
    magic = (b"%PDF",)


class Archive(NotATable):
    """A zip archive that is no workbook: a Word document, packed files."""

    title = "a zip archive"
    advice = "unpack it and name the table inside"
    extensions = (".zip", ".docx")

    def recognises(self, file: TableFile) -> bool:
        """Not a workbook, whose names another kind of file knows."""
        if not file.head.startswith(b"PK"):
            return False
        names = archive_names(file.data)
        return not any(name.startswith("xl/") or name == "content.xml" for name in names)


class Packed(NotATable):
    """Files packed by programs other than gzip."""

    title = "a packed file"
    advice = "unpack it first (gp4c unpacks .gz itself)"
    extensions = (".7z", ".rar", ".bz2", ".xz", ".zst")
    magic = (b"7z\xbc\xaf\x27\x1c", b"Rar!", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")


class Picture(NotATable):
    """A photograph or scan."""

    title = "a picture"
    advice = "the numbers in it must be typed into a table first"
    extensions = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
    magic = (b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*")
