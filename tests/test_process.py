"""The program as a process: its reaction to signals, limits, and pipes without a reader."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
import wire
from conftest import BINARY, ROOT, eventually, requires, run
from wire import Wire

MIB = 1 << 20
PANIC = 101
SIGNALS = ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2"]


def number(name):
    return getattr(signal, f"SIG{name}")


def runs(pid):
    """Whether a process still runs. (A zombie does not: it has ended, and its parent has not asked for its status.)"""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# Limits.


@requires("prlimit")
def test_a_write_beyond_the_limit_of_a_files_size_is_refused(serve, directory):
    """A write beyond `ulimit -f` must fail, although the kernel's default is to end the process, with all its
    disks."""
    image = directory / "d.img"
    with open(image, "wb") as file:
        file.truncate(8 * MIB)
    limited = ("prlimit", f"--fsize={MIB}")
    daemon = serve("-d", f"d=file:{image}", "-d", "ram=ram,size=1M", under=limited)
    client, other = Wire(daemon.connect()), Wire(daemon.connect())
    client.go("d")
    other.go("ram")
    assert client.call(wire.CMD_WRITE, 2 * MIB, 4096, data=bytes(4096)) == wire.ENOSPC
    assert client.call(wire.CMD_WRITE, 0, 4096, data=bytes(4096)) == 0
    assert client.in_step() and other.in_step()


# Pipes without a reader.


@pytest.mark.parametrize(
    "words",
    [
        ["completions", "bash"],
        ["completions", "zsh"],
        ["--help"],
        ["--version"],
        ["doctor"],
        ["nonsense"],
        ["sim", ROOT / "labs/scenario1-openzfs.toml", "--for", "1s"],
        ["zinject"],
        ["list"],
        ["status", "--json"],
        ["run", "-d", "d=ram,size=1M", "--", "true"],
        ["run", "-d", "d=ram,size=1M", "--", "/missing"],
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
def test_nobody_reads(words, directory):
    for streams in (["stdout"], ["stdout", "stderr"]):
        reader, writer = os.pipe()
        os.close(reader)
        deaf = {stream: writer for stream in streams}
        done = subprocess.run(
            [BINARY, *map(str, words)],
            **{"stderr": subprocess.PIPE, **deaf},
            env={**os.environ, "DASHPOT_API": f"unix:{directory}/no.sock"},
        )
        os.close(writer)
        assert done.returncode != PANIC, words
        assert b"panicked" not in (done.stderr or b"")


# `run` and its command.


@pytest.fixture
def start(directory):
    """Starts `dashpot run` with a directory of its own for temporary files. Returns the process and the directory."""
    place = directory / "tmp"
    place.mkdir()
    started = []

    def start(*command, **options):
        process = subprocess.Popen(
            [BINARY, "run", "-d", "d=ram,size=1M", "--", *command],
            env={**os.environ, "TMPDIR": str(place)},
            **options,
        )
        started.append(process)
        return process, place

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_its_own_failures_are_not_taken_for_those_of_the_command():
    for words in (
        ["--no-such-option"],
        ["-d", "nonsense", "--", "true"],
        [],
        ["-d"],
        [
            "--",
        ],
    ):
        done = run(BINARY, "run", *words, code=125)
        assert "Usage" in done.stderr or "error" in done.stderr
    run(BINARY, "--api", "unix:/no", "run", "--no-such-option", code=125)
    run(BINARY, "run", "--help", code=0)
    run(BINARY, "serve", "--no-such-option", code=2)
    run(BINARY, "run", "-d", "d=ram,size=1M", "--", "true", env={"DASHPOT_API": "nonsense"})


def test_the_disks_of_a_command_are_reached_at_the_api_that_the_user_names(directory):
    disk = ["-d", "d=ram,size=1M", "--"]
    api = f"unix:{directory}/api.sock"
    status = ["sh", "-c", f"echo $DASHPOT_API; env -u DASHPOT_API {BINARY} --api {api} list"]
    for words in (["--api", api, "run"], ["run", "--api", api]):
        said = run(BINARY, *words, "-r", "-D 2ms", *disk, *status).stdout
        assert said.startswith(f"{api}\n") and "2ms" in said
    assert list(directory.iterdir()) == []
    taken = ["run", "--api", api, *disk, BINARY, "run", "--api", api, *disk, "true"]
    assert api.removeprefix("unix:") in run(BINARY, *taken, code=125).stderr
    inherits = ["run", *disk, BINARY, "run", *disk, "sh", "-c", "echo $DASHPOT_API"]
    assert run(BINARY, *inherits, env={"DASHPOT_API": api}).stdout != f"{api}\n"


def test_run_has_what_serve_has(directory):
    """`run` answers to a host's name, has metrics, records, takes a token, and says when it is ready."""
    token, ready, recording = directory / "token", directory / "ready", directory / "rec"
    token.write_text("0123456789abcdef\n")
    script = """
import json, os, sys, urllib.request
ready = json.load(open(sys.argv[1]))
assert ready["api"] == os.environ["DASHPOT_API"] and ready["api"].endswith("/?token=0123456789abcdef")
def asked(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).read().decode()
assert "d" in asked(ready["api"].replace("/?", "/v1/disks?"), Host="other-container:1")
assert "dashpot_" in asked(ready["metrics"])
"""
    words = ["--api", "tcp:127.0.0.1:0", "--allow-host", "other-container", "--metrics", "tcp:127.0.0.1:0"]
    words += ["--token-file", token, "--ready-file", ready, "--record", recording, "-d", "d=ram,size=1M"]
    done = run(BINARY, "run", *words, "--", sys.executable, "-c", script, ready)
    assert re.match(r"dashpot: page http://127\.0\.0\.1:\d+/\n", done.stderr)
    assert not ready.exists()
    assert "d" in run(BINARY, "record", "show", recording).stdout


