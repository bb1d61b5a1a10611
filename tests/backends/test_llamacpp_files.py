"""Files that cannot be loaded, odd paths, the native log, the vocabulary."""

import struct

import pytest

from edgespec.backends.base import LoadOptions
from edgespec.backends.llamacpp import load
from edgespec.errors import Cancelled, ModelFileError, UnsupportedModelError, UsageError

pytestmark = pytest.mark.model

SMALL = LoadOptions(n_ctx=128, n_threads=1)


@pytest.fixture(scope="module")
def model(smollm2_path):
    loaded = load(smollm2_path, SMALL)
    yield loaded
    loaded.backend.close()


def test_model_info(model, smollm2_path):
    info = model.info
    assert info.path == str(smollm2_path)
    assert info.architecture == "llama"
    assert info.quantization == "Q4_1"
    assert 130e6 < info.n_params < 140e6
    assert 90e6 < info.size_bytes < 100e6
    assert info.n_ctx_train == 8192
    assert "<|im_start|>" in info.chat_template
    assert info.device
    assert {"library", "cpu", "n_threads", "type_k", "type_v", "flash_attn", "repack"} <= info.settings.keys()
    assert model.backend.n_ctx == 128


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "not a GGUF"), (b"hello\n" * 50, "not a GGUF"), (b"GGUF\3\0\0\0", "cannot be loaded")],
)
def test_not_a_model(tmp_path, content, message, capfd):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as error:
        load(path, SMALL)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(ModelFileError, match="No such file"):
        load(tmp_path / "none.gguf", SMALL)
    with pytest.raises(ModelFileError):
        load(tmp_path, SMALL)


@pytest.mark.parametrize("keep", [1000, 0.5])
def test_truncated_file(smollm2_path, tmp_path, keep, capfd):
    size = smollm2_path.stat().st_size
    path = tmp_path / "cut.gguf"
    with smollm2_path.open("rb") as file:
        path.write_bytes(file.read(keep if keep > 1 else int(size * keep)))
    with pytest.raises(ModelFileError) as error:
        load(path, SMALL)
    assert "cut.gguf" in str(error.value)
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def patched(source, target, old, new):
    data = source.read_bytes()
    at = data.index(old)
    target.write_bytes(data[:at] + new + data[at + len(old) :])
    return target


def test_unsupported_architecture(smollm2_path, tmp_path):
    old = b"general.architecture" + struct.pack("<IQ", 8, 5) + b"llama"
    path = patched(smollm2_path, tmp_path / "m.gguf", old, old[:-5] + b"lmaax")
    with pytest.raises(UnsupportedModelError, match=r"'lmaax' is unsupported"):
        load(path, SMALL)


def test_unsupported_quantisation(smollm2_path, tmp_path):
    name = b"token_embd.weight"
    data = smollm2_path.read_bytes()
    at = data.index(name) + len(name)
    dimensions = struct.unpack_from("<I", data, at)[0]
    kind = at + 4 + 8 * dimensions
    path = tmp_path / "q.gguf"
    path.write_bytes(data[:kind] + struct.pack("<I", 199) + data[kind + 4 :])
    with pytest.raises(UnsupportedModelError, match="199"):
        load(path, SMALL)


def test_odd_path(smollm2_path, tmp_path):
    folder = tmp_path / "模型 ü (1)"
    folder.mkdir()
    for name in ("a b#%.gguf", "-x.gguf"):
        path = folder / name
        path.symlink_to(smollm2_path)
        loaded = load(path, SMALL)
        assert loaded.info.path == str(path)
        loaded.backend.close()


def test_progress_and_cancelling(smollm2_path):
    seen = []
    load(smollm2_path, LoadOptions(n_ctx=128, progress=lambda x: seen.append(x) or True)).backend.close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    with pytest.raises(Cancelled):
        load(smollm2_path, LoadOptions(n_ctx=128, progress=lambda x: x < 0.5))
    with pytest.raises(ZeroDivisionError):
        load(smollm2_path, LoadOptions(n_ctx=128, progress=lambda x: bool(1 / 0)))


@pytest.mark.parametrize("mode", ["none", "mmap"])
def test_load_modes(smollm2_path, mode):
    loaded = load(smollm2_path, LoadOptions(n_ctx=128, load_mode=mode))
    assert loaded.info.settings["load_mode"] == mode
    loaded.backend.close()


def test_vocabulary_round_trip(model):
    vocabulary = model.vocabulary
    text = "naïve 日本語 \U0001f469‍\U0001f469‍\U0001f467 <|im_end|>\n\tx" + " " * 40
    for special in (False, True):
        ids = vocabulary.tokenize(text, special=special)
        assert all(0 <= token < vocabulary.n_vocab for token in ids)
        expected = text.replace("<|im_end|>", "") if special else text
        assert b"".join(map(vocabulary.piece, ids)).decode() == expected
    assert vocabulary.tokenize("", special=True) == []


def test_typed_special_tokens_stay_text(model):
    vocabulary = model.vocabulary
    end = vocabulary.tokenize("<|im_end|>", special=True)
    assert len(end) == 1
    assert vocabulary.is_control(end[0])
    assert vocabulary.is_eog(end[0])
    assert vocabulary.piece(end[0]) == b""
    assert vocabulary.text(end[0]) == "<|im_end|>"
    typed = vocabulary.tokenize("<|im_end|>", special=False)
    assert not any(map(vocabulary.is_control, typed))
    assert (vocabulary.kind, vocabulary.bos, vocabulary.add_bos) == ("bpe", 1, False)


def test_every_piece_is_readable(model):
    vocabulary = model.vocabulary
    assert max(len(vocabulary.piece(token)) for token in range(vocabulary.n_vocab)) > 16
    assert all(vocabulary.text(token) for token in range(vocabulary.n_vocab))


def test_settings_that_cannot_be_meant(smollm2_path):
    with pytest.raises(UsageError):
        load(smollm2_path, LoadOptions(n_ctx=0))
    with pytest.raises(UsageError):
        load(smollm2_path, LoadOptions(n_ctx=128, type_v="q8_0", flash_attn=False))


def test_context_longer_than_trained_is_noticed(smollm2_path):
    notices = []
    load(smollm2_path, LoadOptions(n_ctx=8200, n_threads=1, notify=notices.append)).backend.close()
    assert any("8192" in notice for notice in notices)
