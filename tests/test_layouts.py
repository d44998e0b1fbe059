"""How pools spread blocks over disks of different speed or size, with a real client."""

import json

import pytest
from conftest import BINARY, requires, run

BLOCK = 8192
LAB = """
[disk.fast]
store = "ram"
size = "32M"
rules = ["-D 20ms:16"]
[disk.slow]
store = "ram"
size = "32M"
rules = ["-D 40ms:16"]
[pool.tank]
disks = ["fast", "slow"]
layout = "{layout}"
[volume."tank/v"]
size = "32M"
write = "{policy}"
"""


def written(serve, directory, layout, policy):
    """Writes each block of the first 8 MiB once, reads all of them back, and returns how many bytes each disk was
    given."""
    path = directory / "lab.toml"
    path.write_text(LAB.format(layout=layout, policy=policy))
    daemon = serve(path)
    run(
        "fio",
        "--name=v",
        "--ioengine=nbd",
        f"--uri={daemon.uri('tank/v')}",
        "--rw=randwrite",
        f"--bs={BLOCK}",
        "--size=8M",
        "--iodepth=16",
        "--end_fsync=1",
        "--verify=crc32c",
        "--verify_fatal=1",
        f"--aux-path={daemon.directory}",
    )
    ops = lambda disk: {op["op"]: op["bytes"] for op in daemon.disk(disk)["ops"]}
    return ops("fast")["write"], ops("slow")["write"]


@requires("fio")
@pytest.mark.parametrize("policy", ["through", "openzfs"])
def test_a_disk_twice_as_fast_gets_twice_the_new_blocks(serve, directory, policy):
    fast, slow = written(serve, directory, "dynamic", policy)
    assert fast + slow == 8 << 20
    # The ratio is not exactly 2, because each disk has blocks in its queue at the end, and because both disks are late
    # on a busy host.
    assert 1.4 < fast / slow < 2.6, (fast, slow)


@requires("fio")
def test_the_static_layout_deals_blocks_in_turn(serve, directory):
    assert written(serve, directory, "static", "through") == (4 << 20, 4 << 20)


@pytest.mark.parametrize(("layout", "size", "free"), [("static", 40, 24), ("dynamic", 120, 8)])
def test_the_smallest_disk_limits_only_a_static_pool(serve, directory, layout, size, free):
    """A daemon, its reports and a simulation agree with the lab on the room of a pool whose disks differ in size."""
    path, mib = directory / "lab.toml", 1 << 20
    path.write_text(f"""
[disk.small]
store = "ram"
size = "32M"
[disk.large]
store = "ram"
size = "96M"
[pool.tank]
disks = ["small", "large"]
layout = "{layout}"
[volume."tank/v"]
size = "{size}M"
[workload.w]
target = "tank/v"
block = "8K"
rate = 100
read = "100%"
[sim]
lasts = "1s"
""")
    (live,) = json.loads(serve(path).cli("zpool-iostat", "--json").stdout)
    (told,) = json.loads(run(BINARY, "sim", path, "--json", "--report", "zpool-iostat 1").stdout)
    ((simulated,),) = told["reports"][0]["output"]
    for tank in (live, simulated):
        assert (tank["alloc_bytes"], tank["free_bytes"]) == (size * mib, free * mib)


@pytest.mark.parametrize("command", ["serve", "run", "sim"])
def test_the_dynamic_layout_over_files_is_refused(directory, command):
    """`layout = "dynamic"` over files is refused: its table of places is in memory, so a restart would lose
    all bytes."""
    path = directory / "lab.toml"
    lab = LAB.format(layout="dynamic", policy="none")
    path.write_text(lab.replace('store = "ram"', f'store = "file:{directory}/image"'))
    words = {"serve": ["serve", path], "run": ["run", path, "--", "true"], "sim": ["sim", path]}
    refused = run(BINARY, *words[command], code={"run": 125}.get(command, 1))
    said = (
        f"{path}:12: [pool.tank] layout: 'dynamic' keeps in memory where blocks are, and a disk of this pool has store"
    )
    assert said in refused.stderr, refused.stderr
    assert 'give its disks "ram" or "lossy:ram", or leave layout out' in refused.stderr
