"""Code in colours that follow the theme."""

from __future__ import annotations

from pygments.token import Token  # type: ignore[import-untyped]
from textual.content import Content
from textual.highlight import HighlightTheme, highlight

_MOST = 30_000
"""Characters beyond which colours are not worth the time."""


class Colours(HighlightTheme):
    """Calm: no underlines, no backgrounds."""

    STYLES = {  # noqa: RUF012 - as the library declares it
        Token.Comment: "$dim italic",
        Token.Keyword: "$text-primary",
        Token.Keyword.Constant: "$text-warning",
        Token.Literal.Number: "$text-warning",
        Token.Literal.String: "$text-success",
        Token.Literal.String.Doc: "$dim italic",
        Token.Name.Attribute: "$text-warning",
        Token.Name.Builtin: "$text-accent",
        Token.Name.Class: "$text-accent",
        Token.Name.Decorator: "$text-accent",
        Token.Name.Function: "$text-accent",
        Token.Name.Tag: "$text-primary",
        Token.Operator.Word: "$text-primary",
        Token.Generic.Deleted: "$text-error",
        Token.Generic.Inserted: "$text-success",
        Token.Generic.Heading: "bold",
    }


def highlighted(code: str, language: str) -> list[Content]:
    """The lines of `code`, as many as there are, in the colours of a language that Pygments knows."""
    lines = code.split("\n")
    name = language.split()[0] if language.split() else ""
    if not name or len(code) > _MOST or "\t" in code:
        return [Content(line) for line in lines]
    coloured = highlight(code, language=name, theme=Colours).split("\n", allow_blank=True)
    coloured += [Content("")] * (len(lines) - len(coloured))  # it drops empty lines at the end
    same = [line.plain for line in coloured] == lines
    return coloured if same else [Content(line) for line in lines]
