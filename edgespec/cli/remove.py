"""`edgespec rm`: delete a model from edgespec's own store."""

from __future__ import annotations

import click

from edgespec import hub
from edgespec.cli.options import verbose_option
from edgespec.cli.references import ModelReference
from edgespec.cli.stdout import put
from edgespec.cli.tables import size
from edgespec.cli.terminal import one_line


@click.command("rm", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("references", metavar="MODEL...", nargs=-1, required=True, type=ModelReference(on_disk=True))
@verbose_option
def rm(references: tuple[str, ...]) -> None:
    """Delete models from edgespec's store, all parts of each, and what is left of their downloads.

    What another program keeps is that program's to delete: then its command is told.
    """
    for reference in references:
        removed = hub.remove(reference)
        put(f"removed {one_line(removed.name)} ({size(removed.size)} freed)")
