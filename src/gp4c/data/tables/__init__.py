"""Reading: tables, files and streams as panels."""
