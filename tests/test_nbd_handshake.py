"""Tests the handshake byte by byte: what the protocol demands, and what a client may do wrong."""

import stat
import struct

import pytest
import wire
from conftest import eventually
from wire import Wire


@pytest.fixture
def daemon(serve):
    return serve("-d", "one=ram,size=1M", "-d", "two=ram,size=2M,ro")


@pytest.fixture
def client(daemon):
    """A client that has completed the greeting."""
    client = Wire(daemon.connect())
    client.greet()
    return client


def last(replies):
    return replies[-1][0]


def serves(daemon):
    """Whether a new client can still connect."""
    fresh = Wire(daemon.connect())
    fresh.go("one")
    return fresh.in_step()


def test_greeting_offers_fixed_newstyle_without_zeroes(daemon):
    flags = Wire(daemon.connect()).greet()
    assert flags & wire.FIXED_NEWSTYLE and flags & wire.NO_ZEROES


def test_go_describes_the_export(daemon):
    client = Wire(daemon.connect())
    size, flags = client.go("one")
    assert size == 1 << 20
    has_flags, read_only, flush, fua = flags & 1, flags & 2, flags & 4, flags & 8
    assert has_flags and not read_only and flush and fua
    assert not flags & 128, "DF is offered only with structured replies"
    assert client.in_step()


def test_go_marks_a_read_only_export(daemon):
    size, flags = Wire(daemon.connect()).go("two")
    assert size == 2 << 20 and flags & 2


def test_the_first_export_is_the_default_one(daemon):
    size, _flags = Wire(daemon.connect()).go("")
    assert size == 1 << 20


def test_info_then_go_say_the_same(client):
    info = client.option(wire.OPT_INFO, wire.export("one", [wire.INFO_BLOCK_SIZE]))
    again = client.option(wire.OPT_GO, wire.export("one", [wire.INFO_BLOCK_SIZE]))
    assert last(info) == wire.REP_ACK and info == again
    (sizes,) = [data for kind, data in info if kind == wire.REP_INFO and data[:2] == b"\0\3"]
    minimum, preferred, maximum = struct.unpack(">III", sizes[2:])
    assert minimum <= preferred <= maximum and maximum >= 32 << 20
    assert client.in_step()


def test_list_names_every_export_in_order(client):
    replies = client.option(wire.OPT_LIST)
    names = [data[4 : 4 + struct.unpack(">I", data[:4])[0]] for kind, data in replies if kind == wire.REP_SERVER]
    assert names == [b"one", b"two"] and last(replies) == wire.REP_ACK


def test_a_list_tells_nobody_where_a_store_is(serve, directory):
    """TCP clients may be strangers, so a list must tell them the kind and the size of a store, but no
    path."""
    image = directory / "secret.img"
    image.write_bytes(bytes(1 << 20))
    daemon = serve("-d", f"one=file:{image}", "-d", "two=null,size=2G")
    client = Wire(daemon.connect())
    client.greet()
    replies = client.option(wire.OPT_LIST)
    listed = [data[4:].decode() for kind, data in replies if kind == wire.REP_SERVER]
    assert listed == ["onedashpot disk: file, 1M", "twodashpot disk: null, 2G"]
    told = client.option(wire.OPT_INFO, wire.export("one", [wire.INFO_DESCRIPTION]))
    assert b"secret" not in b"".join(data for _kind, data in told)
    assert daemon.disk("one")["store"] == f"file:{image}"


def test_the_socket_is_open_to_its_user_alone(daemon):
    assert stat.S_IMODE(daemon.nbd.stat().st_mode) == 0o600


def test_abort_is_acknowledged_and_ends(client):
    assert client.option(wire.OPT_ABORT) == [(wire.REP_ACK, b"")]
    assert client.is_closed_by_server()


@pytest.mark.parametrize("zeroes", [0, 124])
def test_export_name_enters_transmission(daemon, zeroes):
    client = Wire(daemon.connect())
    client.greet(wire.FIXED_NEWSTYLE | (0 if zeroes else wire.NO_ZEROES))
    client.send_option(wire.OPT_EXPORT_NAME, b"one")
    size, _flags = client.unpack(">QH")
    assert size == 1 << 20 and client.take(zeroes) == bytes(zeroes)
    assert client.in_step()


def test_export_name_of_an_unknown_export_closes(client):
    client.send_option(wire.OPT_EXPORT_NAME, b"three")
    assert client.is_closed_by_server()


@pytest.mark.parametrize("option", [wire.OPT_INFO, wire.OPT_GO])
def test_an_unknown_export_is_an_error_and_no_end(client, option):
    assert last(client.option(option, wire.export("three"))) == wire.REP_ERR_UNKNOWN
    assert last(client.option(wire.OPT_GO, wire.export("one"))) == wire.REP_ACK


