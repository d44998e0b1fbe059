"""Measures memory, the time to start, and wake-ups, with many disks in one daemon and with many idle
connections."""

import contextlib
import resource
import time

import process
import servers
from servers import Dashpot
from table import count, print_table, spread

from bench import directory

DISKS = [1, 10, 100, 1_000]
CONNECTIONS = {"dashpot": 1_000, "nbdkit": 100, "qemu-nbd": 100}
SERVERS = list(CONNECTIONS)
IDLE, CONNECTED = "nobody connected", "idle connections"


def run(bench):
    allow_files()
    disks(bench)
    idle(bench)


def allow_files():
    """Raises the limit of open files. Each connection needs a file descriptor in this process, and one in the
    server, which inherits the limit of this process.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def disks(bench):
    samples = bench.measure("scale", DISKS, ["dashpot"], lambda n, _: start_with(n))
    rows = []
    for n in DISKS:
        of = lambda figure, form: spread(samples.spread(n, "dashpot", figure), form)
        rows.append([n, of("start_ms", count), of("rss_bytes", count), per_disk(samples, n)])
    print_table(
        "scale: disks in one daemon", ["disks", "start ms", "RSS bytes", "own bytes per disk beyond the first"], rows
    )


def per_disk(samples, n):
    now, one = (samples.spread(at, "dashpot", "anon_bytes") for at in (n, 1))
    return count((now.median - one.median) / (n - 1)) if now and one and n > 1 else "-"


def start_with(n):
    disks = [f"d{number}=ram,size=1M" for number in range(n)]
    with directory() as place:
        began = time.monotonic()
        with Dashpot(place, disks) as server:
            return {
                "start_ms": (time.monotonic() - began) * 1e3,
                "rss_bytes": process.memory_bytes(server.pid),
                "anon_bytes": anonymous(server),
            }


def anonymous(server):
    """The server's anonymous memory. Only anonymous memory counts, because the kernel maps and drops pages of
    the program's file as it likes."""
    return process.memory_bytes(server.pid, "RssAnon")


def idle(bench):
    samples = bench.measure("scale", [IDLE, CONNECTED], SERVERS, lambda cell, name: unit(bench, cell, name))
    rows = []
    for cell in (IDLE, CONNECTED):
        for name in SERVERS:
            of = lambda figure: spread(samples.spread(cell, name, figure), count)
            rows.append([cell, name, of("wake_ups"), of("cpu_us"), of("rss_bytes"), of("connection_bytes")])
        woken = samples.spread(cell, "dashpot", "wake_ups")
        if woken:
            # A shard with clients wakes up once a second, to notice when the host has stopped it.
            most = 0 if cell == IDLE else 1
            bench.at_most("idle: wake-ups per second, the most of all rounds", cell, woken.most, most)
    columns = ["", "server", "wake-ups/s", "CPU us/s", "RSS bytes", "own bytes per connection"]
    print_table("scale: servers without requests", columns, rows)


def unit(bench, cell, name):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        server = bench.start(stack, name, lambda: begin(place, name))
        if server is None:
            return None
        figures, before = {}, anonymous(server)
        if cell == CONNECTED:
            n = CONNECTIONS[name]
            for _ in range(n):
                stack.callback(server.connect().close)
            figures["connection_bytes"] = (anonymous(server) - before) / n
        # Work from the start and from the handshakes may still be going on.
        time.sleep(0.3)
        figures["rss_bytes"] = process.memory_bytes(server.pid)
        return {**figures, **quiet(server.pid, bench.seconds(3, 1))}


def begin(place, name):
    if name == "dashpot":
        return Dashpot(place, [f"d{number}=ram,size=1M" for number in range(100)])
    if name == "nbdkit":
        return servers.nbdkit(place)
    return servers.qemu_nbd(place, "unix", servers.null_image(), name)


def quiet(pid, seconds):
    """The activity of an idle process, per second."""
    woken, cpu = process.wake_ups(pid), process.cpu_ns(pid)
    time.sleep(seconds)
    return {
        "wake_ups": (process.wake_ups(pid) - woken) / seconds,
        "cpu_us": (process.cpu_ns(pid) - cpu) / 1e3 / seconds,
    }
