"""A section of a report as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from edgespec.cli.tables import columns
from edgespec.cli.terminal import one_line
from edgespec.doctor import Bar, Finding, Section

_INDENT = "  "
_LABEL = 13
_BLOCKS, _PLAIN = "█", "#"
_LEGEND = "= exact: the rows equal single rows bit for bit"


@dataclass(frozen=True, slots=True)
class Paper:
    """What is written on: cells a line, encoding, and whether it takes colour."""

    width: int = 80
    encoding: str = "utf-8"
    colour: bool = False

    @property
    def block(self) -> str:
        """What bars are made of."""
        try:
            _BLOCKS.encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return _PLAIN
        return _BLOCKS

    def styled(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def drawn(section: Section, paper: Paper) -> str:
    """Lines that fit, the last one empty."""
    lines = [paper.styled(section.title, "1"), *_facts(section, paper)]
    if section.chart:
        lines += _chart(section.chart, paper)
    if section.table is not None:
        rows = (section.table.header, *section.table.rows)
        table = columns(rows, right=range(1, len(section.table.header)))
        lines += [_INDENT + line for line in table.splitlines()]
    for finding in section.findings:
        lines += _finding(finding, paper)
    return "\n".join(lines) + "\n"


def _facts(section: Section, paper: Paper) -> Iterator[str]:
    for label, text in section.facts:
        first = f"{_INDENT}{label:<{_LABEL}}"
        yield from textwrap.wrap(
            one_line(text),
            paper.width,
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_on_hyphens=False,
        )


def _chart(bars: tuple[Bar, ...], paper: Paper) -> Iterator[str]:
    yield f"{_INDENT}  n        ms   V(n)/V(1)"
    room = max(paper.width - len(f"{_INDENT}  n        ms   V(n)/V(1)") - 3, 8)
    most = max(bar.ratio for bar in bars)
    for bar in bars:
        cells = max(round(room * bar.ratio / most), 1)
        mark = "=" if bar.exact else " "
        figures = f"{_INDENT}{bar.rows:>3} {mark} {bar.seconds * 1e3:>7.1f} {bar.ratio:>11.2f}"
        yield f"{figures}  {paper.styled(paper.block * cells, '32' if bar.exact else '33')}"
    yield _INDENT + _LEGEND


def _finding(finding: Finding, paper: Paper) -> Iterator[str]:
    mark = f"{_INDENT}! "
    lines = textwrap.wrap(
        one_line(finding.text), paper.width, initial_indent=mark, subsequent_indent=" " * len(mark)
    )
    yield from (paper.styled(line, "33") for line in lines)
    # a command is for copying: it is not cut into lines
    for fix in filter(None, (finding.fix, *finding.others)):
        yield f"{' ' * len(mark)}> {one_line(fix)}"