@pytest.mark.parametrize("option", [4, 77, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("length", [0, 5, 4000])
def test_unknown_options_are_skipped_with_their_data(client, option, length):
    assert last(client.option(option, bytes(length))) == wire.REP_ERR_UNSUP
    assert last(client.option(wire.OPT_GO, wire.export("one"))) == wire.REP_ACK
    assert client.in_step()


def test_starttls_is_refused(client):
    assert last(client.option(wire.OPT_STARTTLS)) in (wire.REP_ERR_UNSUP, wire.REP_ERR_POLICY)
    assert last(client.option(wire.OPT_GO, wire.export("one"))) == wire.REP_ACK


MALFORMED = {
    "list with data": (wire.OPT_LIST, b"x"),
    "structured reply with data": (wire.OPT_STRUCTURED_REPLY, b"x"),
    "go without data": (wire.OPT_GO, b""),
    "go with a name longer than its data": (wire.OPT_GO, struct.pack(">I", 100) + b"one\0\0"),
    "go with fewer infos than it says": (wire.OPT_GO, struct.pack(">I", 3) + b"one" + struct.pack(">H", 9)),
    "go with data left over": (wire.OPT_GO, wire.export("one") + b"x"),
    "go with the longest length there is": (wire.OPT_GO, struct.pack(">I", 0xFFFFFFFF) + b"one\0\0"),
    "meta context before structured replies": (
        wire.OPT_SET_META_CONTEXT,
        struct.pack(">I", 3) + b"one" + struct.pack(">II", 1, 15) + b"base:allocation",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_option_is_invalid_and_in_step(client, case):
    assert last(client.option(*MALFORMED[case])) == wire.REP_ERR_INVALID
    assert last(client.option(wire.OPT_GO, wire.export("one"))) == wire.REP_ACK
    assert client.in_step()


def context(name, *queries):
    data = struct.pack(">I", len(name)) + name + struct.pack(">I", len(queries))
    return data + b"".join(struct.pack(">I", len(query)) + query for query in queries)


def contexts(replies):
    return [data[4:] for kind, data in replies if kind == wire.REP_META_CONTEXT]


def test_meta_contexts(client):
    assert last(client.option(wire.OPT_STRUCTURED_REPLY)) == wire.REP_ACK
    for queries in ([], [b"base:"], [b"base:allocation"]):
        listed = client.option(wire.OPT_LIST_META_CONTEXT, context(b"one", *queries))
        assert last(listed) == wire.REP_ACK and b"base:allocation" in contexts(listed)
    unknown = client.option(wire.OPT_SET_META_CONTEXT, context(b"one", b"x-other:thing", b"base:"))
    assert last(unknown) == wire.REP_ACK and contexts(unknown) == []
    known = client.option(wire.OPT_SET_META_CONTEXT, context(b"one", b"x-other:thing", b"base:allocation"))
    assert last(known) == wire.REP_ACK and contexts(known) == [b"base:allocation"]
    missing = client.option(wire.OPT_SET_META_CONTEXT, context(b"three", b"base:allocation"))
    assert last(missing) == wire.REP_ERR_UNKNOWN


GARBAGE = {
    "unknown client flags": struct.pack(">I", 0xFFFFFFFF),
    "text": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a wrong option magic": struct.pack(">I", 3) + b"IHAVEOPS" + struct.pack(">II", 3, 0),
    "an option too long to take": struct.pack(">I", 3) + struct.pack(">QII", wire.IHAVEOPT, 7, 0xFFFFFFFF),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_ends_the_connection_and_nothing_else(daemon, case):
    client = Wire(daemon.connect())
    client.take(18)
    client.send(GARBAGE[case])
    client.plain.shutdown(1)
    with pytest.raises(wire.Closed):
        while True:
            client.take(1)
    assert serves(daemon)


HELLO = struct.pack(">I", 3)
GO = struct.pack(">QII", wire.IHAVEOPT, wire.OPT_GO, len(wire.export("one"))) + wire.export("one")


@pytest.mark.parametrize("cut", [0, 2, 4, 12, 20, 24, len(HELLO + GO)])
def test_a_client_may_vanish_in_each_phase(daemon, cut):
    for _ in range(20):
        client = Wire(daemon.connect())
        client.send((HELLO + GO)[:cut])
        client.close()
    assert serves(daemon)
    eventually(lambda: not daemon.disk("one")["clients"], "no client")


def test_a_handshake_may_come_in_pieces(daemon):
    client = Wire(daemon.connect())
    client.take(18)
    for byte in HELLO + GO:
        client.send(bytes([byte]))
    replies = [client.option_reply(wire.OPT_GO)]
    while replies[-1][0] == wire.REP_INFO:
        replies.append(client.option_reply(wire.OPT_GO))
    assert last(replies) == wire.REP_ACK
    assert client.in_step()


def test_requests_may_follow_go_in_the_same_packet(daemon):
    client = Wire(daemon.connect())
    client.send(HELLO + GO + wire.request(wire.CMD_READ, 0, 512, cookie=7))
    client.take(18)
    while client.option_reply(wire.OPT_GO)[0] != wire.REP_ACK:
        pass
    assert client.simple_reply(512) == (0, 7, bytes(512))
