"""Transmission: a bad request gets the protocol's error, and the stream stays in step."""

import errno
import random
import struct

import pytest
import wire
from conftest import eventually
from wire import CMD_READ, CMD_TRIM, CMD_WRITE, CMD_ZEROES, EINVAL, ENOSPC, EPERM, Wire

nbd = pytest.importorskip("nbd", reason="python3-libnbd is missing: make deps")

SIZE = 64 << 20
READ_ONLY_COMMANDS = [CMD_WRITE, CMD_TRIM, CMD_ZEROES]


@pytest.fixture
def client(daemon):
    client = Wire(daemon.connect())
    client.go("d")
    return client


def payload(command, length):
    return bytes(length) if command == CMD_WRITE else b""


def libnbd(daemon, disk="d", **setters):
    """A libnbd client that sends even invalid requests."""
    handle = nbd.NBD()
    handle.set_strict_mode(0)
    for name, value in setters.items():
        getattr(handle, name)(value)
    handle.connect_uri(daemon.uri(disk))
    return handle


def fails(expected, call, *arguments):
    with pytest.raises(nbd.Error) as caught:
        call(*arguments)
    assert caught.value.errno == errno.errorcode[expected]


# Invalid requests.

PAST_THE_END = {
    "across": (SIZE - 512, 1024),
    "behind": (SIZE, 512),
    "far behind": (1 << 62, 512),
    "wrapping around": (2**64 - 512, 1024),
}


@pytest.mark.parametrize(
    "command, error",
    [
        (CMD_READ, EINVAL),
        (CMD_WRITE, ENOSPC),
        (CMD_TRIM, EINVAL),
        (CMD_ZEROES, ENOSPC),
    ],
)
@pytest.mark.parametrize("case", PAST_THE_END)
def test_past_the_end(client, command, error, case):
    offset, length = PAST_THE_END[case]
    assert client.call(command, offset, length, data=payload(command, length)) == error
    assert client.in_step()


@pytest.mark.parametrize("command", [CMD_READ, CMD_WRITE, CMD_TRIM, CMD_ZEROES])
@pytest.mark.parametrize("offset, length", [(512, 4096), (0, 4095), (1, 1)])
def test_not_aligned(serve, command, offset, length):
    client = Wire(serve("-d", "d=ram,size=64M,block=4K").connect())
    client.go("d")
    assert client.call(command, offset, length, data=payload(command, length)) == EINVAL
    assert client.in_step()


@pytest.mark.parametrize("command", [9, 77, 0xFFFF])
def test_unknown_command(client, command):
    assert client.call(command, 0, 512) == EINVAL
    assert client.in_step()


@pytest.mark.parametrize("command", [CMD_READ, CMD_WRITE, CMD_TRIM, CMD_ZEROES])
@pytest.mark.parametrize("flag", [1 << 9, 1 << 15])
def test_unknown_flag(client, command, flag):
    assert client.call(command, 0, 4096, flag, payload(command, 4096)) == EINVAL
    assert client.in_step()


def test_flags_of_other_commands(client):
    assert client.call(CMD_READ, 0, 4096, wire.FLAG_NO_HOLE) == EINVAL
    assert client.call(CMD_WRITE, 0, 4096, wire.FLAG_REQ_ONE, bytes(4096)) == EINVAL
    assert client.in_step()


def test_block_status_without_a_context(client):
    assert client.call(wire.CMD_STATUS, 0, 4096) == EINVAL
    assert client.in_step()


@pytest.mark.parametrize("length", [(32 << 20) + 1, 48 << 20])
def test_a_read_larger_than_the_limit(client, length):
    assert client.call(CMD_READ, 0, length) == EINVAL
    assert client.in_step()


def test_a_write_larger_than_the_limit(daemon, client):
    """The server may read a payload beyond the limit and refuse it, or close the connection, but must not get
    out of step."""
    try:
        assert client.call(CMD_WRITE, 0, (32 << 20) + 512, data=bytes((32 << 20) + 512)) == EINVAL
        assert client.in_step()
    except (wire.Closed, BrokenPipeError, ConnectionResetError):
        pass
    fresh = Wire(daemon.connect())
    fresh.go("d")
    assert fresh.in_step()


def test_the_largest_request_works(client):
    data = bytes(range(256)) * (32 << 12)
    assert client.call(CMD_WRITE, 4096, len(data), data=data) == 0
    client.request(CMD_READ, 4096, len(data))
    assert client.simple_reply(len(data)).data == data


