"""``python -m gp4c``: the command line, where the folder of commands is not on the path."""

from gp4c.cli import main

main()
