"""Volumes of pools under real clients: every policy and layout keeps every byte, even while rules hold I/O,
disks fail and the daemon ends."""

import hashlib
import os
import random
import subprocess
import sys

import pytest
from conftest import BINARY, eventually, requires, run
from pools import LAYOUTS, POLICIES, VOLUME, lab


def fio(uri, *options, directory):
    """Writes and reads at random, and checks each block."""
    return subprocess.Popen(
        [
            "fio",
            "--name=v",
            "--ioengine=nbd",
            f"--uri={uri}",
            "--rw=randrw",
            "--bsrange=512-64k",
            "--size=24M",
            "--iodepth=16",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--fsync=50",
            "--randrepeat=0",
            f"--aux-path={directory}",
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory,
    )


def passed(process):
    output, _ = process.communicate(timeout=110)
    assert process.returncode == 0 and "verify: bad" not in output, output


@requires("fio")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_fio_finds_no_wrong_byte_while_rules_come_and_go(serve, directory, policy, layout):
    path, disks = lab(directory, policy, layout)
    daemon = serve(path)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    process = fio(daemon.uri(VOLUME), directory=directory)
    while process.poll() is None:
        disk = dice.choice(disks)
        words = dice.choice(
            [
                ["inject", disk, "-D", "2ms:2"],
                ["inject", disk, "-D", "1ms", "--mode", "add", "-T", "write"],
                ["clear", disk],
                ["clear", disk, "--release"],
                ["suspend", disk, "--now", "--for", "50ms"],
                ["resume", disk],
                ["clear", "all"],
            ]
        )
        daemon.cli(*words, code=None)
    passed(process)


@requires("fio")
@pytest.mark.parametrize("store", ["file:{disk}.img", "lossy:ram", "lossy:file:{disk}.img"])
def test_fio_finds_no_wrong_byte_on_other_stores(serve, directory, store):
    path, _ = lab(directory, "openzfs", "both", store)
    passed(fio(serve(path).uri(VOLUME), directory=directory))


@requires("qemu-io")
@pytest.mark.parametrize("policy", POLICIES)
def test_qemu_io_sees_its_patterns(serve, directory, policy):
    path, _ = lab(directory, policy, "both", block="128K")
    uri = serve(path).uri(VOLUME)
    run(
        "qemu-io",
        "-f",
        "raw",
        "-c",
        "write -P 1 0 1M",
        "-c",
        "write -P 2 4K 3K",
        "-c",
        "write -z 512K 200K",
        "-c",
        "flush",
        "-c",
        "discard 768K 128K",
        "-c",
        "write -f -P 3 1000K 700",
        "-c",
        "read -P 1 0 4K",
        "-c",
        "read -P 2 4K 3K",
        "-c",
        "read -P 1 7K 505K",
        "-c",
        "read -P 0 512K 200K",
        "-c",
        "read -P 1 712K 56K",
        "-c",
        "read -P 0 768K 128K",
        "-c",
        "read -P 1 896K 104K",
        "-c",
        "read -P 3 1000K 700",
        uri,
    )


@requires("nbdsh")
@pytest.mark.parametrize(
    "layout, store",
    [
        ("both", "ram"),
        ("both", "file:{disk}.img"),
        ("both", "lossy:ram"),
        ("dynamic", "ram"),
        ("dynamic", "lossy:ram"),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_trims_and_zeroes_of_many_blocks_leave_no_wrong_byte(serve, directory, policy, layout, store):
    """Compares a volume with a bytearray as its model. Several requests are in flight, but never two for the
    same bytes."""
    path, disks = lab(directory, policy, layout, store)
    daemon = serve(path)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    for disk in disks:
        daemon.cli("inject", disk, "-D", "1ms:2")
    run(sys.executable, "-c", TRIMMER, daemon.uri(VOLUME), str(seed))
    # The daemon did not end with the client, so the next client finds the first one's bytes.
    run(sys.executable, "-c", TRIMMER, daemon.uri(VOLUME), str(seed + 1))


TRIMMER = """
import random, sys
import nbd

SIZE, BLOCK = 48 << 20, 8 << 10
dice = random.Random(int(sys.argv[2]))
client = nbd.NBD()
client.connect_uri(sys.argv[1])
model = bytearray(client.pread(32 << 20, 0) + client.pread(16 << 20, 32 << 20))


def draw(most):
    first = dice.randrange(SIZE // 512)
    count = min(1 + dice.randrange(most // 512), SIZE // 512 - first)
    if dice.random() < 0.5:
        return first * 512, count * 512
    end = -(-(first + count) * 512 // BLOCK) * BLOCK
    return first * 512 // BLOCK * BLOCK, end - first * 512 // BLOCK * BLOCK


def begin(offset, length):
    kind = dice.choice(["write", "write", "zero", "trim", "read"])
    flags = nbd.CMD_FLAG_FUA if dice.random() < 0.1 and kind != "read" else 0
    end = offset + length
    if kind == "write":
        data = dice.randbytes(64) * (length // 64)
        model[offset:end] = data
        return client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), offset, flags=flags), None
    if kind == "zero":
        model[offset:end] = bytes(length)
        return client.aio_zero(length, offset, flags=flags), None
    if kind == "trim":
        first, last = -(-offset // BLOCK) * BLOCK, end // BLOCK * BLOCK
        model[first:max(first, last)] = bytes(max(0, last - first))
        return client.aio_trim(length, offset, flags=flags), None
    buffer = nbd.Buffer(length)
    return client.aio_pread(buffer, offset), (buffer, offset)


for turn in range(60):
    busy, cookies = [], []
    for _ in range(dice.randrange(1, 12)):
        offset, length = draw(dice.choice([4 << 10, 128 << 10, 8 << 20]))
        # Requests count as whole blocks, because a trim may also change the rest of its first block.
        first, last = offset // BLOCK, -(-(offset + length) // BLOCK)
        if all(last <= begun or end <= first for begun, end in busy):
            busy.append((first, last))
            cookies.append(begin(offset, length))
    for cookie, read in cookies:
        while not client.aio_command_completed(cookie):
            client.poll(-1)
        if read:
            buffer, offset = read
            assert buffer.to_bytearray() == model[offset:offset + len(buffer)], (turn, offset)
    if dice.random() < 0.1:
        client.flush()
for at in range(0, SIZE, 16 << 20):
    assert client.pread(16 << 20, at) == model[at:at + (16 << 20)], at
client.flush()
for at in range(0, SIZE, 16 << 20):
    assert client.pread(16 << 20, at) == model[at:at + (16 << 20)], at
"""


@requires("nbdcopy")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_volume_on_files_has_its_bytes_after_an_orderly_restart(serve, directory, policy):
    """After an orderly restart, the volume must have even the bytes that no flush has covered, because an
    orderly end writes everything to the disks."""
    path, _ = lab(directory, policy, "both", "file:{disk}.img")
    image, back = directory / "image", directory / "back"
    image.write_bytes(os.urandom(48 << 20))
    daemon = serve(path)
    run("nbdcopy", "--connections=2", image, daemon.uri(VOLUME))
    daemon.stop()
    run("nbdcopy", serve(path).uri(VOLUME), back)
    assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(image.read_bytes()).digest()


@requires("qemu-io")
def test_acknowledged_writes_get_home_and_the_daemon_ends_beside_a_disk_that_hangs(serve, directory):
    """A rule that hangs every write of a disk must not keep acknowledged writes from the disk: at its end,
    the daemon first removes the rules."""
    path, _ = lab(directory, "openzfs", "mirror", "file:{disk}.img")
    daemon = serve(path)
    daemon.cli("inject", "b", "--hang", "-T", "write")
    # qemu-io flushes when it ends, so it hangs until the daemon ends.
    writer = subprocess.Popen(
        ["qemu-io", "-f", "raw", "-t", "writeback", "-c", "write -P 120 16K 8K", daemon.uri(VOLUME)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    eventually(lambda: daemon.disk("b")["in_flight"] > 0, "a hung write")
    daemon.stop()
    writer.communicate(timeout=100)
    for name in "ab":
        with open(directory / f"{name}.img", "rb") as store:
            store.seek(16384)
            assert store.read(8192) == b"x" * 8192, name


def test_clients_do_not_reach_the_disks_of_a_pool(serve, directory):
    path, _ = lab(directory)
    daemon = serve(path)
    listed = run("nbdinfo", "--list", "--json", daemon.uri("")).stdout
    assert f'"export-name": "{VOLUME}"' in listed and '"export-name": "a"' not in listed
    refused = run("nbdinfo", daemon.uri("a"), code=None)
    assert refused.returncode != 0


def test_a_full_throttle_holds_writes_back_until_the_disks_work(serve, directory):
    """While a disk is suspended, dirty data reaches its maximum, and later writes must wait until the disk
    works again."""
    path, _ = lab(directory, "none", "stripe")
    daemon = serve(path)
    daemon.cli("suspend", "a", "--now")
    copy = subprocess.Popen(
        [
            "qemu-io",
            "-f",
            "raw",
            "-c",
            "write -P 1 0 2M",
            "-c",
            "write -P 2 2M 4M",
            "-c",
            "write -P 3 8M 1M",
            daemon.uri(VOLUME),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: daemon.disk("a")["in_flight"] > 0, "a suspended write")
    assert copy.poll() is None, "a half of the blocks is on the suspended disk"
    daemon.cli("resume", "a")
    output, _ = copy.communicate(timeout=100)
    assert copy.returncode == 0, output


@pytest.mark.parametrize(
    "text, message",
    [
        (
            '[disk.a]\nstore = "ram"\nsize = "1M"\n[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "2M"\n',
            "'2M' is more than pool 'p' has left, 1M of 1M",
        ),
        (
            '[disk.a]\nstore = "ram"\nread_only = true\n[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "2M"\n',
            "pool `p`: its disk `a` is read-only",
        ),
        (
            '[disk.a]\nstore = "ram"\nblock = "4K"\n[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "2M"\nblock_size = "512"\n',
            "volume `p/v`: its block_size is 512, and a disk of its pool takes no less than 4K",
        ),
        (
            '[disk.a]\nstore = "ram"\n[pool.p]\ndisks = ["a"]\n[pool.q]\ndisks = ["a"]\n',
            "disk 'a' is in pool 'p' already",
        ),
        (
            '[disk.a]\nstore = "ram"\n[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "10000"\nblock_size = "8K"\n',
            "[volume.p/v] size: '10000' is not a whole number of blocks of 8K",
        ),
        (
            '[disk.a]\nstore = "ram"\n[pool.p]\ndisks = ["a"]\nzfs_dirty_data_sync_percent = 101\n',
            "[pool.p] zfs_dirty_data_sync_percent: '101' is out of bounds: give 1% to 100%",
        ),
        (
            '[disk.a]\nstore = "ram"\n[pool.p]\ndisks = ["a"]\nzfs_dirty_data_mx = "1M"\n',
            "did you mean 'zfs_dirty_data_max'?",
        ),
    ],
)
def test_bad_labs_are_refused_with_place_and_remedy(directory, text, message):
    path = directory / "bad.toml"
    path.write_text(text)
    refused = run(BINARY, "run", path, "--", "true", code=None)
    assert refused.returncode != 0 and message in refused.stderr, refused.stderr
    # A simulation opens no stores, so it does not find the mistakes in a lab that only a store can find.
    if "read-only" not in message and "takes no less" not in message:
        refused = run(BINARY, "sim", path, code=None)
        assert refused.returncode != 0 and message in refused.stderr, refused.stderr


def test_a_pool_on_files_too_small_for_its_volume_is_refused(directory):
    with open(directory / "a.img", "wb") as image:
        image.truncate(1 << 20)
    path = directory / "lab.toml"
    path.write_text('[disk.a]\nstore = "file:a.img"\n[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "2M"\n')
    refused = run(BINARY, "run", path, "--", "true", code=None)
    assert "volume `p/v`: a volume of 2097152 bytes, and the pool has 1048576 left" in refused.stderr
