"""Files are whole or not there."""

import json

import pytest

from common.files import check_writable, write_json


def test_json_holds_plain_data_and_null_for_what_is_not_a_number(tmp_path):
    path = tmp_path / "new" / "a.json"
    write_json({"a": [1.5, float("nan"), (float("inf"), "é")], "b": None, "c": 2}, path)
    assert json.loads(path.read_text()) == {"a": [1.5, None, [None, "é"]], "b": None, "c": 2}
    with pytest.raises(TypeError):
        write_json({"a": object()}, path)
    assert json.loads(path.read_text())["c"] == 2
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_whether_a_file_can_be_written_is_known_before(tmp_path):
    there = tmp_path / "new" / "a.html"
    check_writable(there)
    assert list(there.parent.iterdir()) == []
    there.write_text("before")
    check_writable(there)
    assert there.read_text() == "before"
    with pytest.raises(OSError, match=r"b\.html: cannot be written \("):
        check_writable(there / "b.html")  # below a file
