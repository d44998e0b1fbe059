"""The output on a terminal of 80 columns: tables fit, whatever the names of disks, rules and files.

In a pipe nothing is shortened: each row is a line, and the tables of sysstat, `zpool iostat` and the others are byte
for byte the originals'. Only the tables of `dashpot zinject` keep the original's width even on a
terminal.
"""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, eventually, run
from kernel import takes_a_kernel

LONG = "a-disk-with-a-rather-long-name-as-one-would-give-it-in-production-0"
RULE = [
    "-D",
    "lognormal=10ms..30ms:4",
    "-T",
    "read,write,flush",
    "-f",
    "50%",
    "--range",
    "0..64M",
    "--client",
    "uid=* *",
    "--name",
    "a-rule-of-some-length",
    "--for",
    "10m",
]


def on_terminal(words, columns=80, env=None, code=0):
    """The output of a command on a terminal of its own, as lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
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
    """Lines of tables that a terminal would break. Addresses are exempt, because they must be whole to be
    copied, and so are sentences."""
    exempt = ("nbd", "In flight: ", "Interval: ", "dashpot: ", "WARNING: ")
    return [line for line in lines if len(line) > columns and not line.strip().startswith(exempt)]


@pytest.fixture
def busy(serve, directory):
    """Two disks with awkward names under load, and rules with many words."""
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


REPORTS = [
    ["iostat", "1", "2"],
    ["iostat", "-x", "1", "2"],
    ["iostat", "-xs"],
    ["iolatency", "1", "1"],
    ["iolatency", "--by", "device", "1", "1"],
    ["iolatency", "--percentiles", "--by", "device", "1", "1"],
    ["quantize", "--by", "device", "--for", "1s"],
    ["heatmap", "1", "1"],
]


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--inflight"],
        ["list"],
        ["list", LONG],
        ["proof"],
        ["doctor"],
        ["snoop", "-n", "20"],
        ["iolatency", "--percentiles", "--by", "client", "1", "1"],
        ["check", f"{LONG}.write.p50 < 1m", "wal.flush.count > 0"],
        *REPORTS,
    ],
    ids=" ".join,
)
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


def test_names_and_columns_that_have_no_room_are_there_with_wide_and_in_a_pipe(busy):
    api = {"DASHPOT_API": f"unix:{busy.api}"}
    for words in (["iostat", "-x"], ["iolatency", "--percentiles", "--by", "device", "1", "1"]):
        rows = [line for line in on_terminal([BINARY, *words], env=api) if re.match(r"a-disk\S+ +\d", line)]
        assert rows and all("\u2026" in row for row in rows), rows
        assert LONG in "\n".join(on_terminal([BINARY, *words, "--wide"], env=api))
        assert LONG in busy.cli(*words).stdout
    titles = [on_terminal([BINARY, "iostat", "-x", *wide], env=api)[0].split() for wide in ([], ["--wide"])]
    assert "rrqm/s" in titles[1] and set(titles[0]) < set(titles[1])
    assert busy.cli("iostat", "-x").stdout.split("\n")[0].split() == titles[1]


@pytest.mark.parametrize("words", [["observe", "0.2", "1"], ["iostat", "-k", "-x"]], ids=" ".join)
def test_what_is_said_of_the_kernels_disks_fits(words):
    if words[0] == "observe":
        takes_a_kernel()
    lines = on_terminal([BINARY, *words])
    assert len(lines) > 1 and not too_wide(lines), "\n".join(lines)


def lossy(serve):
    """A lossy disk of a long name, with writes that no flush has covered."""
    daemon = serve("-d", f"{LONG}=lossy:ram,size=64M")
    run(BINARY, "load", daemon.uri(LONG), "--write", "100%", "--depth", "8", "--time", "200ms", "--block", "4K")
    return daemon


def test_a_power_cut_is_told_in_80_columns(serve):
    daemon = lossy(serve)
    lines = on_terminal([BINARY, "crash", LONG, "--keep", "none"], env={"DASHPOT_API": f"unix:{daemon.api}"})
    assert any("lost" in line for line in lines) and not too_wide(lines), "\n".join(lines)


LABS = [ROOT / "labs" / f"{name}.toml" for name in ("scenario2-legacy", "random-mirrors", "amplification")]
SIMULATED = [
    "txgs",
    "zpool-iostat",
    "zpool-iostat -l 1",
    "zpool-iostat -q 1",
    "zpool-iostat -lq 1",
    "zpool-iostat -w",
    "zpool-iostat -r",
    "iostat -x 1",
    "iostat --layer volume 1",
    "quantize --by device",
    "heatmap",
    "iolatency --percentiles --by client 1",
    "snoop -n 20",
]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.stem)
def test_every_report_of_a_simulation_fits(directory, lab):
    renamed = directory / lab.name
    text = lab.read_text()
    pools = set(re.findall(r"^\[pool\.(\w+)\]", text, re.M))
    for pool in pools:
        text = re.sub(rf"\b{pool}\b", "a-pool-of-a-name-that-nobody-would-type-twice-0", text)
    renamed.write_text(text)
    reports = [word for report in SIMULATED for word in ("--report", report)]
    for more in ([], reports):
        lines = on_terminal([BINARY, "sim", renamed, "--for", "3s", "--warmup", "0s", *more])
        assert len(lines) > 1 and not too_wide(lines), "\n".join(lines)


def test_a_fast_load_fits_too(daemon):
    words = [BINARY, "load", daemon.uri("d"), "--depth", "32", "--write", "30%", "--flush", "5%", "--time", "1s"]
    lines = on_terminal(words)
    assert not too_wide(line.split("\r")[-1] for line in lines), "\n".join(lines)


def test_doctor_needs_no_daemon(directory):
    lines = on_terminal([BINARY, "doctor"], env={"DASHPOT_API": f"unix:{directory}/none.sock"})
    assert not too_wide(lines), "\n".join(lines)
    assert any(line.startswith("NBD: tools") for line in run(BINARY, "doctor").stdout.splitlines())
