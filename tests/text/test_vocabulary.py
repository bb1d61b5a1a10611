import time

import pytest

from edgespec.errors import DraftError
from edgespec.text.table import TableVocabulary
from edgespec.text.vocabulary import compare


def vocabulary(size, *, change=None, bos=1, eos=2, add_bos=False):
    pieces = [b"t%d" % token for token in range(size)]
    if change is not None:
        pieces[change] = b"other"
    return TableVocabulary(pieces, bos=bos, eos=eos, add_bos=add_bos)


def refusal(target, draft):
    with pytest.raises(DraftError) as caught:
        compare(target, draft, "big.gguf", "small.gguf")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("big.gguf", "small.gguf", str(target.n_vocab), str(draft.n_vocab)):
        assert part in message
    return message


def test_padding_is_no_difference_and_the_smaller_size_is_shared():
    begin = time.perf_counter()
    assert compare(vocabulary(152_064), vocabulary(151_936), "a", "b") == 151_936
    assert compare(vocabulary(151_936), vocabulary(152_064), "a", "b") == 151_936
    assert time.perf_counter() - begin < 5


def test_sizes_beyond_padding_are_refused():
    assert "more than 128" in refusal(vocabulary(500), vocabulary(371))
    assert compare(vocabulary(500), vocabulary(372), "a", "b") == 372


def test_other_texts_are_refused_with_the_first_differing_id():
    message = refusal(vocabulary(500), vocabulary(500, change=77))
    assert "id 77" in message
    assert "other" in message


def test_the_first_five_ids_may_be_spelled_differently():
    assert compare(vocabulary(500), vocabulary(500, change=4), "a", "b") == 500
    refusal(vocabulary(500), vocabulary(500, change=5))


@pytest.mark.parametrize("other", [{"bos": 3}, {"eos": 3}, {"add_bos": True}, {"bos": None}])
def test_other_handling_of_begin_and_end_is_refused(other):
    assert "OS" in refusal(vocabulary(500), vocabulary(500, **other))


def test_another_kind_of_tokenizer_is_refused():
    draft = vocabulary(32_000, change=9)
    draft.kind = "spm"
    message = refusal(vocabulary(151_936), draft)
    assert "spm" in message
    assert "id 9" in message


def test_a_vocabulary_that_lists_nothing_is_asked_one_by_one():
    class OneByOne(TableVocabulary):
        texts = None

    pieces = [b"t%d" % token for token in range(300)]
    assert compare(OneByOne(pieces), TableVocabulary(pieces), "a", "b") == 300
