"""record and snoop --in: single I/Os are kept in files that dashpot and other engines read bit for bit."""

import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import BINARY, ROOT, eventually, open_to_all, requires, run
from kernel import loop_in_memory, takes_a_kernel
from test_events import ask
from timed import Client, nbd

PYTHON = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "engines/venv/bin/python"
ENGINES = ("pyarrow", "duckdb", "polars", "chdb", "pandas")
WAITS = ("recv", "throttle", "queue", "suspend", "store", "hold", "lateness", "reply")


def has(engine):
    if not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-c", f"import {engine}"], capture_output=True).returncode == 0


@pytest.fixture
def recorded(daemon, directory):
    """A recording of a served disk with a rule, errors, FUA and several operations, and the daemon's own list of the
    I/Os."""
    recording = directory / "rec"
    daemon.cli("inject", "d", "-D", "3ms:2", "-T", "write")
    daemon.cli("inject", "d", "-e", "EIO", "-T", "read", "--every", "7")
    process = daemon.start("record", "-d", "d", "-o", recording)
    assert "recording d until Ctrl-C" in process.stdout.readline()
    client = Client(daemon)
    client.many(200, 8)
    client.many(50, 4, client.write)
    client.many(3, 1, lambda offset: client.write(offset, 16384, nbd.CMD_FLAG_FUA))
    client.many(2, 1, lambda offset: client.flush())
    client.many(2, 1, client.trim)
    told = eventually(lambda: len(zios := ask(daemon, "/v1/events", after=0)["zios"]) == 257 and zios)
    summary = end(process)
    assert "257 I/Os" in summary and "nothing was lost" in summary, summary
    return recording, told


