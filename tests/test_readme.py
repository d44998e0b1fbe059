"""Checks that the commands in the README and the pages work as they are, and that their output fits a
terminal of 80 columns."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import BINARY, HANG_LIMIT, ROOT, requires, run


def blocks(page, heading):
    """The shell commands below a heading, one string for each block."""
    section = (ROOT / page).read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


def typed(block):
    """The commands of a block: the text after each prompt, with continued lines, but without output."""
    lines, goes_on = [], False
    for line in block.splitlines():
        if line.startswith("$ ") or goes_on:
            lines.append(line.removeprefix("$ "))
            goes_on = line.endswith("\\")
    return "\n".join(lines)


def bash(script, directory):
    """Runs commands as typed, but with the test's own sockets. Stops at the first command that fails."""
    script = script.replace("/tmp/nbd.sock", f"{directory}/nbd.sock")
    # A user types so slowly that the daemon has started meanwhile; the test waits for the daemon instead.
    script = re.sub(r"^(dashpot serve .*&)$", r"\1\ndashpot status --wait 60s >/dev/null", script, flags=re.MULTILINE)
    bin_ = directory / "bin"
    bin_.mkdir(exist_ok=True)
    if not (bin_ / "dashpot").exists():
        (bin_ / "dashpot").symlink_to(BINARY)
    env = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(directory)}
    env.pop("DASHPOT_API", None)
    done = subprocess.run(
        ["bash", "-c", f"set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{script}\n"],
        capture_output=True, text=True, timeout=HANG_LIMIT, env=env, stdin=subprocess.DEVNULL,
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


@requires("nbdinfo")
@requires("qemu-img")
def test_sixty_seconds(directory):
    served, *rest, ci = map(typed, blocks("README.md", "Sixty seconds"))
    said = bash("\n".join([served, *rest]), directory)
    assert "1073741824" in said and "Run completed in" in said and "cleared rules" in said
    assert "Run completed in" in bash(ci, directory)


@pytest.mark.parametrize("page", ["README.md"])
def test_what_is_to_be_typed_fits_80_columns(page):
    text = (ROOT / page).read_text()
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) for line in block.splitlines()]
    assert lines and not [line for line in lines if len(line) > 80]


def test_the_program_is_installed_with_its_pages_and_completions(directory):
    """`make install` must install the program, which is already built, with its man pages and completions."""
    prefix = directory / "local"
    run("make", "-C", ROOT, "install", f"PREFIX={prefix}", env={"DASHPOT": BINARY})
    version = run(prefix / "bin" / "dashpot", "--version").stdout
    assert version == run(BINARY, "--version").stdout
    for place in ("share/man/man1/dashpot-inject.1", "share/bash-completion/completions/dashpot",
                  "share/zsh/site-functions/_dashpot", "share/fish/vendor_completions.d/dashpot.fish"):
        assert "dashpot" in pathlib.Path(prefix / place).read_text(), place


@pytest.mark.skipif(os.geteuid() != 0, reason="attach takes root")
@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="/dev/fuse is missing")
@requires("mkfs.ext4")
def test_a_block_device_and_a_file_system_on_it(directory):
    (commands,) = map(typed, blocks("README.md", "A block device, and a file system on it"))
    at = directory / "mnt"
    at.mkdir()
    commands = commands.replace("sudo ", "").replace("/mnt", str(at))
    said = bash(f"dashpot serve -d slow=ram,size=64M &\n{commands}", directory)
    assert len(re.findall(r"^/dev/loop\d+$", said, re.MULTILINE)) == 2
    assert not os.path.ismount(at)
