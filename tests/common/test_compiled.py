"""Loops are compiled once, by whichever process needs them first."""

import os
import subprocess
import sys

import pytest

from tests.runs import ROOT, python

TWICE = "from common.compiled import compiled\n@compiled\ndef twice(x):\n    return 2 * x\n"
COUNTED = """
from numba.core import event
from twice import twice
with event.install_recorder("numba:compile") as seen:
    assert twice(4) == 8
print(sum(each.is_start for _, each in seen.buffer))
"""
BESIDE = """
from common.compile_cache import _begun, compile_beside
from twice import twice
for _ in range(2):
    compile_beside(twice, "import sys, twice; twice.twice(int(sys.argv[1]))", "4")
    print([child.wait() for child in _begun.values()])
"""


@pytest.fixture
def found(tmp_path):
    """The environment in which Python finds the module `twice`, and where it keeps it compiled."""
    (tmp_path / "twice.py").write_text(TWICE)
    return {"PYTHONPATH": f"{ROOT}:{tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path / "kept")}


def test_of_processes_that_need_a_loop_at_once_one_compiles_it(found):
    command = [sys.executable, "-c", COUNTED]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | found) for _ in range(2)
    ]
    assert sorted(each.communicate()[0] for each in both) == [b"0\n", b"1\n"]


def test_a_forked_process_compiles_what_its_parent_has_not(found):
    code = """
import os
from twice import twice
child = os.fork()
if not child:
    os._exit(twice(4))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code, **found) == ("8\n", "", 0)


def test_another_process_compiles_what_is_not_on_the_disk(found):
    assert python(BESIDE, **found) == ("[0]\n[0]\n", "", 0)
    assert python(COUNTED, **found) == ("0\n", "", 0)
    assert python(BESIDE, **found) == ("[]\n[]\n", "", 0)


def test_where_nothing_can_be_kept_it_is_compiled_anew(tmp_path, found):
    """A file stands where the folder beside the source would be, and where the user's would."""
    for name in ("__pycache__", "home"):
        (tmp_path / name).write_text("")
    no_folder = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), str(tmp_path / "home"))
    found["NUMBA_CACHE_DIR"] = None
    code = "from twice import twice; print(twice(4))"
    assert python(code, cwd=tmp_path, **no_folder, **found) == ("8\n", "", 0)
    assert {path.name for path in tmp_path.iterdir()} == {"twice.py", "__pycache__", "home"}
