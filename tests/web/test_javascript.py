"""The page's JavaScript: its pure modules do what they say, its types fit, it is formatted."""

import shutil
import subprocess
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
