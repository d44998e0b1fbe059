"""Pools whose stores fail: acknowledged and flushed data is kept, the client gets an error, the daemon goes
on, and `status` names the remedy."""

import os
import signal
import subprocess
import sys

import pytest
from conftest import BINARY, eventually, requires, run
from pools import lab
from test_durability import Trace
from test_pool_power_cuts import connect
from timed import nbd

MIB = 1 << 20
BLOCK = 8192


def content(version):
    return version.to_bytes(2, "little") * (BLOCK // 2)


def daemon_on_files(serve, directory, policy, layout="stripe"):
    return serve(lab(directory, policy, layout, "file:{disk}.img")[0])


def limit_files(daemon, limit):
    run("prlimit", f"--pid={daemon.pid}", f"--fsize={limit}:")


def fails(operation, *arguments):
    with pytest.raises(nbd.Error) as failed:
        operation(*arguments)
    return failed.value.errnum


@requires("prlimit")
@pytest.mark.parametrize("policy", ["through", "none", "openzfs", "legacy"])
def test_a_file_without_room(serve, directory, policy):
    """Writes fail because a sparse file gets no more blocks (ENOSPC). A limit on the file's size stands for a
    full file system."""
    daemon, written = daemon_on_files(serve, directory, policy), {}
    client = connect(daemon)
    client.pwrite(content(1) * 16, 0, nbd.CMD_FLAG_FUA)
    # Each disk has half of the blocks, and writes beyond 1 MiB of a disk's file fail.
    limit_files(daemon, MIB)
    for version in range(2, 10):
        at = 4 * MIB + version * BLOCK
        try:
            client.pwrite(content(version), at)
            written[at] = version
        except nbd.Error:
            assert policy == "through"
    assert bool(written) == (policy != "through")
    if policy != "through":
        assert fails(client.flush)
        said = eventually(lambda: "degraded" in (text := daemon.cli("status").stdout) and text, "a degraded pool")
        assert "tank: a disk fails writes that clients believe done" in said and "mend the store" in said
    # Clients can read the acknowledged data and the flushed data.
    for at, version in written.items():
        assert client.pread(BLOCK, at) == content(version)
    assert client.pread(16 * BLOCK, 0) == content(1) * 16
    limit_files(daemon, "unlimited")
    eventually(lambda: "degraded" not in daemon.cli("status").stdout, "a pool that is whole")
    client.pwrite(content(99), 8 * MIB)
    written[8 * MIB] = 99
    client.flush()
    daemon.abandon()
    daemon.ready.unlink()
    client = connect(serve(directory / "lab.toml"))
    assert client.pread(16 * BLOCK, 0) == content(1) * 16
    for at, version in written.items():
        assert client.pread(BLOCK, at) == content(version)


@pytest.mark.parametrize("policy", ["through", "openzfs"])
@pytest.mark.parametrize("layout", ["stripe", "mirror"])
@pytest.mark.parametrize("what", ["write", "flush", "read"])
def test_a_disk_that_fails_at_each_point(serve, directory, policy, layout, what):
    daemon = daemon_on_files(serve, directory, policy, layout)
    client = connect(daemon)
    client.pwrite(content(1) * 16, 0, nbd.CMD_FLAG_FUA)
    daemon.cli("inject", "a", "-e", "EIO", "-T", what)
    if what == "read":
        # A mirror reads from its healthy side.
        if layout == "mirror":
            assert client.pread(16 * BLOCK, 0) == content(1) * 16
        else:
            assert fails(client.pread, 16 * BLOCK, 0)
    else:
        assert fails(client.pwrite, content(2) * 16, MIB, nbd.CMD_FLAG_FUA)
        assert client.pread(BLOCK, 0) == content(1)
    daemon.cli("clear", "all")
    eventually(lambda: "degraded" not in daemon.cli("status").stdout, "a pool that is whole")
    client.pwrite(content(3) * 16, 2 * MIB, nbd.CMD_FLAG_FUA)
    client.flush()
    for at, version in [(0, 1), (2 * MIB, 3)]:
        assert client.pread(16 * BLOCK, at) == content(version) * 16


@pytest.mark.parametrize("mode", ["wait", "continue"])
def test_writes_wait_or_fail_while_a_disk_fails(serve, directory, mode):
    daemon = daemon_on_files(serve, directory, "openzfs")
    daemon.cli("set", "tank", f"failmode={mode}")
    daemon.cli("inject", "a", "-e", "EIO", "-T", "write")
    client = connect(daemon)
    client.pwrite(content(1) * 2, 0)
    assert fails(client.flush)
    eventually(lambda: "degraded" in daemon.cli("status").stdout, "a degraded pool")
    if mode == "continue":
        assert fails(client.pwrite, content(2), MIB)
        daemon.cli("clear", "all")
        eventually(lambda: "degraded" not in daemon.cli("status").stdout, "a pool that is whole")
    else:
        cookie = client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(content(2))), MIB)
        eventually(lambda: daemon.json("status")["volumes"][0]["in_flight"] == 1, "a write that waits")
        daemon.cli("clear", "all")
        while not client.aio_command_completed(cookie):
            client.poll(-1)
        assert client.pread(BLOCK, MIB) == content(2)
    client.flush()
    assert client.pread(2 * BLOCK, 0) == content(1) * 2


