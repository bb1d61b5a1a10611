"""A folder's tokenizer.json says of tokens what llama.cpp says of the same vocabulary in a GGUF file."""

import json

import pytest

from edgespec.backends.tokenizer_json import TokenizerJson, chat_template
from edgespec.backends.vocabulary import read_vocabulary
from edgespec.convert.tokenizer import tokenizer_config, tokenizer_json, words
from edgespec.convert.weights import Weights
from edgespec.errors import BackendError, ModelFileError
from edgespec.text.vocabulary import compare

pytestmark = pytest.mark.model
TEXTS = (
    "def f(x):\n    return x + 1\n\n\n# 12345 don't  I'LL\t\r\n",
    "Über naïve 日本語 テキスト 👩‍👩‍👧 <|im_end|>\n<|im_start|>system\nhi",
    "   leading, trailing   ",
    "",
)


@pytest.fixture(scope="module")
def folder(smollm2_path, tmp_path_factory):
    made, weights = tmp_path_factory.mktemp("folder"), Weights(smollm2_path)
    found = words(weights)
    tokenizer_json(weights, found).save(str(made / "tokenizer.json"))
    (made / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(weights, found)))
    return made


@pytest.fixture(scope="module")
def pair(smollm2_path, folder):
    original, _ = read_vocabulary(smollm2_path)
    return original, TokenizerJson(folder, original.n_vocab)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_the_same(pair, text, special):
    original, ours = pair
    assert ours.tokenize(text, special=special) == original.tokenize(text, special=special)


def test_a_folders_vocabulary_is_read_without_its_model(folder, pair):
    vocabulary, _ = read_vocabulary(folder)
    assert vocabulary.n_vocab == pair[0].n_vocab
    assert vocabulary.tokenize(TEXTS[0], special=False) == pair[0].tokenize(TEXTS[0], special=False)


def test_every_token_is_the_same(pair):
    original, ours = pair
    for ask in ("piece", "text", "is_eog", "is_control"):
        found = [i for i in range(original.n_vocab) if getattr(ours, ask)(i) != getattr(original, ask)(i)]
        assert not found, f"{ask} of {found[:5]}"
    assert compare(original, ours, "a", "b") == original.n_vocab


def test_padding_and_what_is_outside(folder, pair):
    ours = TokenizerJson(folder, pair[0].n_vocab + 8)
    assert (ours.piece(49155), ours.text(49155), ours.is_control(49155)) == (b"", "[PAD49155]", False)
    for call in (ours.piece, ours.text):
        with pytest.raises(BackendError, match="outside"):
            call(49160)


def test_characters_split_over_tokens(pair):
    tokens = pair[1].tokenize("👩‍👩‍👧", special=False)
    assert len(tokens) > 3
    assert b"".join(map(pair[1].piece, tokens)).decode() == "👩‍👩‍👧"


def test_the_template_is_found_where_folders_keep_it(tmp_path):
    assert chat_template(tmp_path) is None
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert chat_template(tmp_path) == "d"
    (tmp_path / "chat_template.jinja").write_text("own")
    assert chat_template(tmp_path) == "own"


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_folder_without_a_tokenizer(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelFileError, match=r"tokenizer\.json") as raised:
        TokenizerJson(tmp_path, 10)
    assert "\n" not in str(raised.value)
