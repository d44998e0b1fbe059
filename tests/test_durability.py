"""Data that a flush has acknowledged is on the disk, as the daemon's system calls show."""

import errno
import re
import signal
import subprocess

import pytest
from conftest import eventually, requires
from timed import Client

pytestmark = requires("strace")


@pytest.fixture
def daemon(serve, directory):
    """A daemon with a file disk, under strace."""
    store = directory / "store.img"
    with open(store, "wb") as file:
        file.truncate(16 << 20)
    daemon = serve("-d", f"d=file:{store}")
    daemon.store = store
    return daemon


class Trace:
    """strace on a running daemon until `stop`. The lines of the trace are in the order of the calls' ends."""

    def __init__(self, daemon, *options):
        self.path = daemon.directory / "trace"
        self.process = subprocess.Popen(
            ["strace", "-f", "-yy", "-o", self.path, *options, "-p", str(daemon.pid)],
            stderr=subprocess.PIPE,
            text=True,
        )
        said = self.process.stderr.readline()
        if "attached" not in said:
            self.process.wait()
            pytest.skip(
                f"strace cannot attach here: {said.strip()}: run the tests as root, or sysctl kernel.yama.ptrace_scope=0"
            )

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
        return self.path.read_text().splitlines()


def events(lines, store):
    """The trace as a string with one character for each event: `W` is the end of a write to the store's file, `(` and
    `)` are the start and the end of a sync, and `R` is a reply. If the log shows another thread's call between
    the start and the end of a call, the interrupted call has two lines; the second line has the time of its end.
    """
    found, started = "", {}
    for line in lines:
        thread, call = line.split(None, 1)
        if call.startswith("<... "):
            call = started.pop(thread, "") + call
            ended = True
        else:
            ended = "<unfinished" not in call
            if re.match(r"f(data)?sync\(", call) and str(store) in call:
                found += "("
        if not ended:
            started[thread] = call
            continue
        if re.match(r"f(data)?sync\(", call) and str(store) in call:
            found += ")"
        elif re.match(r"p?write(v|v2|64)?\(|pwrite", call) and str(store) in call and "= -1" not in call:
            found += "W"
        # A reply: only the prober's socket has no path.
        elif re.match(r"(send\w*|write\w*)\([^,]*UNIX[^,]*->[^,]*, *\"/", call) and "= -1" not in call:
            found += "R"
    return found


CALLS = "trace=fdatasync,fsync,write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,sendmmsg"


def test_one_fdatasync_between_the_last_write_and_the_reply_to_the_flush(daemon):
    client = Client(daemon)
    trace = Trace(daemon, "-e", CALLS)
    for i in range(5):
        assert client.wait(client.write(4096 * i)).error == 0
    assert client.wait(client.flush()).error == 0
    seen = events(trace.stop(), daemon.store)
    assert re.fullmatch(r"(W+R){5}\(\)R", seen), seen


def test_a_fua_write_is_synced_before_its_reply(daemon):
    client = Client(daemon)
    trace = Trace(daemon, "-e", CALLS)
    assert client.wait(client.write(0, flags=1)).error == 0
    seen = events(trace.stop(), daemon.store)
    durable = "W" if "RWF_DSYNC" in trace.path.read_text() else r"W+\(\)"
    assert re.fullmatch(durable + "R", seen), seen


def test_a_flush_covers_the_writes_of_other_connections(daemon):
    writer, flusher = Client(daemon), Client(daemon)
    trace = Trace(daemon, "-e", CALLS)
    assert writer.wait(writer.write()).error == 0
    assert flusher.wait(flusher.flush()).error == 0
    seen = events(trace.stop(), daemon.store)
    assert re.fullmatch(r"W+R\(\)R", seen), seen


def test_a_flush_that_fails_faults_the_disk(daemon):
    """A flush that fails must fault the disk: a later fdatasync would succeed, because the kernel has dropped
    the data that it could not write."""
    client = Client(daemon)
    trace = Trace(daemon, "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO")
    assert client.wait(client.write()).error == 0
    assert client.wait(client.flush()).error == errno.EIO
    trace.stop()
    assert client.wait(client.flush()).error == errno.EIO
    assert client.wait(client.write(flags=1)).error == errno.EIO
    assert daemon.disk()["faulted"]
    fresh = Client(daemon)
    assert fresh.wait(fresh.flush()).error == errno.EIO
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait()
    daemon.abandon()


def test_a_restart_has_what_was_written(serve, daemon):
    client = Client(daemon)
    client.handle.pwrite(b"\xa5" * 8192, 4096)
    client.handle.flush()
    daemon.stop()
    again = Client(serve("-d", f"d=file:{daemon.store}"))
    assert again.handle.pread(16384, 0) == bytes(4096) + b"\xa5" * 8192 + bytes(4096)


def test_a_clean_end_flushes(daemon):
    client = Client(daemon)
    assert client.wait(client.write()).error == 0
    trace = Trace(daemon, "-e", CALLS)
    daemon.process.send_signal(signal.SIGTERM)
    eventually(lambda: daemon.process.poll() is not None)
    assert "()" in events(trace.stop(), daemon.store)


def test_a_medium_that_blocks_for_seconds_holds_up_nobody(serve, directory):
    """A flush hangs in the kernel, while other reads and writes of the same shard continue."""
    store = directory / "store.img"
    with open(store, "wb") as file:
        file.truncate(16 << 20)
    daemon = serve("-d", f"d=file:{store}", "-d", "e=ram,size=16M", "--shards", "1")
    slow, fast = Client(daemon), Client(daemon, "e")
    trace = Trace(daemon, "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=3000000")
    flush = slow.flush()
    slow.handle.poll(0)
    eventually(lambda: daemon.disk()["in_flight"] == 1, "the flush is on its way")
    for i in range(100):
        assert fast.wait(fast.write(4096 * i)).error == 0
        assert fast.wait(fast.read(4096 * i)).error == 0
    other = Client(daemon)
    assert other.wait(other.read()).error == 0
    assert daemon.disk()["in_flight"] == 1, "the flush was over before the others"
    assert slow.wait(flush).error == 0
    trace.stop()
