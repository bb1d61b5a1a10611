from hypothesis import given
from hypothesis import strategies as st

from edgespec.text.detokenizer import Detokenizer
from edgespec.text.table import TableVocabulary


def stream(pieces):
    vocabulary = TableVocabulary(pieces)
    detokenizer = Detokenizer(vocabulary)
    return [detokenizer.push(token) for token in range(len(pieces))], detokenizer.flush()


def test_a_character_split_over_tokens_appears_with_its_last_byte():
    assert stream([b"\xe6\xad", b"\xaa"]) == (["", "歪"], "")


def test_a_family_emoji_in_four_pieces():
    data = "👨‍👩‍👧".encode()
    texts, tail = stream([data[:3], data[3:7], data[7:12], data[12:]])
    assert "".join(texts) + tail == "👨‍👩‍👧"


def test_an_incomplete_tail_gives_one_replacement_character():
    assert stream([b"a", b"\xf0\x9f"]) == (["a", ""], "\ufffd")


def test_invalid_bytes_in_the_middle_do_not_swallow_what_follows():
    assert stream([b"a\xff", b"\xe6", b"b"]) == (["a\ufffd", "", "\ufffdb"], "")


def test_flush_leaves_a_clean_state():
    detokenizer = Detokenizer(TableVocabulary([b"\xe6", b"a"]))
    detokenizer.push(0)
    assert detokenizer.incomplete
    assert detokenizer.flush() == "\ufffd"
    assert detokenizer.push(1) == "a"
    assert detokenizer.flush() == ""


@given(st.lists(st.binary(max_size=6) | st.text(max_size=3).map(str.encode), max_size=20), st.data())
def test_any_bytes_cut_anywhere_equal_decoding_all_at_once(parts, data):
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    texts, tail = stream(pieces)
    assert "".join(texts) + tail == whole.decode(errors="replace")
