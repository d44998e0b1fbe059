"""Runs the programs of docs/http.md as they are on the page: each arms its rule, reports how much was
injected, fails if nothing was, and leaves no rule.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BINARY, ROOT, eventually, requires, run

# For each language on the page: the file into which its program goes, and the commands that build and run it.
LANGUAGES = {
    "go": ("slow.go", ["go", "build", "-o", "slow", "slow.go"], ["slow"]),
    "js": ("slow.mjs", [], ["node", "slow.mjs"]),
    "java": ("Slow.java", [], ["java", "Slow.java"]),
    "rust": ("slow.rs", ["rustc", "--edition", "2021", "-o", "slow", "slow.rs"], ["slow"]),
}
PAGE = ROOT / "docs/http.md"
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module", params=LANGUAGES)
def page(request, tmp_path_factory):
    """The command that runs the program of a page, built where it has to be."""
    name, build, command = LANGUAGES[request.param]
    path = f"{os.environ['PATH']}:/usr/local/go/bin"
    tool = [*build, *command][0]
    if shutil.which(tool, path=path) is None:
        pytest.skip(f"{tool} is missing")
    (text,) = re.findall(rf"```{request.param}\n// {re.escape(name)}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    home = tmp_path_factory.mktemp("page")
    (home / name).write_text(text)
    environment = {**os.environ, "PATH": path, "GO111MODULE": "off"}
    if build:
        subprocess.run(build, cwd=home, env=environment, check=True)
    return [str(home / word) if word in (name, "slow") else word for word in command]


@pytest.fixture
def daemon(page, serve, directory):
    """A daemon whose API is where the page says, and the environment variables that name it."""
    if page[0].endswith("slow"):
        daemon = serve("-d", "db=ram,size=16M")
        daemon.told = {"DASHPOT_API": f"unix:{daemon.api}"}
        return daemon
    (directory / "token").write_text(TOKEN)
    daemon = serve("-d", "db=ram,size=16M", "--api", "tcp:127.0.0.1:0", "--token-file", directory / "token")
    address = eventually(lambda: re.search(r"http://(127\.0\.0\.1:\d+)", daemon.output()))[1]
    daemon.told = {"DASHPOT_HTTP": f"http://{address}", "DASHPOT_API": f"tcp:{address}", "DASHPOT_TOKEN": TOKEN}
    return daemon


def left(daemon):
    return json.loads(run(BINARY, "list", "--json", env=daemon.told).stdout)


@requires("qemu-img")
def test_a_program_of_the_page_injects_and_clears(page, daemon):
    done = run(*page, "qemu-img", "bench", "-f", "raw", "-w", "-c", "10", "-d", "2", daemon.uri("db"), env=daemon.told)
    assert "injected: 10" in done.stdout and left(daemon) == []


@requires("qemu-img")
def test_a_program_of_the_page_fails_if_nothing_was_injected(page, daemon):
    done = run(*page, "qemu-img", "bench", "-f", "raw", "-c", "10", daemon.uri("db"), env=daemon.told, code=1)
    assert "nothing was injected" in done.stderr and "nothing matched" in done.stderr and left(daemon) == []


def test_a_program_of_the_page_fails_and_clears_if_its_command_fails(page, daemon):
    run(*page, "false", env=daemon.told, code=1)
    assert left(daemon) == []
