"""The neighbours of a slow disk on one shard: a flood of reads, and pools that sync, repair a mirror, or trim."""

import contextlib
import subprocess
import threading
import time

import process
import servers
import wire
from load import words

DISKS = [f"{name}=ram,size={servers.SIZE}" for name in ("slow", "flooded")]
POOLS = """
[disk.home]
store = "ram"
size = "1G"
[disk.left]
store = "ram"
size = "512M"
[disk.right]
store = "ram"
size = "512M"
[disk.huge]
store = "null"
size = "2T"
[pool.tank]
disks = ["home"]
zfs_dirty_data_max = "512M"
[pool.twins]
disks = [["left", "right"]]
[pool.wide]
disks = ["huge"]
[volume."tank/v"]
size = "768M"
write = "openzfs"
[volume."twins/v"]
size = "384M"
write = "through"
[volume."wide/v"]
size = "1T"
write = "openzfs"
"""
FLOOD_DEPTH = 1024
MIB, GIB = 1 << 20, 1 << 30
# The number of requests that the client of a volume has in flight.
DEPTH = 8
DATA = b"\x5a" * MIB


@contextlib.contextmanager
def flood(server, export="flooded", depth=FLOOD_DEPTH, *options):
    """Reads at depth 1024, or another load."""
    client = process.start(words(server.uri(export), 3600, depth, *options), stdout=subprocess.PIPE)
    try:
        yield
        if client.poll() is not None:
            raise RuntimeError(f"the flood ended: {process.complaint(client.stderr.read())}")
    finally:
        process.stop(client)


@contextlib.contextmanager
def again_and_again(once, server):
    """Calls `once(server)` again and again in a thread until the `with` block ends, and checks that at least one call
    has ended.
    """
    is_over, rounds, failures = threading.Event(), [], []

    def repeat():
        try:
            while not is_over.is_set():
                once(server)
                rounds.append(once)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    if failures:
        raise failures[0]
    if not rounds:
        raise RuntimeError(f"the neighbour did no whole {once.__name__}")


def sync(server):
    """Makes 256 MiB dirty, and waits for a flush of all of it."""
    with client(server, "tank/v") as connection:
        in_parts(connection, wire.CMD_WRITE, 256 * MIB, MIB, DATA)
        in_parts(connection, wire.CMD_FLUSH, 1, 0)


def repair(server):
    """Makes the sides of a mirror differ in 256 MiB, and waits until the repair has made them equal."""
    server.ask("inject", "right", "-e", "EIO", "-T", "write", "--name", "broken")
    with client(server, "twins/v") as connection:
        in_parts(connection, wire.CMD_WRITE, 256 * MIB, MIB, DATA, may_fail=True)
    server.ask("clear", "broken")
    while any(pool["mirrors"]["nosync_regions"] for pool in server.json("status")["pools"] if pool["mirrors"]):
        time.sleep(0.05)


def trim(server):
    """Trims 1 TiB."""
    with client(server, "wide/v") as connection:
        in_parts(connection, wire.CMD_TRIM, 1 << 40, 2 * GIB)


@contextlib.contextmanager
def client(server, volume):
    with contextlib.closing(server.connect(volume)) as connection:
        yield connection


def in_parts(connection, command, length, part, data=b"", may_fail=False):
    """Asks for this many bytes from the beginning of the volume, part by part, with `DEPTH` requests in flight."""
    offsets = list(range(0, length, part or length))
    for number, offset in enumerate(offsets):
        connection.request(command, offset, part, data=data)
        if number >= DEPTH:
            answered(connection, may_fail)
    for _ in offsets[-DEPTH:]:
        answered(connection, may_fail)


def answered(connection, may_fail):
    error = connection.simple_reply().error
    if error and not may_fail:
        raise RuntimeError(f"a request of a neighbour was answered with error {error}")
