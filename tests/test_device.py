"""Stores on block devices: `dev:`. The devices are loop devices over sparse files."""

import json
import os
import pathlib
import signal
import subprocess

import pytest
from attached import attach, can_attach, sysfs  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="block devices take root"),
    pytest.mark.skipif(not os.path.exists("/dev/loop-control"), reason="/dev/loop-control is missing"),
    requires("losetup"),
]
SIZE = 64 << 20


@pytest.fixture
def device(directory):
    """Makes loop devices over sparse files. Each device has the path of its file in `.file`."""
    nodes = []

    class Node(str):
        file: pathlib.Path

    def make(*options, size=SIZE):
        file = directory / f"store{len(nodes)}.img"
        with open(file, "wb") as image:
            image.truncate(size)
        found = run("losetup", "--find", "--show", "--direct-io=on", *options, file).stdout.strip()
        node = Node(found)
        node.file = file
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        run("losetup", "--detach", node)


def fio(target, *options):
    words = ["--name=job", "--bs=4k", "--verify_state_save=0", "--output-format=json", *target, *options]
    # fio's NBD client prints a line about its connection before the JSON document.
    said = run("fio", *words).stdout
    return json.loads(said[said.index("{") :])["jobs"][0]


def refused(*disks):
    """The message with which dashpot refuses disks."""
    words = [word for disk in disks for word in ("-d", disk)]
    return run(BINARY, "run", *words, "--", "true", code=125).stderr


@requires("nbdcopy")
def test_bytes_are_the_devices(serve, device, directory):
    node = device()
    daemon = serve("-d", f"d=dev:{node}")
    data = directory / "data"
    data.write_bytes(os.urandom(SIZE))
    run("nbdcopy", data, daemon.uri("d"))
    run("nbdcopy", daemon.uri("d"), directory / "back")
    run("cmp", data, directory / "back")
    daemon.stop()
    run("cmp", data, node.file)


@requires("fio")
def test_fio_verifies_what_it_wrote(serve, device):
    node = device()
    daemon = serve("-d", f"d=dev:{node}")
    target = ["--ioengine=nbd", f"--uri={daemon.uri('d')}"]
    job = fio(target, "--rw=randrw", "--iodepth=64", "--size=32M", "--verify=crc32c", "--fsync=32", "--bs=512-64k")
    assert job["error"] == 0
    assert {op["op"]: op["failed"] for op in daemon.disk()["ops"]}["flush"] == 0


@requires("nbdinfo")
def test_sizes_and_blocks_are_the_devices(serve, device):
    small, large = device(), device("--sector-size", "4096")
    daemon = serve(
        "-d", f"small=dev:{small}", "-d", f"large=dev:{large}", "-d", f"part=dev:{device()},size=1M,block=4K"
    )
    disks = {disk["name"]: disk for disk in daemon.json("status")["disks"]}
    sizes = {name: (disk["size_bytes"], disk["block_bytes"]) for name, disk in disks.items()}
    assert sizes == {"small": (SIZE, 512), "large": (SIZE, 4096), "part": (1 << 20, 4096)}
    assert "block_size_minimum: 4096" in run("nbdinfo", daemon.uri("large")).stdout


def test_a_request_that_is_not_aligned_is_refused(serve, device):
    nbd = pytest.importorskip("nbd")
    daemon = serve("-d", f"d=dev:{device()}")
    client = nbd.NBD()
    client.connect_uri(daemon.uri("d"))
    client.set_strict_mode(0)
    for offset, length in [(1, 512), (512, 100)]:
        with pytest.raises(nbd.Error) as error:
            client.pread(length, offset)
        assert error.value.errno == "EINVAL"
    assert client.pread(512, 512) == bytes(512)
    client.shutdown()


def test_trims_and_zeroes_reach_the_device(serve, device):
    nbd = pytest.importorskip("nbd")
    node = device()
    daemon = serve("-d", f"d=dev:{node}")
    client = nbd.NBD()
    client.connect_uri(daemon.uri("d"))
    blocks = lambda: os.stat(node.file).st_blocks * 512  # noqa: E731
    client.pwrite(b"x" * (8 << 20), 0)
    client.flush()
    assert blocks() >= 8 << 20
    client.trim(4 << 20, 0)
    client.flush()
    assert blocks() <= 5 << 20
    client.zero(1 << 20, 4 << 20)
    client.zero(1 << 20, 5 << 20, nbd.CMD_FLAG_NO_HOLE)
    assert client.pread(4 << 20, 4 << 20) == bytes(2 << 20) + b"x" * (2 << 20)
    client.pwrite(b"y" * 512, 0, nbd.CMD_FLAG_FUA)
    client.shutdown()


