"""What clients can make a shard hold is bounded, and what one of them holds keeps nobody out."""

import json
import socket
import threading

import wire
from conftest import eventually
from test_leaks import descriptors, resident
from wire import Wire

MIB = 1 << 20
LARGEST = 32 * MIB
# SPECIFICATION.md, "Bounds": 256 MiB of payload, one request beyond it, and room for the rest.
HELD_MAX = 256 * MIB + LARGEST
SLACK = 96 * MIB


def file_disk(serve, directory, size, *words):
    image = directory / "d.img"
    with open(image, "wb") as file:
        file.truncate(size)
    return serve("-d", f"d=file:{image}", *words)


def enter(daemon, disk="d", plain=None):
    client = Wire(plain or daemon.connect())
    client.go(disk)
    return client


def test_large_reads_of_a_file_that_nobody_takes(serve, directory):
    """Sixty-four of the largest reads are 1.8 KB of requests and 2 GiB of replies."""
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
    """Answers to bad requests hold bytes of their own; reading must not outrun sending."""
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
    """Nine headers, 252 bytes, announce more than there is room for."""
    greedy = [enter(daemon) for _ in range(9)]
    for client in greedy:
        client.send(wire.request(wire.CMD_WRITE, 0, LARGEST))
    modest = enter(daemon)
    for _ in range(50):
        assert modest.in_step()
        assert modest.call(wire.CMD_WRITE, 0, 4096, data=bytes(4096)) == 0


def test_a_peer_that_goes_away_over_tcp_is_noticed_while_it_is_not_read(serve):
    """With TCP the end of the stream is no hang-up: it shows only to those who look for it."""
    daemon = serve("-d", "d=ram,size=64M", "-r", "--hang", "--nbd", "tcp:127.0.0.1:0")
    # Not from `status`: its connection to the API may still be there when descriptors are counted.
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
    """Four gigabytes of zeroes take their time; a read of another disk does not wait for them."""
    daemon = serve("-d", "big=ram,size=5G", "-d", "d=ram,size=64M", "--shards", "1", "--overcommit")
    big, small = enter(daemon, "big"), enter(daemon)
    big.request(wire.CMD_ZEROES, 0, 1 << 30, flags=wire.FLAG_NO_HOLE, cookie=7)
    assert small.in_step()
    assert daemon.disk("big")["in_flight"] == 1, "the zeroes were all written before the read"
    assert big.simple_reply().cookie == 7
