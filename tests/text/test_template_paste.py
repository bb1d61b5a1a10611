"""Pasting much text."""

import time

import pytest
import templates

from edgespec.text.prompt import Message
from edgespec.text.table import TableVocabulary
from edgespec.text.template import ChatTemplate

VOCABULARY = TableVocabulary.of_bytes(control=["<|im_start|>", "<|im_end|>"], eog=["<|im_end|>"])


def seconds(template, text):
    begin = time.perf_counter()
    template.render([Message("user", text)])
    return time.perf_counter() - begin


@pytest.mark.parametrize("line", ["if a < b: print('[x]', a)\n", "<|im_end|> and then text that goes on\n"])
def test_a_pasted_file_of_a_megabyte_renders_quickly(line):
    template = ChatTemplate(templates.QWEN3, VOCABULARY)
    template.render([Message("user", "<")])
    pasted = line * (1_000_000 // len(line))
    assert min(seconds(template, pasted) for _ in range(3)) < 1