@can_attach[1]
@requires("fio")
@pytest.mark.parametrize("depth", [64, 128])
def test_depth_reaches_the_device(serve, attach, depth):
    """All I/Os that clients have in flight must reach the device below at once. That device is a disk of another
    daemon; a rule hangs its reads, so that they can be counted.
    """
    lower = serve("-d", "d=ram,size=64M")
    node = attach(lower)
    upper = serve("-d", f"u=dev:{node}")
    lower.cli("inject", "d", "--hang", "-T", "read", "--name", "stuck")
    words = ["fio", "--name=job", "--ioengine=nbd", f"--uri={upper.uri('u')}", "--rw=randread", "--bs=4k"]
    job = subprocess.Popen([*words, f"--iodepth={depth}", "--number_ios=1000"], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: lower.disk()["in_flight"] == depth, f"{depth} in flight below")
        assert sum(map(int, sysfs(node, "inflight").split())) == depth
    finally:
        lower.cli("clear", "stuck", "--release")
        assert job.wait(HANG_LIMIT) == 0
    upper.stop()
    lower.cli("detach", "d")


def reads(node):
    """The reads that the kernel counted for a device, and those that it merged into others."""
    return [int(field) for field in sysfs(node, "stat").split()[:2]]


@can_attach[1]
@requires("fio")
@requires("iostat")
@pytest.mark.parametrize("pattern", ["randread", "read"])
def test_iostat_shows_equal_reads_above_and_below(serve, device, attach, pattern):
    """iostat must show the same reads above and below. Even neighbouring reads arrive one by one: dashpot
    gives the kernel no cause to merge them, and a busy device rarely does so."""
    below = device()
    daemon = serve("-d", f"d=dev:{below}")
    above = attach(daemon)
    daemon.cli("inject", "d", "-D", "50ms", "-T", "read")
    before = [reads(node) for node in (above, below)]

    def counted(at):
        return [now - then for now, then in zip(reads((above, below)[at]), before[at])]

    words = ["--name=job", f"--filename={above}", "--ioengine=libaio", "--direct=1", "--bs=4k", f"--rw={pattern}"]
    job = subprocess.Popen(["fio", *words, "--iodepth=128", "--number_ios=16384"], stdout=subprocess.DEVNULL)
    eventually(lambda: reads(above)[0] - before[0][0] > 1024, "fio reads")
    table = run("iostat", "-dxyk", "-o", "JSON", "2", "1", above, below).stdout
    assert job.wait(HANG_LIMIT) == 0
    last = json.loads(table)["sysstat"]["hosts"][0]["statistics"][-1]["disk"]
    shown = {disk["disk_device"]: disk for disk in last}
    upper, lower = (shown[os.path.basename(node)] for node in (above, below))
    # At any moment, the upper device counts up to 128 reads that have not yet reached the lower device, or have
    # already left it.
    arrived = lower["r/s"] + lower["rrqm/s"]
    assert abs(upper["r/s"] - arrived) <= upper["r/s"] / 10, (upper, lower)
    assert upper["aqu-sz"] > 64 and upper["r_await"] >= 50 > lower["r_await"]
    (through, merged_above), (reached, merged) = counted(0), counted(1)
    assert merged_above == 0 and reached + merged == through >= 8192
    # If the host stops this process, the kernel merges some reads. If dashpot gave the kernel many operations in one
    # call, the kernel would merge four of five reads.
    assert merged < 2 * reached, "as if many operations were given to the kernel in a call"
    daemon.cli("detach", "d")


@can_attach[1]
@pytest.mark.parametrize("fua", [False, True])
def test_a_flush_that_fails_faults_the_disk(serve, attach, fua):
    """A flush that fails must fault the disk. The device below is a disk of another daemon, on which flushes
    fail once."""
    nbd = pytest.importorskip("nbd")
    lower = serve("-d", "d=ram,size=8M")
    upper = serve("-d", f"u=dev:{attach(lower)}")
    client = nbd.NBD()
    client.connect_uri(upper.uri("u"))
    sync = (lambda: client.pwrite(b"x" * 512, 0, nbd.CMD_FLAG_FUA)) if fua else client.flush
    sync()
    lower.cli("inject", "d", "-e", "EIO", "-T", "flush,fua", "--name", "broken")
    client.pwrite(b"y" * 4096, 0)
    with pytest.raises(nbd.Error):
        sync()
    lower.cli("clear", "broken")
    with pytest.raises(nbd.Error):
        sync()
    assert "restart to open the store anew" in upper.disk("u")["faulted"]
    assert client.pread(4096, 0).endswith(b"y" * 3584), "reads promise nothing, and go on"
    client.shutdown()
    upper.process.send_signal(signal.SIGTERM)
    assert upper.process.wait() == 1, "what no flush has covered may be lost"
    upper.abandon()
    lower.cli("detach", "d")


