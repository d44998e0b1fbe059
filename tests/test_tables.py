"""What a terminal of 80 columns shows: tables that fit it, whatever disks, rules and files are called. What goes into
a pipe is whole, a line for each row.

The tables that are byte for byte those of sysstat, zinject and `zpool iostat` are as wide as those are."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from conftest import BINARY, HANG_LIMIT, eventually, run

LONG = "a-disk-with-a-rather-long-name-as-one-would-give-it-in-production-0"
RULE = ["-D", "lognormal=10ms..30ms:4", "-T", "read,write,flush", "-f", "50%", "--range", "0..64M",
        "--client", "uid=* *", "--name", "a-rule-of-some-length", "--for", "10m"]


def on_terminal(words, columns=80, env=None, code=0):
    """What a command shows on a terminal of its own, as lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.STDOUT,
        env={**os.environ, "TERM": "xterm", **(env or {})},
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            if not (part := os.read(ours, 1 << 16)):
                break
        except OSError:  # the other side is closed
            break
        text += part
    os.close(ours)
    assert process.wait(HANG_LIMIT) == code, text.decode()
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text.decode()).replace("\r\n", "\n").splitlines()


def too_wide(lines, columns=80):
    """Lines that a terminal breaks. An address is whole, so that it can be copied."""
    return [line for line in lines if len(line) > columns and not line.strip().startswith("nbd")]


@pytest.fixture
def busy(serve, directory):
    """Two disks of awkward names under load, and rules of many words."""
    image = directory / "a-file-whose-path-is-longer-than-a-column-of-a-table-could-be.img"
    image.write_bytes(bytes(1 << 20))
    daemon = serve("-d", f"{LONG}=ram,size=64M", "-d", f"wal=file:{image}")
    daemon.cli("inject", LONG, *RULE)
    daemon.cli("inject", "wal", "-D", "1ns", "-T", "flush")
    daemon.cli("inject", "wal", "-D", "5ms:1")
    loads = [
        subprocess.Popen(
            [BINARY, "load", daemon.uri(disk), "--depth", "8", "--write", "30%", "--flush", "5%"],
            stdout=subprocess.DEVNULL,
        )
        for disk in (LONG, "wal")
    ]
    eventually(lambda: all(rule["matched"] > 10 for rule in daemon.rules().values()), "the loads run")
    yield daemon
    for load in loads:
        load.send_signal(signal.SIGINT)
    for load in loads:
        load.wait()


@pytest.mark.parametrize("words", [
    ["status"], ["status", "--inflight"], ["list"], ["list", LONG], ["proof"], ["doctor"],
    ["snoop", "-n", "20"], ["iolatency", "1", "1"], ["heatmap", "1", "1"],
    ["iolatency", "--percentiles", "--by", "client", "1", "1"],
], ids=" ".join)
def test_every_table_fits_80_columns(busy, words):
    lines = on_terminal([BINARY, *words], env={"DASHPOT_API": f"unix:{busy.api}"})
    assert len(lines) > 1, lines
    assert not too_wide(lines), "\n".join(lines)


def test_the_tables_fit_a_narrower_terminal_too(busy):
    for words in (["list"], ["status"], ["doctor"]):
        lines = on_terminal([BINARY, *words], columns=72, env={"DASHPOT_API": f"unix:{busy.api}"})
        assert not too_wide(lines, 72), "\n".join(lines)


def test_a_pipe_gets_whole_lines(busy):
    titles, *rows = busy.cli("list").stdout.splitlines()
    assert titles.split() == ["id", "matched", "held", "late", "achieved", "now", "name", "disk", "rule"]
    assert [row.split()[0] for row in rows[:3]] == ["1", "2", "3"]
    assert f"a-rule-of-some-length  {LONG}" in rows[0] and rows[0].endswith("--for 10m")
    assert LONG in busy.cli("snoop", "-n", "5", "-d", LONG).stdout
    assert LONG in busy.cli("status").stdout


def test_wide_tables_show_every_column(busy):
    titles, row, *_ = busy.cli("list", "--wide").stdout.splitlines()
    for title in ("injected", "overrun", "lateness", "backlog"):
        assert title in titles
    titles, row = busy.cli("snoop", "--wide", "-n", "1").stdout.splitlines()
    assert re.search(r"OFFSET.*RECV.*SUSPEND.*STORE.*HOLD.*LATE.*REPLY", titles), titles
    on_screen = on_terminal([BINARY, "list", "--wide"], env={"DASHPOT_API": f"unix:{busy.api}"})
    assert on_screen[0].split() == busy.cli("list", "--wide").stdout.splitlines()[0].split()


def test_a_fast_load_fits_too(daemon):
    words = [BINARY, "load", daemon.uri("d"), "--depth", "32", "--write", "30%", "--flush", "5%", "--time", "1s"]
    lines = on_terminal(words)
    assert not too_wide(line.split("\r")[-1] for line in lines), "\n".join(lines)


def test_doctor_needs_no_daemon(directory):
    lines = on_terminal([BINARY, "doctor"], env={"DASHPOT_API": f"unix:{directory}/none.sock"})
    assert not too_wide(lines), "\n".join(lines)
    assert any(line.startswith("NBD: tools") for line in run(BINARY, "doctor").stdout.splitlines())
