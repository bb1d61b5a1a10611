"""The command line: argv in, text out."""

from edgespec.cli.main import main

__all__ = ["main"]