@requires("strace")
@requires("fio")
def test_without_io_uring_threads_do_the_work_and_it_is_said(serve, device):
    forbid = [
        "strace",
        "-D",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "inject=io_uring_setup:error=EPERM",
    ]
    daemon = serve("-d", f"d=dev:{device()}", under=[*forbid, "-e", "trace=io_uring_setup"])
    said = "d: io_uring is forbidden here (kernel.io_uring_disabled, or a seccomp filter); at most 4 requests at a time"
    assert said in daemon.output()
    target = ["--ioengine=nbd", f"--uri={daemon.uri('d')}"]
    assert fio(target, "--rw=randrw", "--iodepth=16", "--size=4M", "--verify=crc32c", "--fsync=16")["error"] == 0


def test_a_device_in_use_is_refused_by_its_users(serve, device, directory):
    node = device()
    daemon = serve("-d", f"d=dev:{node}")
    assert f"{node} is in use: open by dashpot (pid {daemon.pid})" in refused(f"d=dev:{node}")
    assert "dev:PATH" in refused(f"d=file:{node}")
    daemon.stop()
    assert "open by dashpot (pid " in refused(f"a=dev:{node}", f"b=dev:{node}")


@requires("setpriv")
def test_a_device_of_root_is_refused_to_a_user(device, directory):
    node = device()
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", f"TMPDIR={directory}"]
    program = directory / "dashpot"
    program.write_bytes(pathlib.Path(BINARY).read_bytes())
    program.chmod(0o755)
    os.chmod(directory, 0o777)
    said = run(*user, program, "run", "-d", f"d=dev:{node}", "--", "true", code=125).stderr
    assert "Permission denied" in said and "serve it as root" in said


@requires("mkfs.ext4")
def test_a_mounted_device_is_refused(device, directory):
    node, at = device(), directory / "at"
    at.mkdir()
    run("mkfs.ext4", "-q", node)
    run("mount", node, at)
    try:
        assert f"{node} is in use: mounted at {at}" in refused(f"d=dev:{node}")
    finally:
        run("umount", at)


@requires("mkfs.ext4")
@requires("unshare")
def test_a_device_that_is_about_to_be_closed_is_waited_for(device, directory):
    """The daemon must wait for a device that the kernel is still closing, as after a kill, although no
    process can be seen to use it."""
    node = device()
    at = directory / "there"
    at.mkdir()
    run("mkfs.ext4", "-q", node)
    mounts = f"mount {node} {at} && touch {at}/mounted && exec sleep 1000"
    holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts])
    try:
        eventually(lambda: pathlib.Path(f"/proc/{holder.pid}/root{at}/mounted").exists(), "the mount")
        assert f"{node} is in use: claimed by the kernel" in refused(f"d=dev:{node}")
        command = [BINARY, "run", "-d", f"d=dev:{node}", "--", "true"]
        waits = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        eventually(lambda: f"/{pathlib.Path(BINARY).name}" in os.readlink(f"/proc/{waits.pid}/exe"), "dashpot")
    finally:
        holder.kill()
        holder.wait()
    assert waits.wait(HANG_LIMIT) == 0, waits.stderr.read()


@requires("mkswap")
def test_swap_is_refused(device):
    node = device()
    run("mkswap", node)
    if subprocess.run(["swapon", node], capture_output=True).returncode != 0:
        pytest.skip("this host lets no one add swap")
    try:
        assert f"{node} is in use: swap" in refused(f"d=dev:{node}")
    finally:
        run("swapoff", node)


def test_what_is_no_device_is_refused_with_the_remedy(directory):
    file = directory / "file"
    file.write_bytes(bytes(4096))
    assert "a regular file; name it as such, with file:PATH" in refused(f"d=dev:{file}")
    assert "is a directory" in refused(f"d=dev:{directory}")
    assert "is not there" in refused("d=dev:/dev/nowhere")
    assert "not a block device" in refused("d=dev:/dev/null")


def test_what_does_not_fit_is_refused(device):
    node = device("--sector-size", "4096")
    assert "blocks of 4K, more than the disk's block of 512" in refused(f"d=dev:{node},block=512")
    assert "has 64M, less than the disk's size of 1G" in refused(f"d=dev:{node},size=1G")
    assert "is not a whole number of them" in refused(f"d=dev:{node},size=10000")
    assert "blocks of 512, and this device has blocks of 4K" in refused(f"d=lossy:dev:{node}")


def test_a_device_for_reading_only_is_a_disk_for_reading_only(serve, device):
    node = device("--read-only")
    daemon = serve("-d", f"d=dev:{node}")
    assert daemon.disk()["read_only"]


@requires("fio")
def test_a_lossy_cache_may_be_above_a_device(serve, device):
    daemon = serve("-d", f"d=lossy:dev:{device()}")
    job = fio(["--ioengine=nbd", f"--uri={daemon.uri('d')}"], "--rw=randwrite", "--size=1M", "--verify=crc32c")
    assert job["error"] == 0


def test_a_lab_names_a_device(serve, device, directory):
    node = device()
    lab = directory / "lab.toml"
    lab.write_text(f'[disk.d]\nstore = "dev:{node}"\n')
    assert serve(lab).disk()["store"] == f"dev:{node}"
