"""Connections come and go by the thousand and leave nothing behind."""

import os
import re

import pytest
import wire
from conftest import eventually
from wire import Wire

HALF_OPEN = 300


def threads(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/task"))


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def resident(daemon):
    with open(f"/proc/{daemon.pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) << 10


def connect_and_drop(daemon, count):
    """Half of the connections end in the middle of a request, the other half after one."""
    for i in range(count):
        client = Wire(daemon.connect())
        client.go("d")
        if i % 2:
            client.send(wire.request(wire.CMD_WRITE, 0, 1 << 20) + bytes(50_000))
        else:
            assert client.in_step()
        client.close()


def test_ten_thousand_connections_leave_nothing_behind(daemon):
    threads_before, descriptors_before = threads(daemon), descriptors(daemon)
    connect_and_drop(daemon, 1000)
    eventually(lambda: descriptors(daemon) <= descriptors_before, "no descriptor left")
    resident_before = resident(daemon)
    connect_and_drop(daemon, 9000)
    eventually(lambda: descriptors(daemon) <= descriptors_before, "no descriptor left")
    assert threads(daemon) == threads_before
    assert resident(daemon) - resident_before < 9000 * 1024, "1 KiB and more for each connection"
    eventually(lambda: not daemon.disk()["clients"], "no client left")


def test_held_requests_of_clients_that_left_are_given_back(daemon):
    # Count the descriptors before the test runs any command: for a moment, a command's connection to the API may
    # outlive the command, and would be counted.
    descriptors_before = descriptors(daemon)
    daemon.cli("inject", "d", "-D", "60m")
    for _ in range(200):
        client = Wire(daemon.connect())
        client.go("d")
        client.send(b"".join(wire.request(wire.CMD_READ, 0, 4096, cookie=i) for i in range(50)))
        client.close()
    eventually(lambda: descriptors(daemon) <= descriptors_before, "no descriptor left")
    eventually(lambda: not daemon.disk()["in_flight"], "nothing in flight")


def test_half_open_handshakes_give_way(daemon):
    """The daemon closes the oldest handshake when another client waits, long before the handshake times out."""
    idle = [Wire(daemon.connect()) for _ in range(HALF_OPEN)]
    client = Wire(daemon.connect())
    client.go("d")
    assert client.in_step()
    with pytest.raises(wire.Closed):
        idle[0].take(1 << 20)
    younger = idle[HALF_OPEN // 2]
    younger.greet()
    assert younger.option(wire.OPT_LIST), "as many are left as there are places"


def test_a_sparse_ram_disk_takes_at_most_twice_the_memory_that_was_written(serve):
    daemon = serve("-d", "d=ram,size=4G", "--overcommit", "--events", "0")
    client = Wire(daemon.connect())
    client.go("d")
    # Writes that lie far apart, in an order of their own.
    write = lambda n: wire.request(wire.CMD_WRITE, n * 0x9E3779B1 % (1 << 20) * 4096, 4096, cookie=n) + b"x" * 4096

    def writes(numbers):
        for at in range(numbers.start, numbers.stop, 32):
            some = range(at, at + 32)
            client.send(b"".join(map(write, some)))
            for _ in some:
                client.simple_reply(0)

    writes(range(64))
    before = resident(daemon)
    writes(range(64, 64 + 8192))
    assert resident(daemon) - before <= 2 * 8192 * 4096


@pytest.mark.slow
def test_a_handshake_without_an_end_is_ended(daemon):
    idle, client = Wire(daemon.connect()), Wire(daemon.connect())
    client.go("d")
    with pytest.raises(wire.Closed):
        idle.take(1 << 20)
    assert client.in_step(), "a client in transmission has no time-out"


def test_a_client_that_does_not_read_does_not_stop_the_others(serve):
    daemon = serve("-d", "a=ram,size=64M", "-d", "b=ram,size=64M")
    deaf = Wire(daemon.connect())
    deaf.go("a")
    deaf.send(b"".join(wire.request(wire.CMD_READ, 0, 4 << 20, cookie=i) for i in range(200)))
    for disk in ("a", "b"):
        other = Wire(daemon.connect())
        other.go(disk)
        assert all(other.in_step() for _ in range(100))
    assert resident(daemon) < 512 << 20
    deaf.close()
