"""Checks that the commands in the README and the pages work as they are, and that their output fits a
terminal of 80 columns."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, open_to_all, requires, run


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def typed(block):
    """The commands of a block: the text after each prompt, with continued lines, but without output."""
    lines, goes_on = [], False
    for line in block.splitlines():
        if line.startswith("$ ") or goes_on:
            lines.append(line.removeprefix("$ "))
            goes_on = line.endswith("\\")
    return "\n".join(lines)


def bash(script, directory, **more):
    """Runs commands as typed, but with the test's own sockets. Stops at the first command that fails."""
    script = script.replace("/tmp/nbd.sock", f"{directory}/nbd.sock").replace("9464", str(free_port()))
    # A user types so slowly that the daemon has started meanwhile; the test waits for the daemon instead.
    script = re.sub(
        r"^(dashpot serve .*&)( *#.*)?$", r"\1\ndashpot status --wait 60s >/dev/null", script, flags=re.MULTILINE
    )
    bin_ = directory / "bin"
    bin_.mkdir(exist_ok=True)
    if not (bin_ / "dashpot").exists():
        (bin_ / "dashpot").symlink_to(BINARY)
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(directory), **more}
    env.pop("DASHPOT_API", None)
    done = subprocess.run(
        ["bash", "-c", f"set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{script}\n"],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        env=env,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_first_command(directory):
    first = re.findall(r"^```sh\n(dashpot run .*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[0]
    assert first.count("/tmp") == 2
    reported = first.replace("/tmp", str(directory)).replace(" -- ", f" --report {directory}/out -- ", 1)
    bash(reported, directory)
    (rule,) = json.loads((directory / "out/summary.json").read_text())["rules"]
    assert rule["held"] == 1


def as_typed_in_order(directory):
    """All that a user of the README types after its prompts, from the top down, without what this host lacks."""
    at = directory / "mnt"
    at.mkdir()
    page = (ROOT / "README.md").read_text()
    all_blocks = map(typed, re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    can = can_make_devices()
    kept = [block for block in all_blocks if can or "sudo " not in block]
    return (
        "\n".join(kept)
        .replace("sudo ", "")
        .replace("/mnt", str(at))
        .replace("/tmp/wal", f"{directory}/wal")
        .replace("path:/tmp ", f"path:{directory} ")
    )


def can_make_devices():
    return os.geteuid() == 0 and os.path.exists("/dev/fuse") and shutil.which("mkfs.ext4") is not None


@requires("nbdinfo")
@requires("qemu-img")
@requires("curl")
def test_the_blocks_run_in_order_and_no_report_is_empty(directory):
    said = bash(f"cd {ROOT}\n{as_typed_in_order(directory)}", directory)
    assert "1073741824" in said and said.count("Run completed in") == 2 and "cleared rules" in said
    assert said.count("stopped process") == said.count("\nAPI  "), said
    # Each report has I/Os to show.
    between = said.split("Run completed in")[1].split("stopped process")[0]
    assert sum(int(n) for n in re.findall(r"^ +\d+ -> \d+ +: (\d+)", between, re.MULTILINE)) > 100, between
    assert re.search(r"held \d+ of \d+|achieved", between), between
    assert re.search(r"^lost [1-9]\d* of [1-9]", said, re.MULTILINE), said
    assert re.search(r"^dashpot_\w*in_flight\w*{", said, re.MULTILINE), said
    throttled = said[said.rindex("\nAPI  ") :]
    assert re.search(r"^ *\d+ +\d{8,} +[OQSC]", throttled, re.MULTILINE), throttled
    if can_make_devices():
        assert len(re.findall(r"^/dev/loop\d+$", said, re.MULTILINE)) == 2
        assert not os.path.ismount(directory / "mnt")


@pytest.mark.parametrize("page", ["README.md"])
def test_what_is_to_be_typed_fits_80_columns(page):
    text = (ROOT / page).read_text()
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert lines and not [line for line in lines if len(line) > 80]


def test_the_program_is_installed_with_its_pages_and_completions(directory):
    """`make install` must install the program, which is already built, with its man pages and completions."""
    prefix = directory / "local"
    run("make", "-C", ROOT, "install", f"PREFIX={prefix}", env={"DASHPOT": BINARY})
    version = run(prefix / "bin" / "dashpot", "--version").stdout
    assert version == run(BINARY, "--version").stdout
    for place in (
        "share/man/man1/dashpot-inject.1",
        "share/bash-completion/completions/dashpot",
        "share/zsh/site-functions/_dashpot",
        "share/fish/vendor_completions.d/dashpot.fish",
    ):
        assert "dashpot" in pathlib.Path(prefix / place).read_text(), place


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_installation_that_cannot_end_well_does_not_begin(directory):
    """For a user who may not write below PREFIX, `make install` must fail before it builds."""
    open_to_all(directory)
    (directory / "locked").mkdir(mode=0o755)
    nobody = ["setpriv", "--reuid=65534", "--clear-groups"]
    refused = run(
        *nobody, ROOT / "scripts/install", env={"PREFIX": f"{directory}/locked/new", "PATH": "/usr/bin:/bin"}, code=1
    )
    assert f"may not write {directory}/locked/new/bin" in refused.stderr and refused.stdout == ""
    assert "make install PREFIX=~/.local\n" in refused.stderr
    # Without quotes, not every shell expands the tilde.
    home = {"HOME": str(directory), "PREFIX": "~/.local", "DASHPOT": BINARY}
    said = run(ROOT / "scripts/install", env=home).stdout
    assert f"sudo ln -s {directory}/.local/bin/dashpot /usr/local/bin/dashpot" in said, said
    assert f"export PATH={directory}/.local/bin:$PATH" in said, said


@pytest.mark.parametrize("words", ["--help", "amplification 1 1", "crash nonesuch", "inject c1t1d0 -D 10"])
def test_a_locale_without_utf8_gets_ascii(words, directory):
    said = bash(f"dashpot serve >/dev/null &\ndashpot {words} 2>&1 || true", directory, LC_ALL="C")
    assert said and said.isascii(), said
