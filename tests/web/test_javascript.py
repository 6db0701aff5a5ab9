"""The page's JavaScript: its pure modules do what they say, its types fit, it is formatted."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
MODULES = Path(__file__).parent / "modules"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node")


def run(*command, folder=WEB):
    """Runs a command; what it says if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools():
    """The folder of the tools that `web/package.json` names, brought by npm once."""
    named = (WEB / "package.json").read_bytes()
    folder = Path(tempfile.gettempdir()) / f"etude-node-{hashlib.sha256(named).hexdigest()[:12]}"
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_bytes(named)
        command = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            assert not os.environ.get("CI"), done.stderr
            pytest.skip("npm does not bring the tools")
        (folder / "done").touch()
    return folder / "node_modules"


def test_pure_modules_do_what_they_say():
    tests = [str(path) for path in sorted(MODULES.glob("*.test.mjs"))]
    told = run(NODE, "--test", "--test-reporter=tap", *tests)
    assert "# fail 0" in told
    assert f"# pass {told.count('# Subtest: ')}" in told


def test_types_fit(tools):
    run(NODE, str(tools / "typescript/bin/tsc"), "-p", str(WEB / "jsconfig.json"))


def test_it_is_formatted(tools):
    files = [*WEB.glob("static/*.js"), *WEB.glob("static/*.css"), *MODULES.glob("*.mjs")]
    prettier = str(tools / "prettier/bin/prettier.cjs")
    run(NODE, prettier, "--print-width", "100", "--check", *map(str, files))
