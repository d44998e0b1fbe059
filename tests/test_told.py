"""A power cut takes what no client was told of, whatever rule holds it."""

import itertools

import pytest
from conftest import eventually
from pools import VOLUME, lab
from timed import Client, nbd

HOLDS = ["-D 60s", "-D 60s --mode add", "--hang"]


def crash(daemon, *words):
    (said,) = daemon.json("crash", *words)
    return said


def serve_lossy(serve, directory, store):
    if store == "file":
        image = directory / "d.img"
        image.write_bytes(bytes(1 << 20))
        store = f"file:{image}"
    return serve("-d", f"d=lossy:{store},size=1M")


def data(byte, length=4096):
    return nbd.Buffer.from_bytearray(bytearray(byte * length))


def await_in_flight(daemon, client, count=1):
    client.handle.poll(0)
    eventually(lambda: daemon.disk()["in_flight"] == count, f"{count} in flight")


def held_flush(daemon, hold, keep):
    """An acknowledged write, and a flush that a rule holds: the write is unflushed."""
    client = Client(daemon)
    daemon.cli("inject", "d", *hold.split(), "-T", "flush")
    client.handle.pwrite(b"1" * 4096, 0)
    client.handle.aio_flush()
    await_in_flight(daemon, client)
    said = crash(daemon, "d", "--keep", keep, "--restart")
    write, nothing = {"writes": 1, "bytes": 4096}, {"writes": 0, "bytes": 0}
    assert said["unflushed"] == write and said["lost"] == (write if keep == "none" else nothing)
    return b"1" * 4096 if keep == "all" else bytes(4096)


def held_fua(types):
    """A write with FUA that a rule holds has not happened."""

    def held(daemon, hold, keep):
        client = Client(daemon)
        daemon.cli("inject", "d", *hold.split(), "-T", types)
        client.handle.aio_pwrite(data(b"1"), 0, flags=nbd.CMD_FLAG_FUA)
        await_in_flight(daemon, client)
        said = crash(daemon, "d", "--keep", keep, "--restart")
        assert said["unflushed"]["writes"] == said["lost"]["writes"] == 0
        return bytes(4096)

    return held


CASES = [held_flush, *map(held_fua, ["write", "flush", "fua"])]


@pytest.mark.parametrize("store, keeps", [("ram", ["none", "all"]), ("file", ["none"])])
def test_what_no_client_was_told_of_has_not_happened(serve, directory, store, keeps):
    daemon = serve_lossy(serve, directory, store)
    for case, hold, keep in itertools.product(CASES, HOLDS, keeps):
        left = case(daemon, hold, keep)
        daemon.cli("clear", "all")
        client = Client(daemon).handle
        assert client.pread(4096, 0) == left, (case, hold, keep)
        client.zero(4096, 0)
        client.flush()


@pytest.mark.parametrize("store", ["ram", "file"])
def test_a_write_that_is_acknowledged_while_a_flush_is_held_stays_volatile(serve, directory, store):
    daemon = serve_lossy(serve, directory, store)
    client = Client(daemon)
    client.handle.pwrite(b"1" * 512, 0)
    daemon.cli("inject", "d", "-D", "60s", "-T", "flush", "--name", "slow")
    flush = client.flush()
    await_in_flight(daemon, client)
    client.handle.pwrite(b"2" * 512, 512)
    daemon.cli("clear", "d", "--release")
    client.wait(flush)
    assert flush.error == 0
    said = crash(daemon, "d", "--keep", "none", "--restart")
    assert [write["offset_bytes"] for write in said["writes"]] == [512]
    assert Client(daemon).handle.pread(1024, 0) == b"1" * 512 + bytes(512)


@pytest.mark.parametrize("store", ["ram", "file"])
def test_a_client_that_hangs_up_before_the_reply_was_not_told(serve, directory, store):
    daemon = serve_lossy(serve, directory, store)
    client, other = Client(daemon), Client(daemon).handle
    daemon.cli("inject", "d", "-D", "60s", "-T", "write", "--first", "1")
    client.handle.aio_pwrite(data(b"1", 512), 0)
    await_in_flight(daemon, client)
    assert other.pread(512, 0) == b"1" * 512, "reads see a held write at once"
    client.close()
    eventually(lambda: daemon.disk()["in_flight"] == 0, "nothing in flight")
    other.pwrite(b"2" * 512, 512)
    other.flush()
    said = crash(daemon, "d", "--keep", "all", "--restart")
    assert said["lost"]["writes"] == 0
    assert Client(daemon).handle.pread(1024, 0) == bytes(512) + b"2" * 512


@pytest.mark.parametrize("hold", HOLDS)
def test_a_pool_loses_what_its_disks_were_not_told_to_have_flushed(serve, directory, hold):
    daemon = serve(lab(directory, "none", "stripe", "lossy:ram", size="1M")[0])
    client = Client(daemon, VOLUME)
    for disk in "ab":
        daemon.cli("inject", disk, *hold.split(), "-T", "flush")
    client.handle.pwrite(b"1" * 65536, 0)
    client.handle.aio_flush()
    client.handle.poll(0)
    eventually(lambda: any(daemon.disk(disk)["in_flight"] for disk in "ab"), "flushes at the disks")
    said = crash(daemon, "tank", "--keep", "none", "--restart")
    assert sum(disk["lost"]["bytes"] for disk in said["disks"]) > 0
    daemon.cli("clear", "all")
    assert Client(daemon, VOLUME).handle.pread(65536, 0) == bytes(65536)
