"""Prompts: the packaged suite, and files in several forms."""

import json
from collections import Counter

import pytest

from edgespec.bench.prompts import digest, in_turn, read, suite
from edgespec.errors import UsageError


def test_the_suite_has_six_categories_of_three_or_four():
    prompts = suite()
    counts = Counter(prompt.category for prompt in prompts)
    assert list(counts) == ["chat", "code", "edit", "summary", "extraction", "translation"]
    assert all(3 <= n <= 4 for n in counts.values())
    assert any(len(prompt.turns) > 1 for prompt in prompts)
    assert all(len(p.turns[0].split()) > 100 for p in prompts if p.category in ("edit", "summary"))


def test_json_lines_and_plain_lines(tmp_path):
    file = tmp_path / "mine.jsonl"
    lines = [
        json.dumps({"id": "a/1", "category": "chat", "turns": ["one", "two"]}),
        json.dumps({"prompt": "three"}),
        "",
        "  four [not JSON]  ",
    ]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    assert [(p.id, p.category, p.turns) for p in read(file)] == [
        ("a/1", "chat", ("one", "two")),
        ("2", "mine", ("three",)),
        ("4", "mine", ("four [not JSON]",)),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "has no prompts"),
        (b"{", "line 1 is not JSON"),
        (b'{"id": 1}', 'needs "turns"'),
        (b'{"turns": []}', 'needs "turns"'),
        (b'{"turns": [1]}', 'needs "turns"'),
        (b'{"prompt": null}', 'needs "turns"'),
        (b'{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}', "'a' twice"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 9, None),
        (b'{"a":' * 100_000, "not JSON"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path, content, told):
    file = tmp_path / "p"
    file.write_bytes(content)
    if told is None:
        assert read(file)[0].turns == ("[[[[[[[[[",)
        return
    with pytest.raises(UsageError, match=told) as error:
        read(file)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "none")


def test_categories_take_turns():
    order = [prompt.category for prompt in in_turn(suite())]
    assert len(set(order[:6])) == 6
    assert len(order) == len(suite())


def test_the_digest_depends_on_content_not_on_order():
    prompts = suite()
    assert digest(prompts) == digest(prompts[::-1]) != digest(prompts[1:])
