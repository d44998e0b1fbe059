"""What a flush acknowledged survives a power cut: a disk on a `lossy` store, real clients on
several connections, random losses, and a memory of every version that each sector may have."""

import json
import random

import pytest

from conftest import requires, run
from timed import Client

pytestmark = requires("curl")

SECTOR = 512
SECTORS = 64


class Sectors:
    """Which versions of each sector may be on the medium: the last one that was flushed, and
    every one that was written since."""

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
        """What was read after a loss is what there is from now on."""
        for sector, version in enumerate(versions):
            assert version in self.possible[sector], (
                f"sector {sector} has version {version}, not one of {self.possible[sector]}")
            self.latest[sector] = version


def versions(data):
    """The version of each sector; one that is made of two was torn below 512 bytes."""
    found = []
    for at in range(0, len(data), SECTOR):
        sector = data[at:at + SECTOR]
        assert sector == sector[:4] * (SECTOR // 4), f"the sector at {at} is torn"
        found.append(int.from_bytes(sector[:4], "little"))
    return found


def lose(daemon, seed):
    answer = run(
        "curl", "--silent", "--fail", "--unix-socket", daemon.api, "--json",
        json.dumps({"seed": seed}), "http://localhost/v1/disks/d/lose")
    return json.loads(answer.stdout)


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
            dropped += lose(daemon, version)["dropped"]
            sectors.found(versions(client.pread(SECTOR * SECTORS, 0)))
    assert dropped, "nothing was ever lost: the test has shown nothing"


def test_a_disk_that_never_loses_anything_says_so(daemon):
    answer = run(
        "curl", "--silent", "--unix-socket", daemon.api, "--json", '{"seed": 1}',
        "http://localhost/v1/disks/d/lose")
    assert "loses nothing" in json.loads(answer.stdout)["error"]


@pytest.mark.parametrize("store", ["ram", "file"])
def test_a_read_of_any_length_is_answered(serve, directory, store):
    """Large reads of a file are the pool's. This store has none, and waits on its shard."""
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
