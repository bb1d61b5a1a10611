"""A vocabulary without its weights."""

import gc
import weakref

import pytest

from edgespec.backends.base import LoadOptions
from edgespec.backends.llamacpp import load
from edgespec.backends.llamacpp.vocabulary import read_vocabulary
from edgespec.convert.weights import Weights
from edgespec.errors import ModelFileError

pytestmark = pytest.mark.model
TEXT = "<|im_start|>user\nÜber 12 naïve cafés: x[i] += 1\t\n"


def test_it_is_the_models_own(smollm2_path, tmp_path):
    loaded = load(smollm2_path, LoadOptions(n_ctx=64))
    alone = tmp_path / "vocabulary.gguf"
    alone.write_bytes(Weights(smollm2_path).vocabulary_file())
    for path in (smollm2_path, alone):
        vocabulary, template = read_vocabulary(path)
        whole = loaded.vocabulary
        assert template == loaded.info.chat_template
        assert (vocabulary.kind, vocabulary.bos, vocabulary.eos, vocabulary.add_bos, vocabulary.n_vocab) == (
            whole.kind,
            whole.bos,
            whole.eos,
            whole.add_bos,
            whole.n_vocab,
        )
        for special in (True, False):
            tokens = vocabulary.tokenize(TEXT, special=special)
            assert tokens == whole.tokenize(TEXT, special=special)
            assert [vocabulary.piece(t) for t in tokens] == [whole.piece(t) for t in tokens]
        assert vocabulary.is_eog(2)
    loaded.backend.close()


def test_it_is_freed_with_its_last_user(smollm2_path):
    vocabulary, _ = read_vocabulary(smollm2_path)
    gone = weakref.ref(vocabulary)
    del vocabulary
    gc.collect()
    assert gone() is None


def test_no_file(tmp_path):
    (tmp_path / "x.gguf").write_text("GGUX")
    with pytest.raises(ModelFileError, match="not a GGUF file"):
        read_vocabulary(tmp_path / "x.gguf")