@requires("strace")
@pytest.mark.parametrize("policy", ["through", "openzfs"])
def test_a_sync_that_fails(serve, directory, policy):
    daemon = daemon_on_files(serve, directory, policy)
    client = connect(daemon)
    client.pwrite(content(1) * 16, 0, nbd.CMD_FLAG_FUA)
    trace = Trace(daemon, "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO")
    client.pwrite(content(2) * 16, MIB)
    assert fails(client.flush)
    trace.stop()
    # The flush must not succeed, because the data is not on the disk.
    assert fails(client.flush)
    said = daemon.cli("status").stdout
    assert "faulted" in said and "so every flush fails" in said and "start the daemon again" in " ".join(said.split())
    assert client.pread(16 * BLOCK, 0) == content(1) * 16
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.abandon()
    daemon.ready.unlink()
    client = connect(serve(directory / "lab.toml"))
    assert client.pread(16 * BLOCK, 0) == content(1) * 16
    client.pwrite(content(3), 0, nbd.CMD_FLAG_FUA)
    client.flush()


@requires("prlimit")
@pytest.mark.parametrize("command", ["serve", "run"])
def test_an_end_that_loses_acknowledged_writes_has_a_status(serve, directory, command):
    """The store has no room for writes that the client believes done, and the daemon ends in order."""
    words = lab(directory, "openzfs", "stripe", "file:{disk}.img")[0]
    if command == "serve":
        daemon = serve(words)
        client = connect(daemon)
        limit_files(daemon, MIB)
        client.pwrite(content(1), 4 * MIB)
        assert fails(client.flush)
        daemon.process.terminate()
        code, said = daemon.process.wait(), daemon.output()
        daemon.abandon()
        expected = 1
    else:
        script = """
import nbd, os, sys
client = nbd.NBD()
client.connect_uri(os.environ["DASHPOT_URI_TANK_V"])
client.pwrite(bytes(8192), 4 << 20)
try:
    client.flush()
except nbd.Error:
    sys.exit(0)
sys.exit("the flush succeeded")
"""
        done = subprocess.run(
            ["prlimit", f"--fsize={MIB}:", BINARY, "run", words, "--", sys.executable, "-c", script],
            capture_output=True,
            text=True,
            cwd=directory,
        )
        code, said = done.returncode, done.stderr
        expected = 125
    assert code == expected, said
    assert "bytes that clients have written are lost" in said and "acknowledged writes may be lost" in said