@pytest.mark.parametrize("command", [CMD_TRIM, CMD_ZEROES])
def test_trim_and_zero_may_be_larger_than_a_payload(client, command):
    assert client.call(command, 0, SIZE) in (0, EINVAL, errno.EOVERFLOW)
    assert client.in_step()


@pytest.mark.parametrize("command", [CMD_READ, CMD_WRITE, CMD_TRIM, CMD_ZEROES])
def test_a_request_of_no_length_is_answered(client, command):
    assert client.call(command, 4096, 0) in (0, EINVAL, ENOSPC)
    assert client.in_step()


@pytest.mark.parametrize("command", READ_ONLY_COMMANDS)
def test_a_read_only_disk(serve, command):
    client = Wire(serve("-d", "d=ram,size=64M,ro").connect())
    client.go("d")
    assert client.call(command, 0, 4096, data=payload(command, 4096)) == EPERM
    assert client.call(wire.CMD_FLUSH) in (0, EINVAL)
    assert client.in_step()


def test_libnbd_sees_the_same_errors(daemon):
    """libnbd, which negotiates structured replies, must get the same errors."""
    handle = libnbd(daemon)
    assert handle.get_structured_replies_negotiated()
    fails(EINVAL, handle.pread, 1024, SIZE - 512)
    fails(ENOSPC, handle.pwrite, bytes(1024), SIZE - 512)
    fails(EINVAL, handle.trim, 1024, SIZE - 512)
    fails(ENOSPC, handle.zero, 1024, SIZE - 512)
    fails(EINVAL, handle.pread, 40 << 20, 0)
    assert handle.pread(4096, 0) == bytes(4096)
    handle.shutdown()


# Valid requests.


def test_pipelined_requests_are_each_answered_once(client):
    for i in range(256):
        data = struct.pack(">Q", i) * 64
        client.send(wire.request(CMD_WRITE, i * 512, 512, cookie=i) + data)
    assert sorted(client.simple_reply().cookie for _ in range(256)) == list(range(256))
    client.send(b"".join(wire.request(CMD_READ, i * 512, 512, cookie=i) for i in range(256)))
    replies = [client.simple_reply(512) for _ in range(256)]
    assert all(reply == (0, reply.cookie, struct.pack(">Q", reply.cookie) * 64) for reply in replies)
    assert len({reply.cookie for reply in replies}) == 256


def test_disc_answers_what_is_outstanding_and_closes(client):
    client.send(wire.request(CMD_READ, 0, 512, cookie=3) + wire.request(wire.CMD_DISC, cookie=4))
    assert client.simple_reply(512) == (0, 3, bytes(512))
    assert client.is_closed_by_server()


def test_a_wrong_magic_ends_the_connection(daemon, client):
    client.send(b"\0" * 28)
    assert client.is_closed_by_server()
    fresh = Wire(daemon.connect())
    fresh.go("d")
    assert fresh.in_step()


def test_unfragmented_reads_come_in_one_chunk(daemon):
    handle = libnbd(daemon)
    handle.pwrite(b"\x5a" * (128 << 10), 64 << 10)
    chunks = []

    def chunk(data, offset, status, _error):
        chunks.append((offset, len(data), status))

    data = handle.pread_structured(256 << 10, 0, chunk, nbd.CMD_FLAG_DF)
    assert data == bytes(64 << 10) + b"\x5a" * (128 << 10) + bytes(64 << 10)
    assert chunks == [(0, 256 << 10, nbd.READ_DATA)]


def test_structured_and_simple_replies_carry_the_same(daemon):
    simple = libnbd(daemon, set_request_structured_replies=False)
    structured = libnbd(daemon)
    assert not simple.get_structured_replies_negotiated()
    simple.pwrite(b"\x77" * 8192, 12288)
    assert simple.pread(65536, 0) == structured.pread(65536, 0)


def status(handle, length, offset, flags=0):
    """The extents of `base:allocation` as pairs of length and flags."""
    extents = []

    def take(_context, _offset, entries, _error):
        extents.extend(zip(entries[::2], entries[1::2]))

    handle.block_status(length, offset, take, flags)
    return extents


