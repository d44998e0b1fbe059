"""The memory that clients can make a shard hold is bounded, and one client's share does not keep others out."""

import contextlib
import json
import resource
import socket
import struct
import threading

import pytest
import wire
from conftest import HANG_LIMIT, eventually
from test_leaks import descriptors, resident
from wire import Wire

MIB = 1 << 20
LARGEST = 32 * MIB
# SPECIFICATION.md, "Bounds": 256 MiB of payload, and one request beyond the bound. `SLACK` is room for all other
# memory.
HELD_MAX = 256 * MIB + LARGEST
SLACK = 96 * MIB
# The bound of all API answers together.
ANSWERS_MAX = 256 * MIB
# The bound on the memory that connections use in addition to their requests.
KEPT_MAX = 64 * MIB


def file_disk(serve, directory, size, *words):
    image = directory / "d.img"
    with open(image, "wb") as file:
        file.truncate(size)
    return serve("-d", f"d=file:{image}", *words)


def enter(daemon, disk="d", plain=None):
    client = Wire(plain or daemon.connect())
    client.go(disk)
    return client


@pytest.fixture
def descriptor_limit():
    """Raises the limit of open files as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_large_reads_of_a_file_that_nobody_takes(serve, directory):
    """A client asks for 64 reads of the largest size, with requests of 1.8 KB in all, and does not take the
    replies of 2 GiB."""
    daemon = file_disk(serve, directory, LARGEST)
    before = resident(daemon)
    client = enter(daemon)
    client.send(b"".join(wire.request(wire.CMD_READ, 0, LARGEST, cookie=i) for i in range(64)))
    eventually(lambda: daemon.disk()["stalls"] > 0, "the connection is not read on")
    assert resident(daemon) - before < HELD_MAX + SLACK
    for i in range(64):
        assert client.simple_reply(LARGEST).error == 0
    assert client.in_step()


def test_large_writes_that_are_held(serve):
    daemon = serve("-d", "d=ram,size=64M", "-r", "-D 60m --mode add")
    before = resident(daemon)
    clients = [enter(daemon) for _ in range(4)]

    def flood(client):
        try:
            for i in range(8):
                client.send(wire.request(wire.CMD_WRITE, 0, LARGEST, cookie=i) + bytes(LARGEST))
        except OSError:
            pass

    threads = [threading.Thread(target=flood, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    eventually(lambda: daemon.disk()["stalls"] > 0, "a connection is not read on")
    assert resident(daemon) - before < HELD_MAX + SLACK
    for client in clients:
        client.plain.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    eventually(lambda: daemon.disk()["in_flight"] == 0, "nothing is held any more")


def test_bad_requests_from_many_that_read_every_answer(daemon):
    """Many clients send bad requests and read every answer. Answers to bad requests need memory, too, so the
    daemon must not read faster than it sends."""
    clients = [enter(daemon) for _ in range(50)]
    before = resident(daemon)
    batch = b"".join(wire.request(99, cookie=i) for i in range(2000))

    def ask(client):
        for _ in range(5):
            sender = threading.Thread(target=client.send, args=(batch,))
            sender.start()
            for i in range(2000):
                assert client.simple_reply().error == wire.EINVAL
            sender.join()

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert resident(daemon) - before < SLACK
    assert all(client.in_step() for client in clients)


def test_announced_payloads_keep_nobody_out(daemon):
    """Nine headers, 252 bytes in all, announce more payload than there is room for; other clients must still
    be served."""
    greedy = [enter(daemon) for _ in range(9)]
    for client in greedy:
        client.send(wire.request(wire.CMD_WRITE, 0, LARGEST))
    modest = enter(daemon)
    for _ in range(50):
        assert modest.in_step()
        assert modest.call(wire.CMD_WRITE, 0, 4096, data=bytes(4096)) == 0


def test_a_quarter_of_a_megabyte_passes_to_the_byte(daemon):
    """A shard whose payload memory is full still accepts a request with a payload of up to 256 KiB; the
    header does not count."""
    greedy = [enter(daemon) for _ in range(9)]
    for client in greedy:
        client.send(wire.request(wire.CMD_WRITE, 0, LARGEST))
    stalls = eventually(lambda: daemon.disk()["stalls"], "the shard is full")
    modest = enter(daemon)
    assert modest.call(wire.CMD_WRITE, 0, 256 << 10, data=b"\x5a" * (256 << 10)) == 0
    assert daemon.disk()["stalls"] <= max(stalls, 9 - 4), "it did not wait"


def test_dripping_payloads_starve_nobody(daemon):
    """Clients send a byte now and then, so that they are never silent for long but never complete their requests. They
    must not starve other clients.
    """
    slow = [enter(daemon) for _ in range(6)]
    for client in slow:
        client.send(wire.request(wire.CMD_WRITE, 0, LARGEST))
        client.plain.setblocking(False)
    eventually(lambda: daemon.disk()["stalls"] > 0, "the shard is full")
    over = threading.Event()

    def drip():
        while not over.wait(0.1):
            for client in slow:
                with contextlib.suppress(OSError):
                    client.plain.send(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        honest = enter(daemon)
        assert honest.call(wire.CMD_WRITE, 0, MIB, data=bytes(MIB)) == 0
    finally:
        over.set()
        dripping.join()


def test_connections_that_take_no_replies(daemon, descriptor_limit):
    """A thousand connections together may keep only as many bytes as the bound for all connections allows."""
    batch = b"".join(wire.request(wire.CMD_READ, 0, 1 << 16, cookie=i) for i in range(40_000))
    clients = [enter(daemon) for _ in range(1000)]
    before = resident(daemon)
    for client in clients:
        client.plain.setblocking(False)

    def more(client):
        try:
            return client.plain.send(batch)
        except BlockingIOError:
            return 0

    eventually(lambda: sum(map(more, clients)) == 0, "nobody is read any more")
    assert resident(daemon) - before < KEPT_MAX + SLACK
    other = enter(daemon)
    assert all(other.in_step() for _ in range(100))


def test_replies_of_a_block_status_are_bounded_in_a_pass(serve, directory):
    """A pass takes up to 64 requests from a connection, but a connection may have only 16 replies about block
    status, because the shard keeps the bytes of such replies in memory."""
    daemon = serve("-d", "d=ram,size=64M")
    writer = enter(daemon)
    for i in range(512):
        assert writer.call(wire.CMD_WRITE, i << 17, 512, data=b"x" * 512) == 0
    before = resident(daemon)
    clients = []
    for _ in range(400):
        client = Wire(daemon.connect())
        client.greet()
        client.option(wire.OPT_STRUCTURED_REPLY)
        client.option(
            wire.OPT_SET_META_CONTEXT, struct.pack(">I", 1) + b"d" + struct.pack(">II", 1, 15) + b"base:allocation"
        )
        client.option(wire.OPT_GO, wire.export("d"))
        client.plain.setblocking(False)
        clients.append(client)
    batch = b"".join(wire.request(wire.CMD_STATUS, 0, 64 * MIB, cookie=i) for i in range(1000))
    for client in clients:
        client.plain.send(batch)
    other = enter(daemon)
    assert all(other.in_step() for _ in range(1000))
    assert resident(daemon) - before < KEPT_MAX + SLACK


def test_a_peer_that_goes_away_over_tcp_is_noticed_while_it_is_not_read(serve):
    """The daemon must notice that a peer has gone while it does not read from that peer. On TCP, epoll does not report
    the end of the stream as a hang-up, so the shard must look for it.
    """
    daemon = serve("-d", "d=ram,size=64M", "-r", "--hang", "--nbd", "tcp:127.0.0.1:0")
    # `status` is not used here: its own connection to the API may still be open when descriptors are counted.
    (disk,) = json.loads(daemon.ready.read_text())["exports"]
    (uri,) = [uri for uri in disk["uris"] if uri.startswith("nbd://")]
    host, port = uri.removeprefix("nbd://").split("/")[0].rsplit(":", 1)
    before = descriptors(daemon)
    for good_bye in (b"", wire.request(wire.CMD_DISC)):
        client = enter(daemon, plain=socket.create_connection((host, int(port))))
        client.send(wire.request(wire.CMD_READ, 0, 4096) + good_bye)
        eventually(lambda: daemon.disk()["in_flight"] == 1, "the read hangs")
        client.close()
        eventually(lambda: daemon.disk()["in_flight"] == 0, "the read is aborted")
    eventually(lambda: descriptors(daemon) == before, "no descriptor left")


def test_what_was_asked_before_a_good_bye_is_done(serve):
    daemon = serve("-d", "d=ram,size=64M", "-r", "-D 300ms --mode add -T write")
    client = enter(daemon)
    client.send(wire.request(wire.CMD_WRITE, 0, 4096) + b"\x5a" * 4096 + wire.request(wire.CMD_DISC))
    eventually(lambda: daemon.disk()["in_flight"] == 1, "the write is held")
    client.close()
    eventually(lambda: not daemon.disk()["clients"], "the connection has ended")
    reader = enter(daemon)
    reader.request(wire.CMD_READ, 0, 4096)
    assert reader.simple_reply(4096).data == b"\x5a" * 4096


def test_long_work_in_memory_lets_others_through(serve):
    """Zeroing four gigabytes takes long, but a read of another disk does not wait for it."""
    daemon = serve("-d", "big=ram,size=5G", "-d", "d=ram,size=64M", "--shards", "1", "--overcommit")
    big, small = enter(daemon, "big"), enter(daemon)
    big.request(wire.CMD_ZEROES, 0, 1 << 30, flags=wire.FLAG_NO_HOLE, cookie=7)
    assert small.in_step()
    assert daemon.disk("big")["in_flight"] == 1, "the zeroes were all written before the read"
    assert big.simple_reply().cookie == 7


def ask(daemon, path):
    """Sends a request to the API, and leaves the answer in the socket."""
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.settimeout(HANG_LIMIT)
    caller.connect(str(daemon.api))
    caller.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return caller


def told(caller):
    """Reads an answer: its status, and its whole text."""
    with caller, caller.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")
    if not head:
        raise ConnectionResetError
    return int(head.split()[1]), head.decode().lower(), body


def test_answers_that_nobody_takes_have_a_total(serve):
    daemon = serve("-d", "d=ram,size=1M")
    daemon.cli("load", daemon.uri("d"), "--time", "500ms", "--depth", "32")
    before = resident(daemon)
    whole = "/v1/events?after=0&limit=10000"
    status, _, body = told(ask(daemon, whole))
    assert status == 200 and len(body) > MIB
    slow = [ask(daemon, whole) for _ in range(ANSWERS_MAX // len(body) + 10)]

    def refused():
        # By now, a busy daemon may have dropped the callers of the first answers, so that memory for answers is
        # free again. So send one more request.
        slow.append(ask(daemon, whole))
        try:
            status, head, body = told(ask(daemon, whole))
        except ConnectionError:
            # A busy daemon may read a request so late that the request's time is up.
            return None
        refusal = json.loads(body) if status == 503 else None
        # A busy daemon may also refuse for another reason: it may have been busy with the answers to other callers
        # for too long.
        return (head, refusal) if refusal and "of 256 MiB" in refusal["error"] else None

    head, refusal = eventually(refused, "the answers take all that they may")
    assert "retry-after: 1" in head
    assert "ask again" in refusal["remedy"]
    assert resident(daemon) - before < ANSWERS_MAX + SLACK
    # Small answers still come, including those about memory.
    memory = json.loads(told(ask(daemon, "/v1/status"))[2])["memory"]
    assert memory["answers_max_bytes"] == ANSWERS_MAX
    # On a busy host, the daemon may have given up some callers meanwhile.
    assert ANSWERS_MAX - 4 * len(body) < memory["answers_bytes"] <= ANSWERS_MAX
    assert f"of {ANSWERS_MAX // MIB}M answers" in daemon.cli("status").stdout
    for caller in slow:
        caller.close()
    eventually(lambda: daemon.json("status")["memory"]["answers_bytes"] < MIB, "all is given back")
    assert told(ask(daemon, whole))[0] == 200


def test_list_says_that_a_bound_on_memory_distorts_a_rule(daemon):
    """`list` must say that the bound on memory distorts a rule: waiting writes hold their payload, and the
    shard stops reading a connection that would hold too much."""
    from timed import Client  # noqa: PLC0415 (without libnbd this test alone is skipped)

    client = Client(daemon)
    daemon.cli("inject", "d", "-D", "1ms")
    assert "stalled" not in daemon.cli("list").stdout
    daemon.cli("suspend", "d", "--now")
    requests = [client.write(length=32 << 20) for _ in range(6)]

    def stalls():
        for _ in range(500):
            client.handle.poll(1)
        return daemon.rules()[1]["stalls"]

    eventually(stalls)
    assert daemon.rules()[1]["stalled"] == 1
    stalled = "disk d: connections stalled: 1 now, 1 times since rule 1 was armed"
    assert stalled in daemon.cli("list").stdout
    daemon.cli("resume", "d")
    client.wait(*requests)
    assert daemon.rules()[1]["stalled"] == 0
    # A rule's counts leave out the time before the rule was armed.
    daemon.cli("clear", "all")
    daemon.cli("inject", "d", "-D", "1ms")
    assert daemon.rules()[2]["stalls"] == 0
    assert "stalled" not in daemon.cli("list").stdout
