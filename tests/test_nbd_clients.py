"""Checks that NBD clients of other projects agree about the content of a disk."""

import hashlib
import json
import os

import pytest
from conftest import requires, run

SIZE = 64 << 20


@pytest.fixture(params=["ram", "file"])
def disk(request, serve, directory):
    """The URI of an empty disk of 64 MiB, in memory and in a file."""
    if request.param == "ram":
        return serve("-d", "d=ram,size=64M").uri("d")
    path = directory / "store.img"
    with open(path, "wb") as store:
        store.truncate(SIZE)
    return serve("-d", f"d=file:{path},size=64M").uri("d")


@pytest.fixture
def image(directory):
    """A file of random data with a hole in its middle."""
    path = directory / "image"
    with open(path, "wb") as file:
        file.write(os.urandom(SIZE // 4))
        file.seek(SIZE * 3 // 4)
        file.write(os.urandom(SIZE // 4))
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@requires("nbdinfo")
def test_nbdinfo_sees_what_is_served(serve):
    daemon = serve("-d", "one=ram,size=64M", "-d", "two=ram,size=1G,block=4K,ro")
    listed = json.loads(run("nbdinfo", "--list", "--json", daemon.uri("")).stdout)
    assert listed["protocol"] == "newstyle-fixed"
    one, two = listed["exports"]
    assert (one["export-name"], one["export-size"], one["is_read_only"]) == ("one", SIZE, False)
    assert (two["export-name"], two["export-size"], two["is_read_only"]) == ("two", 1 << 30, True)
    assert two["block_size_minimum"] == 4096
    for export in (one, two):
        assert export["can_multi_conn"] and export["can_df"] and export["can_flush"]
        assert export["contexts"] == ["base:allocation"]
        assert export["block_size_maximum"] >= 32 << 20
    assert one["can_fua"] and one["can_trim"] and one["can_zero"]


@requires("nbdinfo")
def test_nbdinfo_map_shows_holes_and_data(disk):
    run("qemu-io", "-f", "raw", "-c", "write 16M 1M", disk)
    extents = json.loads(run("nbdinfo", "--map", "--json", disk).stdout)
    assert sum(extent["length"] for extent in extents) == SIZE
    data = [(e["offset"], e["length"]) for e in extents if e["type"] == 0]
    assert data == [(16 << 20, 1 << 20)]
    assert all(extent["type"] in (0, 2, 3) for extent in extents)


@requires("nbdcopy")
@pytest.mark.parametrize("options", [[], ["--connections=4", "--requests=64"], ["--synchronous"]])
def test_nbdcopy_there_and_back(disk, image, directory, options):
    back = directory / "back"
    run("nbdcopy", "--flush", *options, image, disk)
    run("nbdcopy", *options, disk, back)
    assert digest(back) == digest(image)


@requires("nbdcopy")
def test_nbdcopy_between_two_disks(serve, image, directory):
    daemon = serve("-d", "a=ram,size=64M", "-d", "b=ram,size=64M")
    back = directory / "back"
    run("nbdcopy", image, daemon.uri("a"))
    run("nbdcopy", "--connections=4", daemon.uri("a"), daemon.uri("b"))
    run("nbdcopy", daemon.uri("b"), back)
    assert digest(back) == digest(image)


@requires("qemu-img")
def test_qemu_img_converts_and_compares(disk, image, directory):
    back = directory / "back.qcow2"
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, disk)
    run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, disk)
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", disk, back)
    run("qemu-img", "compare", "-f", "qcow2", "-F", "raw", back, image)
    run("qemu-io", "-f", "raw", "-c", "write -P 0x55 5M 4k", disk)
    run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, disk, code=1)


@requires("qemu-img")
def test_qemu_img_maps_holes(disk, image):
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, disk)
    mapped = json.loads(run("qemu-img", "map", "-f", "raw", "--output=json", disk).stdout)
    data = [(e["start"], e["length"]) for e in mapped if e["data"]]
    assert data == [(0, SIZE // 4), (SIZE * 3 // 4, SIZE // 4)]


@requires("qemu-img")
@pytest.mark.parametrize("direction", [[], ["-w"], ["-w", "--flush-interval=32"]])
def test_qemu_img_bench_completes(disk, direction):
    run("qemu-img", "bench", "-f", "raw", "-c", "2000", "-d", "32", *direction, disk)


@requires("qemu-io")
def test_qemu_io_patterns(disk):
    """qemu-io writes patterns and reads them back; it fails if a pattern is wrong."""
    commands = [
        "write -P 0xab 0 64k",
        "read -P 0xab 0 64k",
        "write -P 0xcd 512 512",
        "read -P 0xab 0 512",
        "read -P 0xcd 512 512",
        "read -P 0xab 1k 63k",
        "write -z 16k 16k",
        "read -P 0 16k 16k",
        "read -P 0xab 32k 32k",
        "write -z -u 32k 4k",
        "read -P 0 32k 4k",
        "discard 48k 16k",
        "read -P 0 48k 16k",
        "write -f -P 0x11 63m 1m",
        "read -P 0x11 63m 1m",
        "writev -P 0x22 1m 4k 8k 12k",
        "read -P 0x22 1m 24k",
        "flush",
    ]
    options = [word for command in commands for word in ("-c", command)]
    run("qemu-io", "-f", "raw", *options, disk)
    run("qemu-io", "-f", "raw", "-c", "read -P 0xab 512 512", disk, code=1)


@requires("qemu-io")
def test_qemu_io_many_at_once(disk):
    writes = [f"aio_write -P {i + 1} {i * 256}k 256k" for i in range(100)]
    reads = [f"read -P {i + 1} {i * 256}k 256k" for i in range(100)]
    options = [word for command in [*writes, "aio_flush", *reads] for word in ("-c", command)]
    run("qemu-io", "-f", "raw", *options, disk)


@requires("fio")
def test_fio_verifies_what_several_jobs_wrote(disk):
    report = run(
        "fio",
        "--name=jobs",
        "--ioengine=nbd",
        f"--uri={disk}",
        "--rw=randwrite",
        "--bsrange=4k-64k",
        "--bs_unaligned=0",
        "--iodepth=16",
        "--numjobs=4",
        "--size=8M",
        "--offset_increment=16M",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--output-format=json",
        "--group_reporting",
    ).stdout
    (job,) = json.loads(report[report.index("{") :])["jobs"]
    assert job["error"] == 0
    assert job["read"]["io_bytes"] == job["write"]["io_bytes"] == 4 * (8 << 20)
