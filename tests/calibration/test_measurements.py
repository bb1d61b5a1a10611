import json
import threading

import pytest

from edgespec.calibration import Measurements, fingerprint

SETTINGS = {"threads": 4, "flash": True, "library": "1.0"}


def test_what_was_put_is_there_next_time(tmp_path):
    Measurements("m", SETTINGS, tmp_path).put("exact_rows", [1, 2])
    assert Measurements("m", SETTINGS, tmp_path).get("exact_rows") == [1, 2]
    assert Measurements("m", dict(reversed(SETTINGS.items())), tmp_path).get("exact_rows") == [1, 2]


@pytest.mark.parametrize("other", [("n", SETTINGS), ("m", SETTINGS | {"threads": 8})])
def test_another_model_or_setting_knows_nothing_of_it(tmp_path, other):
    Measurements("m", SETTINGS, tmp_path).put("x", 1)
    assert Measurements(*other, tmp_path).get("x") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b'"text"', b'{"key": 1}', b'{"key": {}, "values": {"x": 9}}'],
)
def test_a_damaged_or_foreign_file_reads_as_empty_and_is_replaced(tmp_path, content):
    m = Measurements("m", SETTINGS, tmp_path)
    m.path.write_bytes(content)
    again = Measurements("m", SETTINGS, tmp_path)
    assert again.get("x") is None
    again.put("x", 2)
    assert Measurements("m", SETTINGS, tmp_path).get("x") == 2


@pytest.mark.parametrize("values", [[], "x", None, 3])
def test_values_of_the_wrong_kind_read_as_empty(tmp_path, values):
    m = Measurements("m", SETTINGS, tmp_path)
    m.path.write_text(json.dumps({"key": m.key, "values": values}))
    assert Measurements("m", SETTINGS, tmp_path).get("x") is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    m = Measurements("m", SETTINGS, blocked)
    m.put("x", 1)
    assert m.get("x") == 1
    assert blocked.read_text() == "not a directory"


def test_a_directory_in_place_of_the_file_is_no_error(tmp_path):
    m = Measurements("m", SETTINGS, tmp_path)
    m.path.mkdir()
    again = Measurements("m", SETTINGS, tmp_path)
    again.put("x", 1)
    assert again.get("x") == 1
    assert list(tmp_path.glob("*.tmp")) == []


def test_two_writers_keep_what_the_other_measured(tmp_path):
    one, two = Measurements("m", SETTINGS, tmp_path), Measurements("m", SETTINGS, tmp_path)
    one.put("a", 1)
    two.put("b", 2)
    last = Measurements("m", SETTINGS, tmp_path)
    assert (last.get("a"), last.get("b")) == (1, 2)


def test_many_writers_at_once_leave_one_whole_file(tmp_path):
    def write(n):
        for i in range(20):
            Measurements("m", SETTINGS, tmp_path).put("x", [n, i] * 50)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    value = Measurements("m", SETTINGS, tmp_path).get("x")
    assert value[1] == 19
    assert len(list(tmp_path.iterdir())) == 1, "no temporary files are left"


def test_a_fingerprint_tells_files_apart(tmp_path):
    size = 3 << 20
    a, b, c = (tmp_path / name for name in "abc")
    a.write_bytes(bytes(size))
    b.write_bytes(b"\1" + bytes(size - 1))
    c.write_bytes(bytes(size - 1) + b"\1")
    (tmp_path / "copy").write_bytes(bytes(size))
    assert len({fingerprint(p) for p in (a, b, c)}) == 3
    assert fingerprint(tmp_path / "copy") == fingerprint(a)