@requires("nbdcopy")
def test_each_rule_says_at_the_end_what_it_did(directory):
    data = directory / "data"
    data.write_bytes(b"x" * (1 << 20))
    rules = ["-r", "-D 1ms -T write", "-r", "-e EIO -T read", "-r", "-D 9ms -T write --range 2M..3M"]
    done = run(
        BINARY,
        "run",
        "-d",
        "d=ram,size=4M",
        *rules,
        "--",
        "sh",
        "-c",
        f"nbdcopy --request-size=65536 {data} $DASHPOT_URI",
    )
    first, second, third = done.stderr.splitlines()
    assert first == "dashpot: rule on d: -D 1ms -T write: matched 16, held 16"
    assert second == "dashpot: rule on d: -e EIO -T read: injected nothing: nothing matched yet: -T read"
    assert third.startswith("dashpot: rule on d: -D 9ms ") and "nothing matched yet" in third


def test_a_command_with_an_api_over_tcp_has_a_page():
    done = run(BINARY, "run", "--api", "tcp:127.0.0.1:0", "-d", "d=ram,size=1M", "--", "sh", "-c", "echo $DASHPOT_API")
    url, token = done.stdout.strip().split("/?token=")
    assert done.stderr == f"dashpot: page {url}/#token={token}\n"
    refused = run(BINARY, "run", "--api", f"{url}/?token={token}", "-d", "d=ram,size=1M", "--", "true", code=125)
    assert "--api: a new daemon makes a new token" in refused.stderr


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_is_the_commands_and_leaves_nothing(start, directory, name):
    ready = directory / "ready"
    script = f"trap 'exit 7' {name}; touch {ready}; while :; do sleep 0.02; done"
    process, place = start("sh", "-c", script, stdin=subprocess.DEVNULL)
    eventually(ready.exists, "the command runs")
    process.send_signal(number(name))
    assert process.wait() == 7
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_that_ends_the_command_is_its_status(start, directory, name):
    ready = directory / "ready"
    process, place = start("sh", "-c", f"touch {ready}; exec sleep 1000", stdin=subprocess.DEVNULL)
    eventually(ready.exists, "the command runs")
    process.send_signal(number(name))
    assert process.wait() == 128 + number(name)
    assert list(place.iterdir()) == []


def test_a_command_does_not_outlive_its_disks(start, directory):
    """The command of `run` must end even if dashpot is killed and cannot clean up."""
    process, _place = start("sh", "-c", f"echo $$ > {directory}/pid; exec sleep 1000")
    file = directory / "pid"
    pid = int(eventually(lambda: file.exists() and file.read_text().strip(), "the command runs"))
    assert runs(pid)
    process.kill()
    eventually(lambda: not runs(pid), "the command has ended")


def test_what_nohup_ignores_the_command_ignores(start):
    """If dashpot runs under nohup, which makes it ignore a signal, the command must ignore that signal, too. If
    dashpot caught the signal, the signal would have its default action again in the command.
    """
    ignoring = (
        f"import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv({BINARY!r}, sys.argv[1:])"
    )
    command = [BINARY, "run", "-d", "d=ram,size=1M", "--", "grep", "SigIgn", "/proc/self/status"]
    done = run(sys.executable, "-c", ignoring, *command)
    assert int(done.stdout.split()[1], 16) & 1
    process, _place = start("grep", "SigIgn", "/proc/self/status", stdout=subprocess.PIPE)
    assert int(process.communicate()[0].split()[1], 16) & 1 == 0


# `serve`.


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM"])
def test_a_daemon_ends_in_order(serve, directory, name):
    daemon = serve("-d", "d=ram,size=1M")
    daemon.process.send_signal(number(name))
    daemon.stop()


def test_a_signal_without_a_meaning_ends_no_disk(daemon):
    for name in ("USR1", "USR2"):
        daemon.process.send_signal(number(name))
    client = Wire(daemon.connect())
    client.go("d")
    assert client.in_step()
