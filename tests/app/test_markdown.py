"""Markdown that streams: blocks that do not depend on how the text arrives, rows that fit."""

from __future__ import annotations

import pytest
from edgespec_tui.markdown.code import highlighted
from edgespec_tui.markdown.drawing import Drawing
from edgespec_tui.markdown.rows import parts
from edgespec_tui.markdown.splitter import CODE_LINES, Splitter, split
from edgespec_tui.text import visible
from hypothesis import given
from hypothesis import strategies as st

TEXT = """# Title
Some *soft*, **bold** and `code` text
on two lines.

- one
- two
  - nested

  more of two
1. first
2. second
   ```py
   x = 1

   y = 2
   ```

| a | b |
|---|---|
| 1 | `2` |

```python
def f():
    return "[/]"
```
> quoted

---
last line"""


def lines(text: str, width: int = 60) -> list[str]:
    return [
        row.first + row.body.plain
        for block in split(text)
        for part in parts(block)
        for row in part.laid(width)
    ]


FRAGMENTS = st.lists(st.sampled_from([*TEXT.split("\n"), "", "```", "  ```", "- ", "text"]), max_size=12)


@given(FRAGMENTS.map("\n".join), st.lists(st.integers(1, 9), min_size=1))
def test_blocks_do_not_depend_on_how_the_text_arrives(text, sizes):
    splitter, at, i = Splitter(), 0, 0
    frozen = []
    while at < len(text):
        size = sizes[i % len(sizes)]
        splitter.feed(text[at : at + size])
        splitter.tail()
        assert splitter.closed[: len(frozen)] == frozen
        frozen = list(splitter.closed)
        at, i = at + size, i + 1
    assert splitter.finish() == split(text)


def test_every_word_of_the_text_is_drawn():
    out = lines(TEXT)
    assert out[:1] == ["Title"]
    assert "Some soft, bold and code text on two lines." in out
    assert " • one" in out
    assert "    ◦ nested" in out
    assert " 2. second" in out
    assert "    x = 1" in out
    assert "a │ b" in out
    assert '    return "[/]"' in out
    assert "▎ quoted" in out
    assert out[-1] == "last line"


def test_a_long_fence_becomes_several_blocks_of_one_look():
    code = "\n".join(f"line {i}" for i in range(3 * CODE_LINES + 5))
    blocks = split(f"```\n{code}\n```\nafter")
    assert [block.kind for block in blocks] == ["code"] * 4 + ["prose"]
    assert [block.first for block in blocks[:4]] == [True, False, False, False]
    assert [block.last for block in blocks[:4]] == [False, False, False, True]
    assert "".join(block.source for block in blocks[:4]) == code + "\n"


@pytest.mark.parametrize("code", ["x = 1", "\nx = 1\n\n", "def f():\n    pass\n\n", "", "\n"])
def test_code_keeps_its_lines_and_gets_colours(code):
    out = highlighted(code, "python")
    assert [line.plain for line in out] == code.split("\n")
    assert any(line.spans for line in out) == bool(code.strip())


def test_text_that_looks_like_markup_stays_text():
    text = "x = a[i] [/some/path] [/ [@click=app.quit]x[/] <b>bold</b>"
    assert lines(text) == [text]


@pytest.mark.parametrize("width", [8, 20, 60])
def test_rows_fit_their_width(width):
    text = "| column one | a much longer column of text |\n|---|---|\n| 1 | 日本語のテキスト and more |"
    for row in Drawing(parts(split(text)[0])).rows(max(width, 14)):
        assert row.body.cell_length <= max(width, 14)


def test_characters_that_a_terminal_obeys_become_pictures():
    assert visible("a\x1b]52;c;QQ\x07b\r\nc\x9bd\te\u202ef") == "a␛]52;c;QQ␇b\nc\ufffdd\te\ufffdf"
