"""Data of a volume that a flush or FUA has acknowledged survives a power cut of its pool: real clients, random
writes and moments, under every policy and layout."""

import random

import pytest

from pools import LAYOUTS, POLICIES, VOLUME, lab
from test_lossy import SECTOR, SECTORS, Sectors, versions
from timed import nbd

CUTS = 15


def connect(daemon):
    client = nbd.NBD()
    client.connect_uri(daemon.uri(VOLUME))
    return client


def content(version, count):
    return version.to_bytes(4, "little") * (SECTOR // 4 * count)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_flush_acknowledged_survives_power_cuts_of_the_pool(serve, directory, policy, layout):
    daemon = serve(lab(directory, policy, layout, "lossy:ram", size="1M")[0])
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw, version = random.Random(seed), 0
    for _ in range(CUTS):
        client, sectors = connect(daemon), Sectors()
        version += 1
        client.pwrite(content(version, SECTORS), 0, nbd.CMD_FLAG_FUA)
        sectors.wrote(0, SECTORS, version)
        sectors.flushed()
        for _ in range(draw.randrange(40)):
            version += 1
            first = draw.randrange(SECTORS)
            count = draw.randint(1, min(24, SECTORS - first))
            fua = draw.random() < 0.2
            client.pwrite(content(version, count), first * SECTOR, nbd.CMD_FLAG_FUA if fua else 0)
            sectors.wrote(first, count, version)
            if fua:
                sectors.flushed(first, count)
            elif draw.random() < 0.2:
                client.flush()
                sectors.flushed()
        (said,) = daemon.json("crash", "tank", "--restart", "--seed", draw.randrange(1 << 32))
        assert said["pool"] == "tank" and not said["was_off"]
        sectors.found(versions(connect(daemon).pread(SECTOR * SECTORS, 0)))


def test_a_pool_that_is_off_takes_no_client_and_loses_its_memory(serve, directory):
    daemon = serve(lab(directory, "openzfs", "stripe", "lossy:ram")[0])
    daemon.cli("set", "tank", "zfs_txg_timeout=1h")
    client = connect(daemon)
    client.pwrite(b"f" * 65536, 0, nbd.CMD_FLAG_FUA)
    client.pwrite(b"m" * 65536, 1 << 20)
    (said,) = daemon.json("crash", VOLUME, "--off", "--keep", "none")
    assert sum(txg["dirty_bytes"] for txg in said["txgs"]) == 65536
    with pytest.raises(nbd.Error):
        connect(daemon)
    assert "off (power cut)" in daemon.cli("status").stdout
    refused = daemon.cli("crash", "tank", code=1).stderr
    assert "pool 'tank' is off already: `dashpot crash tank --restart` serves it again" in refused
    (said,) = daemon.json("crash", "all", "--restart")
    assert said["was_off"]
    client = connect(daemon)
    assert client.pread(65536, 0) == b"f" * 65536
    assert client.pread(65536, 1 << 20) == bytes(65536)


def test_a_pool_on_disks_that_lose_nothing_is_refused(serve, directory):
    refused = serve(lab(directory)[0]).cli("crash", "tank", code=1).stderr
    assert "pool 'tank' has disks that lose nothing in a power cut: a, b: give all of its disks a store lossy:ram" in refused
