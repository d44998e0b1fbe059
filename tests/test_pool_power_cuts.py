"""Data of a volume that a flush or FUA has acknowledged survives a power cut of its pool: tested with real
clients, random writes and random moments, under every policy and layout."""

import itertools
import random

import pytest
from conftest import eventually
from pools import LAYOUTS, POLICIES, VOLUME, lab
from test_lossy import SECTOR, SECTORS, Sectors, versions
from test_pools import Api
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


def mirrors(daemon):
    return Api(daemon).ask("/v1/pools/tank")["mirrors"]


def sides_of(directory):
    """The bytes of the volume on each side of the mirror, as the side's file has them."""
    return [(directory / f"{disk}.img").read_bytes()[: 8 << 20] for disk in "ab"]


def cut_at_any_moment(daemon, client, wrote, draw):
    daemon.cli("crash", "tank", "--restart", "--seed", draw.randrange(1 << 32))


def cut_between_the_sides(daemon, client, wrote, draw):
    """Cuts the power while a write has reached one side and hangs on its way to the other."""
    daemon.cli("inject", "b", "--hang", "-T", "write", "--name", "other-side")
    for block in draw.sample(range(1024), 4):
        client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(content(0xFFFF, 16))), block * 8192)
        wrote[block] = None
    eventually(lambda: mirrors(daemon)["dirty_regions"] > 0, "a write to the sides")
    daemon.cli("crash", "tank", "--off", "--seed", draw.randrange(1 << 32))
    daemon.cli("clear", "other-side")
    daemon.cli("crash", "tank", "--restart")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_sides_of_a_mirror_are_made_the_same_after_power_cuts(serve, directory, policy):
    path, _ = lab(directory, policy, "mirror", "lossy:file:{disk}.img", size="8M")
    daemon = serve(path)
    # With these tunables, power cuts come while a transaction group syncs.
    daemon.cli("set", "tank", "zfs_dirty_data_max=64K", "zfs_write_limit_override=64K")
    daemon.cli("inject", "all", "-D", "1ms", "-T", "write,flush")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw, version = random.Random(seed), 0
    for _, cut in zip(range(CUTS), itertools.cycle([cut_at_any_moment, cut_between_the_sides])):
        client, wrote = connect(daemon), {}
        for _ in range(draw.randrange(1, 60)):
            version += 1
            block = draw.randrange(1024)
            client.pwrite(content(version, 16), block * 8192, 0)
            wrote[block] = version
            if draw.random() < 0.1:
                client.flush()
        cut(daemon, client, wrote, draw)
        client = connect(daemon)
        first = [client.pread(8192, block * 8192) for block in wrote]
        eventually(lambda: mirrors(daemon)["nosync_regions"] == 0, "a repaired mirror")
        again = [client.pread(8192, block * 8192) for block in wrote]
        assert first == again, "a block has changed that no client wrote"
        client.flush()
        eventually(lambda: mirrors(daemon)["dirty_regions"] == 0, "clean regions")
        left, right = sides_of(directory)
        assert left == right
    assert mirrors(daemon)["repaired_bytes"] >= 1 << 20


def test_the_repair_waits_for_the_power(serve, directory):
    daemon = serve(lab(directory, "through", "mirror", "lossy:ram", size="8M")[0])
    connect(daemon).pwrite(b"x" * 8192, 0)
    assert mirrors(daemon)["dirty_regions"] == 1
    daemon.cli("crash", "tank", "--off")
    assert mirrors(daemon)["nosync_bytes"] == 1 << 20
    assert "repairs (1M left)" in daemon.cli("status").stdout
    daemon.cli("crash", "tank", "--restart")
    eventually(lambda: "repairs" not in daemon.cli("status").stdout, "a repaired mirror")
    assert mirrors(daemon)["repaired_bytes"] == 1 << 20


def test_a_write_that_failed_on_one_side_is_repaired(serve, directory):
    daemon = serve(lab(directory, "through", "mirror", "file:{disk}.img", size="8M")[0])
    client = connect(daemon)
    client.pwrite(b"old" * 2048 + b"old!" * 512, 0, nbd.CMD_FLAG_FUA)
    daemon.cli("inject", "b", "-e", "EIO", "-T", "write")
    with pytest.raises(nbd.Error):
        client.pwrite(b"new!" * 2048, 0)
    found = client.pread(8192, 0)
    said = eventually(lambda: "failed copies" in (text := daemon.cli("status").stdout) and text, "a repair that fails")
    assert "repairs (1M left)" in said and "clear the rule" in said
    daemon.cli("clear", "all")
    eventually(lambda: mirrors(daemon)["nosync_regions"] == 0, "a repaired mirror")
    assert client.pread(8192, 0) == found
    client.flush()
    left, right = sides_of(directory)
    assert left == right and left[:8192] == found
    assert "repair" not in daemon.cli("status").stdout


def test_a_pool_on_disks_that_lose_nothing_is_refused(serve, directory):
    refused = serve(lab(directory)[0]).cli("crash", "tank", code=1).stderr
    assert (
        "pool 'tank' has disks that lose nothing in a power cut: a, b: give all of its disks a store lossy:ram"
        in refused
    )