def test_block_status_tells_data_from_holes(daemon):
    handle = libnbd(daemon, add_meta_context="base:allocation")
    handle.pwrite(b"\1" * (1 << 20), 4 << 20)
    extents = status(handle, 16 << 20, 0)
    assert extents[0][1] == nbd.STATE_HOLE | nbd.STATE_ZERO and extents[0][0] == 4 << 20
    assert extents[1] == (1 << 20, 0)
    (one,) = status(handle, 2 << 20, 0, nbd.CMD_FLAG_REQ_ONE)
    assert one[0] <= 2 << 20
    fails(EINVAL, status, handle, 1024, SIZE - 512)
    handle.trim(1 << 20, 4 << 20)
    assert all(flags & nbd.STATE_ZERO for _length, flags in status(handle, 16 << 20, 0))


def test_zeroing_keeps_its_neighbours(daemon):
    handle = libnbd(daemon)
    handle.pwrite(b"\x33" * 65536, 0)
    handle.zero(1000, 5000)
    handle.zero(8192, 16384, nbd.CMD_FLAG_NO_HOLE)
    expected = bytearray(b"\x33" * 65536)
    expected[5000:6000] = bytes(1000)
    expected[16384:24576] = bytes(8192)
    assert handle.pread(65536, 0) == expected


def test_fua_is_accepted_by_every_write(daemon):
    handle = libnbd(daemon)
    handle.pwrite(b"\1" * 4096, 0, nbd.CMD_FLAG_FUA)
    handle.zero(4096, 0, nbd.CMD_FLAG_FUA)
    handle.trim(4096, 0, nbd.CMD_FLAG_FUA)
    handle.flush()
    assert handle.pread(4096, 0) == bytes(4096)


def test_connections_see_each_others_writes(daemon):
    writer, reader = libnbd(daemon), libnbd(daemon)
    assert writer.can_multi_conn()
    for i in range(50):
        writer.pwrite(bytes([i]) * 512, i * 512)
        assert reader.pread(512, i * 512) == bytes([i]) * 512


# Clients that vanish.

MID_REQUEST = {
    "in a header": wire.request(CMD_READ, 0, 512)[:13],
    "before a payload": wire.request(CMD_WRITE, 0, 4096),
    "in a payload": wire.request(CMD_WRITE, 0, 1 << 20) + bytes(300_000),
    "with replies unread": wire.request(CMD_READ, 0, 4 << 20) * 4,
    "with a request held": wire.request(CMD_TRIM, 0, 4096),
    "after a request that makes no sense": wire.request(77, 0, 0),
}


@pytest.mark.parametrize("case", MID_REQUEST)
def test_a_client_may_vanish_in_mid_request(daemon, case):
    daemon.cli("inject", "d", "--hang", "-T", "trim")
    for _ in range(20):
        client = Wire(daemon.connect())
        client.go("d")
        client.send(MID_REQUEST[case])
        client.close()
    eventually(lambda: not daemon.disk()["clients"], "no client")
    fresh = Wire(daemon.connect())
    fresh.go("d")
    assert fresh.in_step()


def test_a_write_cut_short_changes_nothing(daemon):
    client = Wire(daemon.connect())
    client.go("d")
    client.send(wire.request(CMD_WRITE, 0, 1 << 20) + b"\xee" * (512 << 10))
    client.close()
    eventually(lambda: not daemon.disk()["clients"], "no client")
    fresh = Wire(daemon.connect())
    fresh.go("d")
    fresh.request(CMD_READ, 0, 1 << 20)
    assert fresh.simple_reply(1 << 20).data == bytes(1 << 20)


@pytest.mark.parametrize("seed", range(4))
def test_random_requests_are_each_answered_once(daemon, client, seed):
    """Each of many random requests must get exactly one reply, and the daemon must understand the next
    request."""
    draw = random.Random(seed)
    lengths = {}
    for cookie in range(500):
        command = draw.choice([*range(2), *range(3, 10), 0xFFFF])
        flags = draw.choice([0, 0, 0, draw.getrandbits(16), 1 << draw.randrange(16)])
        offset = draw.choice([0, draw.randrange(SIZE), SIZE - draw.randrange(8192), draw.getrandbits(64)])
        length = draw.choice([0, 1, 512, 4096, draw.randrange(65536)])
        lengths[cookie] = length if command == CMD_READ else 0
        client.request(command, offset, length, flags, cookie, payload(command, length))
        if cookie % 20 == 19:
            for _ in range(20):
                take_reply(client, lengths)
    assert lengths == {}
    assert client.in_step()


def take_reply(client, lengths):
    magic, error, cookie = client.unpack(">IIQ")
    assert magic == wire.SIMPLE_REPLY and error in (0, EINVAL, ENOSPC)
    client.take(0 if error else lengths[cookie])
    del lengths[cookie]
