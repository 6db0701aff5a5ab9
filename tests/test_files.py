"""Files are whole or not there."""

import json

import pytest

from data.files import write_json


def test_json_holds_plain_data_and_null_for_what_is_not_a_number(tmp_path):
    path = tmp_path / "new" / "a.json"
    write_json({"a": [1.5, float("nan"), (float("inf"), "é")], "b": None, "c": 2}, path)
    assert json.loads(path.read_text()) == {"a": [1.5, None, [None, "é"]], "b": None, "c": 2}
    with pytest.raises(TypeError):
        write_json({"a": object()}, path)
    assert json.loads(path.read_text())["c"] == 2
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]
