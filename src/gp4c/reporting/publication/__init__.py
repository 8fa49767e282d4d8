"""Tables for publication: one writer per format, and which result fills which table."""

from gp4c.reporting.publication import csv_writer as csv_writer
from gp4c.reporting.publication import html_writer as html_writer
from gp4c.reporting.publication import latex_writer as latex_writer
from gp4c.reporting.publication import markdown_writer as markdown_writer
from gp4c.reporting.publication import word_writer as word_writer
from gp4c.reporting.publication.table_writer import WRITERS as WRITERS
from gp4c.reporting.publication.table_writer import table_files as table_files
from gp4c.reporting.publication.table_writer import writer_for as writer_for
