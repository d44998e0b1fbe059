"""Data that a flush has acknowledged survives a power cut: a disk on a `lossy` store, real clients on several
connections, random losses, and a record of every version that each sector may have.
"""

import json
import random

import pytest
from conftest import eventually
from timed import Client, nbd

SECTOR = 512
SECTORS = 64


class Sectors:
    """The possible versions of each sector on the medium: the last flushed version, and every later one."""

    def __init__(self):
        self.possible = [{0} for _ in range(SECTORS)]
        self.latest = [0] * SECTORS

    def wrote(self, first, count, version):
        for sector in range(first, first + count):
            self.possible[sector].add(version)
            self.latest[sector] = version

    def flushed(self, first=0, count=SECTORS):
        for sector in range(first, first + count):
            self.possible[sector] = {self.latest[sector]}

    def found(self, versions):
        """Records the versions that were read after a loss: later reads must return the same versions."""
        for sector, version in enumerate(versions):
            assert version in self.possible[sector], (
                f"sector {sector} has version {version}, not one of {self.possible[sector]}"
            )
            self.latest[sector] = version


def versions(data):
    """The version that each sector has. A sector with two versions would be torn within its 512 bytes."""
    found = []
    for at in range(0, len(data), SECTOR):
        sector = data[at : at + SECTOR]
        assert sector == sector[:4] * (SECTOR // 4), f"the sector at {at} is torn"
        found.append(int.from_bytes(sector[:4], "little"))
    return found


def crash(daemon, *words):
    """Cuts the power of the only disk. Returns the report of the loss."""
    (said,) = daemon.json("crash", "d", *words)
    return said


@pytest.mark.parametrize("store", ["ram", "file"])
@pytest.mark.parametrize("rule", [None, "-D 200us:4", "-D 200us --mode add"])
def test_what_a_flush_acknowledged_survives(serve, directory, store, rule):
    if store == "file":
        image = directory / "d.img"
        with open(image, "wb") as file:
            file.truncate(SECTOR * SECTORS)
        store = f"file:{image}"
    rules = ["-r", f"d {rule}"] if rule else []
    daemon = serve("-d", f"d=lossy:{store},size={SECTOR * SECTORS}", *rules)
    clients = [Client(daemon).handle for _ in range(3)]
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw, sectors, dropped = random.Random(seed), Sectors(), 0
    for version in range(1, 401):
        client = draw.choice(clients)
        first = draw.randrange(SECTORS)
        count = draw.randint(1, min(8, SECTORS - first))
        action = draw.random()
        if action < 0.75:
            fua = draw.random() < 0.1
            data = version.to_bytes(4, "little") * (SECTOR // 4 * count)
            client.pwrite(data, first * SECTOR, 1 if fua else 0)
            sectors.wrote(first, count, version)
            if fua:
                sectors.flushed(first, count)
        elif action < 0.9:
            client.flush()
            sectors.flushed()
        else:
            tear = draw.choice([[], ["--tear", "512"], ["--tear", "4096"]])
            dropped += crash(daemon, "--seed", version, *tear)["lost"]["bytes"]
            sectors.found(versions(client.pread(SECTOR * SECTORS, 0)))
    assert dropped, "nothing was ever lost: the test has shown nothing"


def test_a_disk_that_never_loses_anything_says_so(daemon):
    for target in ("d", "all"):
        refused = daemon.cli("crash", target, code=1).stderr
        assert "lossy:ram" in refused and "lossy:file:PATH" in refused, refused
    assert "no disk, volume or pool 'e': did you mean 'd'?" in daemon.cli("crash", "e", code=1).stderr


@pytest.fixture
def lossy(serve):
    return serve("-d", "d=lossy:ram,size=1M")


def test_off_drops_its_clients_and_refuses_new_ones_until_the_restart(lossy):
    client = Client(lossy).handle
    client.pwrite(b"1" * 4096, 0)
    client.flush()
    client.pwrite(b"2" * 4096, 4096)
    said = crash(lossy, "--keep", "none", "--off")
    assert said["lost"] == {"writes": 1, "bytes": 4096}
    assert lossy.disk()["off"] and "off (power cut)" in lossy.cli("status").stdout
    with pytest.raises(nbd.Error):
        client.pwrite(b"3" * 4096, 8192)
    with pytest.raises(nbd.Error) as refused:
        Client(lossy)
    assert "server policy" in str(refused.value)
    refused = lossy.cli("load", lossy.uri("d"), code=1).stderr
    assert "dashpot crash d --restart" in refused, refused
    assert "is off already" in lossy.cli("crash", "d", "--off", code=1).stderr
    assert "is off already" in lossy.cli("crash", "d", code=1).stderr
    again = crash(lossy, "--restart")
    assert again["was_off"] and again["lost"]["writes"] == 0
    assert Client(lossy).handle.pread(12288, 0) == b"1" * 4096 + bytes(8192)
    assert not lossy.disk()["off"]


def test_what_is_in_flight_when_the_power_goes_is_never_acknowledged(lossy):
    """Writes that a power cut finds in flight must neither be acknowledged nor be written afterwards, whether they
    are held before the store, held after it, or suspended."""
    client = Client(lossy)
    lossy.cli("inject", "d", "-D", "60s", "-T", "write")
    client.write(0, 4096)
    client.handle.poll(0)
    eventually(lambda: lossy.disk()["in_flight"] == 1, "a write that is held")
    lossy.cli("suspend", "d", "--now")
    client.zero(4096, 4096)
    client.handle.poll(0)
    eventually(lambda: lossy.disk()["in_flight"] == 2, "a zero that is suspended")
    said = crash(lossy, "--keep", "none", "--off")
    assert said["unacknowledged"] == 1 and said["unflushed"]["writes"] == 0
    eventually(lambda: lossy.disk()["in_flight"] == 0, "nothing in flight")
    lossy.cli("clear", "all")
    lossy.cli("resume", "d")
    crash(lossy, "--restart")
    assert Client(lossy).handle.pread(8192, 0) == bytes(8192)


def test_writes_that_the_store_was_not_asked_for_never_reach_it_after_the_cut(lossy):
    """After the cut, no write may reach the store. There are more zios than a pass aborts, and they are due one after
    the other: the first before the cut, the last long after it.
    """
    clients = [Client(lossy).handle for _ in range(4)]
    lossy.cli("inject", "d", "-D", "uniform=1ms..300ms", "--mode", "add", "-T", "write")
    lossy.cli("suspend", "d", "--now")
    data = nbd.Buffer.from_bytearray(bytearray(b"1" * 512))
    for client in clients:
        for sector in range(2_048):
            client.aio_pwrite(data, sector * 512)
        while client.aio_is_processing() and client.aio_get_direction() & nbd.AIO_DIRECTION_WRITE:
            client.poll(-1)
    eventually(lambda: lossy.disk()["in_flight"] == 8_192, "all are held")
    lossy.cli("resume", "d")
    crash(lossy, "--keep", "none", "--off")
    eventually(lambda: lossy.disk()["in_flight"] == 0, "nothing in flight")
    crash(lossy, "--restart")
    assert Client(lossy).handle.pread(1 << 20, 0) == bytes(1 << 20)


def test_a_disk_that_goes_on_keeps_what_it_has_yet_to_acknowledge(lossy):
    client, other = Client(lossy), Client(lossy).handle
    other.pwrite(b"1" * 512, 512)
    lossy.cli("inject", "d", "-D", "60s", "-T", "write", "--name", "slow")
    held = client.write(0, 512)
    client.handle.poll(0)
    eventually(lambda: lossy.disk()["in_flight"] == 1, "a write that is held")
    said = crash(lossy, "--keep", "none")
    assert (said["unacknowledged"], said["lost"]["writes"]) == (1, 1)
    lossy.cli("clear", "d", "--release")
    client.wait(held)
    assert held.error == 0 and other.pread(512, 512) == bytes(512)
    assert crash(lossy, "--keep", "none")["lost"] == {"writes": 1, "bytes": 512}


def test_a_write_that_failed_was_not_acknowledged(lossy):
    """Under `floor` the store works first, and then the rule replaces its result by an error."""
    client = Client(lossy).handle
    lossy.cli("inject", "d", "-e", "EIO", "--mode", "floor", "-T", "write")
    with pytest.raises(nbd.Error):
        client.pwrite(b"1" * 4096, 0)
    said = crash(lossy, "--keep", "none")
    assert (said["unflushed"]["writes"], said["lost"]["writes"], said["writes"]) == (0, 0, [])


def test_what_was_lost_is_told_by_client_place_and_age(lossy):
    first, second = Client(lossy).handle, Client(lossy).handle
    first.pwrite(b"1" * 1024, 1024)
    second.pwrite(b"2" * 512, 8192)
    said = crash(lossy, "--keep", "none", "--top", "1")
    assert said["unflushed"] == said["lost"] == {"writes": 2, "bytes": 1536}
    (client,) = said["clients"]
    assert client["client"].startswith("uid=") and client["writes"] == 2
    (write,) = said["writes"]
    assert (write["offset_bytes"], write["length_bytes"], write["missing_bytes"]) == (1024, 1024, 1024)
    assert write["age_ns"] > 0
    first.pwrite(b"3" * 512, 0)
    text = lossy.cli("crash", "d", "--keep", "none").stdout
    assert "lost 1 of 1 acknowledged writes" in text and max(map(len, text.splitlines())) <= 80
    assert "nothing to lose" in lossy.cli("crash", "d").stdout


def test_equal_seeds_and_equal_writes_lose_the_same(lossy):
    left = []
    for _ in range(2):
        client = Client(lossy).handle
        client.zero(1 << 20, 0)
        client.flush()
        for at in range(64):
            client.pwrite(bytes([at + 1]) * 4096, at * 4096)
        said = crash(lossy, "--restart", "--tear", "512", "--seed", "7")
        assert said["seed"] == 7 and 0 < said["torn"] <= said["lost"]["writes"]
        left.append(Client(lossy).handle.pread(64 * 4096, 0))
    assert left[0] == left[1]


@pytest.mark.parametrize(
    "words, remedy",
    [
        (["--tear", "1000"], "512 or 4096"),
        (["--off", "--restart"], "cannot be used with"),
        (["--keep", "some"], "none, all, random"),
    ],
)
def test_a_power_cut_that_makes_no_sense_is_refused(lossy, words, remedy):
    refused = lossy.cli("crash", "d", *words, code=2).stderr
    assert remedy in refused, refused


def test_a_tear_goes_with_random(lossy):
    refused = lossy.cli("crash", "d", "--keep", "none", "--tear", "512", code=1).stderr
    assert "random" in refused


def test_all_is_every_lossy_disk_each_with_a_seed_of_its_own(serve):
    daemon = serve(
        "-d", "a=lossy:ram,size=1M", "-d", "b=ram,size=1M", "-d", "c=lossy:null,size=1M", "-d", "d=null,size=1M"
    )
    done = daemon.cli("crash", "all", "--seed", "5", "--off", "--json")
    assert [(one["disk"], one["seed"]) for one in json.loads(done.stdout)] == [("a", 5), ("c", 6)]
    assert done.stderr.splitlines() == [
        "dashpot: not hit, because only a lossy store has a volatile cache: b, d",
    ]
    assert Client(daemon, "b").handle.pread(512, 0) == bytes(512)
    done = daemon.cli("crash", "all", "--off", code=1)
    assert done.stderr.count("is off already") == 2


def test_an_orderly_end_loses_nothing(serve, directory):
    image = directory / "d.img"
    image.write_bytes(bytes(1 << 20))
    daemon = serve("-d", f"d=lossy:file:{image}")
    Client(daemon).handle.pwrite(b"1" * 4096, 0)
    daemon.stop()
    assert image.read_bytes()[:4096] == b"1" * 4096


@pytest.mark.parametrize("store", ["ram", "file"])
def test_a_read_of_any_length_is_answered(serve, directory, store):
    """A lossy store must answer reads of any length. Worker threads do large reads."""
    size = 4 << 20
    if store == "file":
        image = directory / "d.img"
        with open(image, "wb") as file:
            file.truncate(size)
        store = f"file:{image}"
    daemon = serve("-d", f"d=lossy:{store},size={size}")
    client = Client(daemon).handle
    written = bytes(range(256)) * (1 << 12)
    client.pwrite(written, 512)
    assert client.pread(len(written), 512) == written


@pytest.mark.parametrize("store", ["ram", "file"])
def test_writes_of_less_than_a_sector(serve, directory, store):
    """Runs that do not reach the range of a read, or reach it in part."""
    if store == "file":
        (directory / "d.img").write_bytes(bytes(SECTOR * SECTORS))
        store = f"file:{directory / 'd.img'}"
    daemon = serve("-d", f"d=lossy:{store},size={SECTOR * SECTORS}")
    handle, draw = Client(daemon).handle, random.Random(7)
    data = bytearray(SECTOR * SECTORS)
    for _ in range(2_000):
        offset = draw.randrange(len(data) - 1)
        length = min(draw.choice([1, 100, 700]), len(data) - offset)
        written = bytes([draw.randrange(256)]) * length
        handle.pwrite(written, offset, draw.choice([0, 0, nbd.CMD_FLAG_FUA]))
        data[offset : offset + length] = written
        offset = draw.randrange(len(data) - 1)
        length = min(draw.choice([1, 512, 1500]), len(data) - offset)
        assert handle.pread(length, offset) == data[offset : offset + length]
    daemon.cli("crash", "d", "--keep", "all")
    assert handle.pread(len(data), 0) == data