def end(process):
    """Ends a recording as its user would, and returns what `record` printed at the end."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def snoop(recording, *words):
    return [json.loads(line) for line in run(BINARY, "snoop", "--in", recording, "--json", *words).stdout.splitlines()]


def files(recording, table="ios"):
    return sorted(pathlib.Path(recording, table).glob("*.parquet"))


def test_a_recording_that_has_just_begun_has_its_marks(daemon, directory):
    """A recording that has just begun must have its marks: readers learn the disks from them, so they come
    before the first file of I/Os."""
    recording = directory / "rec"
    process = daemon.start("record", "-d", "d", "-o", recording)
    assert "recording d until Ctrl-C" in process.stdout.readline()
    eventually(lambda: files(recording, "marks"), "the first marks")
    assert not files(recording)
    end(process)


def test_a_recording_stopped_at_once_has_what_its_client_saw(daemon, directory):
    """The recording is stopped as soon as the client has its reply, which is before the shard notes the end
    of the I/O. The recording must still have that I/O."""
    for attempt in range(20):
        recording = directory / f"rec{attempt}"
        process = daemon.start("record", "-d", "d", "-o", recording)
        assert "recording d until Ctrl-C" in process.stdout.readline()
        Client(daemon).handle.pwrite(bytes(4096), 8192)
        assert "1 I/Os" in end(process)


def at_disk_ns(zio):
    return sum(zio["waits"][f"{wait}_ns"] for wait in ("store", "hold", "lateness"))


def test_a_recording_has_what_the_daemon_tells(recorded):
    recording, told = recorded
    ios = snoop(recording)
    for io, zio in zip(ios, told, strict=True):
        assert io.pop("device") == zio.pop("disk")
        assert 0 < io.pop("at_ns") - io["ended_ns"] < 2**63
        assert zio.pop("call") is None, "no client of NBD makes calls"
        assert io == zio


def test_snoop_selects(recorded):
    recording, told = recorded
    slow = [zio["ended_ns"] for zio in told if zio["total_ns"] >= 3_000_000]
    assert [io["ended_ns"] for io in snoop(recording, "--min", "3ms")] == slow
    assert {io["op"] for io in snoop(recording, "--op", "flush,trim")} == {"flush", "trim"}
    assert [io["fua"] for io in snoop(recording, "--op", "fua")] == [True] * 3
    assert len(snoop(recording, "-n", "7")) == 7
    assert "the recording has d" in run(BINARY, "snoop", "--in", recording, "-d", "other", code=1).stderr
    header, *lines = run(BINARY, "snoop", "--in", recording, "--wide").stdout.splitlines()
    assert header.split()[:3] == ["TIME", "DISK", "OP"] and len(lines) == len(told)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_read_it_bit_for_bit(engine, recorded):
    if not has(engine):
        pytest.skip(f"{engine} is missing: `make deps` installs it")
    recording, told = recorded
    read = json.loads(run(PYTHON, ROOT / "tests/engines/read.py", engine, *files(recording)).stdout)
    rows = [dict(zip(read["columns"], row)) for row in read["rows"]]
    for row, zio in zip(rows, told, strict=True):
        ended_ns = row["at_ns"] + row["clock_ns"]
        assert (ended_ns, row["latency_ns"]) == (zio["ended_ns"], at_disk_ns(zio))
        assert {f"{wait}_ns": row[f"{wait}_ns"] for wait in WAITS} == zio["waits"]
        assert row["sector"] * 512 + row["in_sector"] == zio["offset_bytes"]
        assert (row["bytes"], row["op"], row["fua"]) == (zio["length_bytes"], zio["op"], int(zio["fua"]))
        assert (row["device"], row["client"], row["rule"], row["lane"]) == (
            zio["disk"],
            zio["client"],
            zio["rule"],
            zio["lane"],
        )
        assert row["outcome"] == (zio["error"] or "ok")
        assert (row["pid"], row["process"], row["rwbs"], row["other_ns"]) == (None, None, None, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_count_seconds_and_read_marks(engine, recorded):
    if not has(engine):
        pytest.skip(f"{engine} is missing: `make deps` installs it")
    recording, told = recorded

    def table(name):
        read = json.loads(run(PYTHON, ROOT / "tests/engines/read.py", engine, *files(recording, name)).stdout)
        return [dict(zip(read["columns"], row)) for row in read["rows"]]

    seconds = table("seconds")
    assert sum(row["n"] for row in seconds) == len(told)
    assert sum(row["sum_ns"] or 0 for row in seconds) == sum(map(at_disk_ns, told))
    assert sum(row["bytes"] or 0 for row in seconds) == sum(zio["length_bytes"] for zio in told)
    assert sum(row["errors"] or 0 for row in seconds) == sum(zio["error"] is not None for zio in told)
    assert [row["kind"] for row in table("marks")] == ["began", "watched", "rule", "rule", "ended"]


@pytest.mark.skipif(not has("pyarrow"), reason="pyarrow is missing: `make deps` installs it")
def test_a_hung_io_leaves_a_trace(daemon, directory):
    recording = directory / "rec"
    daemon.cli("inject", "d", "--hang", "-T", "read")
    process = daemon.start("record", "-d", "d", "-o", recording)
    process.stdout.readline()
    client = Client(daemon)
    client.read(8192)
    client.handle.poll(0)
    eventually(lambda: daemon.disk()["in_flight"] == 1)
    assert " 0 I/Os" in end(process)
    read = json.loads(run(PYTHON, ROOT / "tests/engines/read.py", "pyarrow", *files(recording)).stdout)
    (row,) = [dict(zip(read["columns"], row)) for row in read["rows"]]
    assert (row["outcome"], row["op"], row["sector"], row["bytes"], row["rule"]) == ("in flight", "read", 16, 4096, 1)
    assert row["latency_ns"] > 0 and row["store_ns"] is None
    assert snoop(recording) == []
    daemon.cli("clear", "d")


@pytest.mark.skipif(not has("pyarrow"), reason="pyarrow is missing: `make deps` installs it")
def test_volumes_are_another_layer(serve, directory):
    path = directory / "lab.toml"
    path.write_text(
        '[disk.d]\nstore = "ram"\nsize = "64M"\n[disk.a]\nstore = "ram"\nsize = "64M"\n'
        '[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "8M"\n'
    )
    daemon = serve(path)
    layers = {}
    for layer, name in (("disk", "d"), ("volume", "p/v")):
        recording = directory / f"rec-{layer}"
        process = daemon.start("record", "-d", name, "--layer", layer, "-o", recording)
        process.stdout.readline()
        Client(daemon, name).many(5, 1)
        eventually(lambda: [zio["disk"] for zio in ask(daemon, "/v1/events", after=0)["zios"]].count(name) == 5)
        end(process)
        read = json.loads(run(PYTHON, ROOT / "tests/engines/read.py", "pyarrow", *files(recording)).stdout)
        rows = [dict(zip(read["columns"], row)) for row in read["rows"]]
        layers[layer] = {(row["layer"], row["device"]) for row in rows}
    assert layers == {"disk": {("disk", "d")}, "volume": {("volume", "p/v")}}


def test_a_recording_goes_on_and_is_not_shared(daemon, directory):
    recording = directory / "rec"
    for round in (1, 2):
        process = daemon.start("record", "-d", "d", "-o", recording)
        process.stdout.readline()
        if round == 1:
            other = daemon.cli("record", "-d", "d", "-o", recording, code=1).stderr
            assert "another process is recording here" in other
        Client(daemon).many(10, 1)
        eventually(lambda: len(ask(daemon, "/v1/events", after=0)["zios"]) == 10 * round)
        end(process)
        assert len(snoop(recording)) == 10 * round


def test_bad_recordings_are_refused_by_name(recorded, directory):
    recording, _ = recorded
    assert "No such file" in run(BINARY, "snoop", "--in", directory / "nope", code=1).stderr
    assert "this is not a recording" in run(BINARY, "snoop", "--in", ROOT / "docs", code=1).stderr
    (path,) = files(recording)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    cut = run(BINARY, "snoop", "--in", recording, code=1).stderr
    assert path.name in cut and "its end is missing" in cut
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    changed = run(BINARY, "snoop", "--in", recording, code=1).stderr
    assert path.name in changed and "has changed" in changed
    path.write_bytes(whole.replace(b"dashpot.format\x18\x015", b"dashpot.format\x18\x017"))
    newer = run(BINARY, "snoop", "--in", recording, code=1).stderr
    assert path.name in newer and "format 7" in newer and "use a newer dashpot" in newer
    path.write_bytes(whole.replace(b"dashpot.format\x18\x015", b"dashpot.format\x18\x011"))
    older = run(BINARY, "snoop", "--in", recording, code=1).stderr
    assert path.name in older and "format 1" in older
    # The reader chooses files by the periods in their names. A wrong period would hide I/Os, so it is an
    # error.
    number, begun, ended = path.stem.split("-")[:3]
    path.write_bytes(whole)
    renamed = path.rename(path.with_name(f"{number}-{begun}-{int(ended) - 1}.parquet"))
    assert (
        f"{renamed.name}: the file is damaged: its name says other times"
        in run(BINARY, "snoop", "--in", recording, code=1).stderr
    )


def test_a_damaged_file_of_seconds_or_marks_stops_no_report(recorded):
    recording, told = recorded
    for table in ("seconds", "marks"):
        (path,) = files(recording, table)
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        answer = run(BINARY, "snoop", "--in", recording)
        assert path.name in answer.stderr and "goes on without it" in answer.stderr
        assert len(answer.stdout.splitlines()) == len(told) + 1
        path.write_bytes(whole)


def test_a_recording_needs_no_daemon_and_no_address(recorded):
    recording, told = recorded
    answer = subprocess.run(
        [BINARY, "stat", "disk.ops", "--in", recording, "--json"],
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "DASHPOT_API": "garbage"},
    )
    assert json.loads(answer.stdout)["count"] == len(told)


def test_bad_words(daemon, directory):
    assert "--keep" in daemon.cli("record", "-d", "d", "-o", directory / "rec", "--keep", "10K", code=2).stderr
    assert "--layer" in daemon.cli("record", "-d", "d", "-o", directory / "rec", "--layer", "store", code=2).stderr
    assert "this is not a recording" in daemon.cli("record", "-d", "d", "-o", daemon.directory, code=1).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: run the tests as root")
@requires("unshare")
def test_a_full_disk_ends_the_recording_with_a_mark(daemon, directory):
    """A full disk must end the recording with a mark. The recording is on a separate file system of 160 KiB,
    which other data then fills."""
    (directory / "small").mkdir()
    recording = directory / "small/rec"
    script = f"""
        mount -t tmpfs -o size=160k none {directory}/small
        {BINARY} record -d d -o {recording}; echo exit $?
        cp -a {recording} {directory}/copy
    """
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "DASHPOT_API": f"unix:{daemon.api}"},
    )
    assert "recording d" in process.stdout.readline()
    client = Client(daemon)

    def ended():
        client.many(2000, 16)
        return process.poll() is not None

    eventually(ended, "the end of the recording")
    out, err = process.communicate()
    assert "exit 1" in out and "the recording ended early" in err and "No space left" in err, out + err
    copy = directory / "copy"
    assert not [path for path in copy.rglob("*") if path.name.endswith(".draft")]
    assert not files(copy) or all(io["device"] == "d" for io in snoop(copy))
    assert any(b"stopped" in path.read_bytes() for path in files(copy, "marks"))


@takes_a_kernel
def test_of_a_disk_of_the_kernel(directory):
    recording = directory / "rec"
    with loop_in_memory() as loop:
        before = loop.stat()
        process = subprocess.Popen(
            [BINARY, "record", "-d", loop.path, "-o", recording],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.stdout.readline()
        run("dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=500", "oflag=direct")
        run("dd", f"if={loop.path}", "of=/dev/null", "bs=64k", "count=20", "iflag=direct")
        after = loop.stat()
        assert "nothing was lost" in end(process)
    ios = snoop(recording)
    for letter, name in (("R", "reads"), ("W", "writes")):
        mine = [io for io in ios if io["rwbs"].startswith(letter)]
        assert len(mine) == after[name] - before[name]
    written = [io for io in ios if io["rwbs"].startswith("W")]
    assert {(io["device"], io["bytes"], io["process"]) for io in written} == {(loop.name, 4096, "dd")}
    assert all(io["total_ns"] == io["queue_ns"] + io["device_ns"] for io in ios)


@takes_a_kernel
@requires("setpriv")
def test_a_recording_that_cannot_begin_leaves_nothing(directory):
    """Only root reads the kernel's events."""
    open_to_all(directory)
    mine = directory / "mine"
    mine.mkdir()
    mine.chmod(0o777)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    before = sorted(directory.rglob("*"))
    with loop_in_memory() as loop:
        for recording in (directory / "new/rec", mine):
            done = run(*nobody, BINARY, "record", "-d", loop.path, "-o", recording, code=1)
            assert "root" in done.stderr or "ermission" in done.stderr, done.stderr
            assert sorted(directory.rglob("*")) == before
