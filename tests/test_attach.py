"""`dashpot attach`: a disk as a block device of this host, by a loop device over a FUSE file."""

import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from attached import BASE, attach, can_attach, can_write, own_loop, remains, sysfs  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run

pytestmark = can_attach


def fio(node, *options, code=0):
    """fio's figures for one job on a node."""
    words = [
        "--name=job",
        f"--filename={node}",
        "--ioengine=libaio",
        "--direct=1",
        "--bs=4k",
        "--output-format=json",
        "--verify_state_save=0",
    ]
    done = run("fio", *words, *options, code=code)
    return json.loads(done.stdout)["jobs"][0] if code == 0 else done


def descriptors(daemon):
    """How many connections to the kernel a daemon has."""
    folder = f"/proc/{daemon.pid}/fd"
    links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
    return links.count("/dev/fuse")


def test_the_device_is_what_the_disk_is(serve, attach):
    daemon = serve("-d", "d=ram,size=64M", "-d", "big=ram,size=8M,block=4K", "-d", "ro=ram,size=1M,ro")
    node, big, ro = [attach(daemon, disk) for disk in ("d", "big", "ro")]
    assert int(sysfs(node, "size")) * 512 == 64 << 20
    for name, value in [
        ("logical_block_size", "512"),
        ("rotational", "0"),
        ("nr_requests", "128"),
        ("write_cache", "write back"),
        ("max_sectors_kb", "1024"),
    ]:
        assert sysfs(node, f"queue/{name}") == value, name
    assert "[none]" in sysfs(node, "queue/scheduler")
    assert int(sysfs(node, "queue/discard_max_bytes")) > 0
    assert sysfs(node, "loop/dio") == "1"
    assert sysfs(big, "queue/logical_block_size") == "4096"
    assert (sysfs(node, "ro"), sysfs(ro, "ro")) == ("0", "1")
    assert run("dd", "if=/dev/zero", f"of={ro}", "bs=4k", "count=1", code=1).stderr
    assert os.path.basename(sysfs(node, "loop/backing_file")) == "d"
    daemon.cli("detach", "all")


def test_bytes_flushes_zeroes_and_discards_arrive_as_such(daemon, attach):
    node = attach(daemon)
    with open(node, "r+b", buffering=0) as device:
        device.write(b"dashpot!" * 1024)
        os.fsync(device)
    ops = {op["op"]: op["completed"] for op in daemon.disk()["ops"]}
    assert ops["write"] > 0 and ops["flush"] > 0, ops
    run("blkdiscard", "--offset", "4096", "--length", "4096", node)
    assert {op["op"]: op["completed"] for op in daemon.disk()["ops"]}["trim"] == 1
    run("dd", f"if={node}", f"of={daemon.directory}/bytes", "bs=8k", "count=1", "iflag=direct")
    assert (daemon.directory / "bytes").read_bytes() == b"dashpot!" * 512 + bytes(4096)
    daemon.cli("detach", node)


def lower_the_depth(node):
    """Makes the kernel say that the device takes 128 requests, although it takes only 16."""
    queue = pathlib.Path("/sys/block", os.path.basename(node), "queue")
    for name, value in [("nr_requests", "16"), ("scheduler", "mq-deadline"), ("scheduler", "none")]:
        eventually(lambda: can_write(queue / name, value), name)


@requires("fio")
@pytest.mark.parametrize("depth, former", [(64, False), (128, False), (128, True)])
def test_depth_arrives_whole(daemon, attach, own_loop, depth, former):
    """All I/Os must arrive at the disk at once, even if a former user of the device has lowered its depth."""
    if former:
        lower_the_depth(own_loop)
    node = attach(daemon)
    daemon.cli("inject", "d", "--hang", "-T", "read", "--name", "stuck")
    words = ["fio", "--name=job", f"--filename={node}", "--ioengine=libaio", "--direct=1", "--bs=4k", "--rw=randread"]
    job = subprocess.Popen([*words, f"--iodepth={depth}", "--number_ios=1000"], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: daemon.disk()["in_flight"] == depth, f"{depth} in flight")
        (attachment,) = daemon.disk()["attachments"]
        assert attachment["node"] == node and attachment["in_flight"] == depth
        assert sum(map(int, sysfs(node, "inflight").split())) == depth
    finally:
        daemon.cli("clear", "stuck", "--release")
        assert job.wait(HANG_LIMIT) == 0
    daemon.cli("detach", node)


@requires("fio")
def test_the_depth_of_a_full_device_is_no_riddle(daemon, attach):
    """The disk has as many I/Os as the device can have, so `list` must not say that the clients limit the
    depth."""
    node = attach(daemon)
    daemon.cli("inject", "d", "-D", "100ms", "-T", "read")
    fio(node, "--rw=randread", "--iodepth=128", "--number_ios=1024")
    depth = daemon.rules()[1]["depth"]
    assert depth["most"] == depth["usual"] == 128, depth
    assert "at a time" not in daemon.cli("list").stdout
    # If the device takes more or fewer I/Os than 128, reports say that the clients limit the depth.
    (pathlib.Path("/sys/block") / os.path.basename(node) / "queue/nr_requests").write_text("64")
    assert "clients offered at most 128 at a time" in " ".join(daemon.cli("list").stdout.split())
    daemon.cli("detach", node)


@requires("fio")
def test_no_io_is_early_and_all_of_them_are_late_by_the_rule(daemon, attach):
    node = attach(daemon)
    daemon.cli("inject", "d", "-D", "50ms", "-T", "read")
    daemon.cli("inject", "d", "-D", "100ms", "-T", "write")
    reads = fio(node, "--rw=randread", "--iodepth=128", "--number_ios=512")["read"]
    writes = fio(node, "--rw=randwrite", "--iodepth=128", "--number_ios=512")["write"]
    assert reads["lat_ns"]["min"] >= 50e6 and writes["lat_ns"]["min"] >= 100e6
    assert [rule["held"] for rule in daemon.rules().values()] == [512, 512]
    daemon.cli("detach", node)


def test_the_client_is_the_node(daemon, attach):
    node = attach(daemon)
    assert [client["name"] for client in daemon.disk()["clients"]] == [node]
    (attachment,) = daemon.disk()["attachments"]
    assert attachment["mechanism"] == "loop" and attachment["by"].startswith("uid=0 pid=")
    # Only the kernel has the other end of the connection.
    assert descriptors(daemon) == 1
    daemon.cli("detach", "d")
    eventually(lambda: not daemon.disk()["clients"], "no client")
    assert descriptors(daemon) == 0


def test_attached_and_detached_200_times_leaves_nothing(serve, attach):
    """Four programs attach and detach disks at the same time. A command that looks for stale devices locks each device
    for a moment, and this must not keep another program from its own device.
    """
    disks = [f"d{i}" for i in range(4)]
    daemon = serve(*[word for disk in disks for word in ("-d", f"{disk}=ram,size=1M")])

    def held():
        return [len(os.listdir(f"/proc/{daemon.pid}/{kind}")) for kind in ("fd", "task")]

    def again_and_again(disk):
        for _ in range(50):
            daemon.cli("detach", attach(daemon, disk))

    before = held()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(again_and_again, disks))
    assert not remains()
    eventually(lambda: held() == before, f"as many descriptors and threads as before: {before}")


def test_a_device_that_another_command_has_locked_is_named(daemon, attach):
    node = attach(daemon)
    (lock,) = BASE.glob("*/lock")
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        refused = daemon.cli("detach", "d", code=1).stderr
        assert f"another command attaches or detaches {node}: wait for it, or end it" in refused
    daemon.cli("detach", "d")


@requires("fio")
def test_ten_devices_at_once(serve, attach):
    disks = [f"d{i}" for i in range(10)]
    daemon = serve(*[word for disk in disks for word in ("-d", f"{disk}=ram,size=8M")])
    helpers = [daemon.start("attach", disk, "--with", "loop") for disk in disks]
    told = [helper.communicate(timeout=HANG_LIMIT) for helper in helpers]
    assert [helper.returncode for helper in helpers] == [0] * 10, told
    nodes = [output.strip() for output, _ in told]
    assert len(set(nodes)) == 10
    files = ":".join(nodes)
    job = fio(files, "--rw=randwrite", "--iodepth=16", "--verify=crc32c", "--size=4M")
    assert job["error"] == 0
    daemon.cli("detach", "all")
    assert not remains()


def test_who_uses_it_is_named_and_it_stays(daemon, attach, tmp_path):
    node = attach(daemon)
    with open(node, "rb"):
        refused = daemon.cli("detach", node, code=1)
        assert f"(pid {os.getpid()})" in refused.stderr
    assert sysfs(node, "loop/dio") == "1"
    run("mkfs.ext4", "-q", node)
    at = tmp_path / "at"
    at.mkdir()
    run("mount", node, at)
    try:
        refused = daemon.cli("detach", node, code=1)
        assert f"mounted at {at}" in refused.stderr
        assert daemon.disk()["attachments"]
    finally:
        run("umount", at)
    daemon.cli("detach", node)


def test_held_io_is_named_and_failed_on_request(daemon, attach):
    node = attach(daemon)
    daemon.cli("inject", "d", "--hang", "-T", "read")
    reader = subprocess.Popen(
        ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"], stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: daemon.disk()["in_flight"] == 1, "a read that hangs")
    refused = daemon.cli("detach", node, code=1)
    assert f"open by dd (pid {reader.pid})" in refused.stderr
    assert "--fail-held ends them with EIO" in refused.stderr
    daemon.cli("detach", node, "--fail-held")
    _, said = reader.communicate(timeout=HANG_LIMIT)
    assert reader.returncode == 1 and "Input/output error" in said


def test_a_node_can_be_named_to_another_daemon(daemon, serve, attach):
    """If `detach` talks to a daemon that has not attached the node, it must find the node's daemon in the
    device's record, and name that daemon."""
    node, other = attach(daemon), serve("-d", "d=ram,size=8M")
    refused = other.cli("detach", "d", code=1).stderr
    assert f"'d' is not attached by dashpot: it attached {node} (d of the daemon at unix:{daemon.api})" in refused
    daemon.cli("inject", "d", "--hang", "-T", "read")
    reader = subprocess.Popen(
        ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"], stderr=subprocess.PIPE
    )
    eventually(lambda: daemon.disk()["in_flight"] == 1, "a read that hangs")
    assert "--fail-held ends them with EIO" in other.cli("detach", node, code=1).stderr
    other.cli("detach", node, "--fail-held")
    reader.communicate(timeout=HANG_LIMIT)
    assert not remains() and not daemon.disk()["clients"]


def test_shutdown_fails_what_is_held(serve, attach):
    daemon = serve("-d", "d=ram,size=8M")
    node = attach(daemon)
    daemon.cli("inject", "d", "--hang", "-T", "read")
    reader = subprocess.Popen(
        ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"], stderr=subprocess.DEVNULL
    )
    eventually(lambda: daemon.disk()["in_flight"] == 1, "a read that hangs")
    daemon.stop()
    assert reader.wait(HANG_LIMIT) == 1
    assert run(BINARY, "detach", "--stale").stdout == f"{node}\n"


@requires("mkfs.ext4")
def test_a_killed_daemon_leaves_nothing_stuck(serve, attach, tmp_path):
    daemon = serve("-d", "d=ram,size=64M")
    at = tmp_path / "at"
    at.mkdir()
    node = daemon.cli("mount", "d", at, "--mkfs", "--with", "loop").stdout.strip()
    writer = subprocess.Popen(
        ["dd", "if=/dev/zero", f"of={at}/file", "bs=4k", "oflag=direct"], stderr=subprocess.DEVNULL
    )
    eventually(lambda: {op["op"]: op["completed"] for op in daemon.disk()["ops"]}["write"] > 100, "writes")
    daemon.abandon()
    assert writer.wait(HANG_LIMIT) != 0
    # The next daemon must find the remains of this attachment and remove them.
    again = serve("-d", "d=ram,size=64M")
    attach(again)
    assert not os.path.ismount(at)
    again.cli("detach", "d")
    assert node


@pytest.mark.parametrize("moment", range(6))
def test_a_killed_helper_leaves_nothing(daemon, attach, moment):
    helper = daemon.start("attach", "d", "--with", "loop")
    # Each run kills the helper at a different step.
    steps = [
        lambda: True,
        lambda: any(BASE.glob("*")),
        lambda: any(BASE.glob("*/d")),
        lambda: daemon.disk()["clients"],
        lambda: remains() and any("/dev/" in what for what in remains()),
        lambda: helper.poll() is not None,
    ]
    eventually(lambda: steps[moment]() or helper.poll() is not None, "the step")
    helper.send_signal(signal.SIGKILL)
    helper.communicate(timeout=HANG_LIMIT)
    if daemon.cli("detach", "d", code=None).returncode:
        daemon.cli("detach", "--stale")
    assert not remains()
    eventually(lambda: not daemon.disk()["clients"], "no client")
    daemon.cli("detach", attach(daemon))


@pytest.mark.parametrize("moment", range(5))
def test_an_interrupted_attach_leaves_nothing(daemon, attach, moment):
    """Ctrl-C comes at a different step each time. `attach` must undo its work, if there was any."""
    helper = daemon.start("attach", "d", "--with", "loop")
    steps = [
        lambda: any(BASE.glob("*")),
        lambda: any(BASE.glob("*/d")),
        lambda: daemon.disk()["clients"],
        lambda: any("/dev/" in what for what in remains()),
        lambda: any(BASE.glob("*/record")),
    ]
    eventually(lambda: steps[moment]() or helper.poll() is not None, "the step")
    helper.send_signal(signal.SIGINT)
    said, _ = helper.communicate(timeout=HANG_LIMIT)
    if helper.returncode == 0:
        # The signal came after the attachment was complete.
        daemon.cli("detach", said.strip())
    assert not remains()
    eventually(lambda: not daemon.disk()["clients"], "no client")


@pytest.mark.parametrize("held", [["inject", "d", "--hang", "-T", "flush"], ["suspend", "d", "--now"]])
def test_a_disk_that_holds_the_first_flush_can_be_given_up(daemon, attach, held):
    """`attach` waits while the disk holds the first flush, which the kernel sends to the file below a new loop
    device. Only the daemon can end that flush, but the user must be able to interrupt `attach`."""
    daemon.cli(*held)
    helper = daemon.start("attach", "d", "--with", "loop")
    said = helper.stderr.readline()
    assert re.search(r"/dev/loop\d+: waits for its first I/O, which disk 'd' holds; Ctrl-C gives up", said), said
    helper.send_signal(signal.SIGINT)
    _, said = helper.communicate(timeout=HANG_LIMIT)
    assert helper.returncode == 1 and said == "dashpot: interrupted: nothing is attached\n"
    assert not remains()
    eventually(lambda: not daemon.disk()["clients"], "no client")


@requires("mkfs.ext4")
@pytest.mark.parametrize("held", ["read", "write"])
def test_an_interrupted_mkfs_leaves_nothing(daemon, attach, tmp_path, held):
    """An interrupted mkfs must leave nothing. A rule holds the I/O of mkfs, or of the tool that looks for an existing
    file system. After Ctrl-C the device must be removed, and the tool must end, too.
    """
    daemon.cli("inject", "d", "--hang", "-T", held)
    helper = daemon.start("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    eventually(lambda: daemon.disk()["in_flight"] > 0, "I/O that hangs")
    helper.send_signal(signal.SIGINT)
    _, said = helper.communicate(timeout=HANG_LIMIT)
    assert helper.returncode == 1 and "interrupted" in said
    assert not os.path.ismount(tmp_path) and not remains()
    eventually(lambda: not daemon.disk()["clients"], "no client")


@pytest.mark.parametrize("length", [104, 105, 107])
def test_the_longest_path_of_a_socket_will_do(serve, attach, tmp_path, length):
    folder = pathlib.Path(f"/tmp/{os.getpid()}-{length}".ljust(length - len("/api.sock"), "x"))
    folder.mkdir()
    try:
        daemon = serve("-d", "d=ram,size=8M", "--api", f"unix:{folder}/api.sock")
        daemon.api = folder / "api.sock"
        daemon.cli("detach", attach(daemon))
    finally:
        shutil.rmtree(folder)


def test_a_record_that_cannot_be_read_is_left_alone(daemon, attach):
    """A record that dashpot cannot read must be left alone: it may be of another version, and its device may
    be in use."""
    node = attach(daemon)
    (record,) = BASE.glob("*/record")
    text = record.read_text()
    record.write_text("{}")
    daemon.cli("detach", "--stale")
    assert "is not attached by dashpot" in daemon.cli("detach", node, code=1).stderr
    record.write_text(text)
    assert daemon.disk()["attachments"]
    daemon.cli("detach", node)


def test_what_makes_no_sense_is_refused_and_nothing_is_half_done(serve, attach):
    daemon = serve(
        "-d", "d=ram,size=8M", "-d", "wide=ram,size=8M,block=64K", "-d", "odd=ram,size=1000", "-d", "ro=ram,size=8M,ro"
    )
    node = attach(daemon)
    for words, expected in [
        (["attach", "d"], [f"it is {node} already", f"dashpot detach {node}"]),
        (["attach", "e"], ["no disk or volume 'e': did you mean"]),
        (["mount", "ro", "/tmp", "--mkfs"], ["--mkfs: disk 'ro' is read-only"]),
        (["attach", "wide"], ["blocks of 64K", "block=4K"]),
        (["attach", "odd"], ["1000 bytes", "another size"]),
        (["attach", "d", "--with", "nbd"], ["--with nbd", "nbd"]),
        (["attach", "d", "--with", "ublk"], ["--with ublk", "no ublk driver", "modprobe ublk_drv"]),
        (["detach", "/dev/loop999"], ["'/dev/loop999' is not attached by dashpot", node]),
        (["detach", "e"], ["'e' is not attached by dashpot"]),
        (["mount", "wide", "/tmp"], ["blocks of 64K"]),
    ]:
        refused = daemon.cli(*words, code=1).stderr
        assert all(word in refused for word in expected), refused
    daemon.cli("detach", node)
    for words in [["attach", ""], ["mount", "", "/tmp"], ["detach", ""]]:
        assert "a value is required" in daemon.cli(*words, code=2).stderr
    for words, expected in [
        (["/nonexistent"], "cannot mount at /nonexistent: make it first"),
        (["/dev/null", "--mkfs"], "cannot mount at /dev/null: it is not a directory"),
        (["/tmp"], "disk 'd' has no file system: --mkfs makes one"),
    ]:
        assert expected in daemon.cli("mount", "d", *words, code=1).stderr
    assert not remains() and not daemon.disk()["clients"]


@requires("mkfs.ext4")
def test_who_uses_its_files_is_named_and_they_stay(daemon, attach, tmp_path):
    at = tmp_path / "at"
    at.mkdir()
    daemon.cli("mount", "d", at, "--mkfs", "--with", "loop")
    for script in ["cd {at} && exec sleep infinity", "exec sleep infinity < {at}"]:
        user = subprocess.Popen(["sh", "-c", script.format(at=at)])
        eventually(lambda: pathlib.Path(f"/proc/{user.pid}/comm").read_text() == "sleep\n", "sleep")
        try:
            refused = daemon.cli("detach", "d", code=1).stderr
            assert f"mounted at {at}, and its files are in use by sleep (pid {user.pid})" in refused
            assert os.path.ismount(at)
        finally:
            user.kill()
            user.wait()
    daemon.cli("detach", "d")
    assert not os.path.ismount(at) and not remains()


@requires("mkfs.ext4")
@pytest.mark.parametrize("words", [["attach", "d"], ["attach", "d", "--json"], ["mount", "d", "{at}", "--mkfs"]])
def test_an_attachment_that_cannot_be_told_is_undone(daemon, attach, tmp_path, words):
    at = tmp_path / "at"
    at.mkdir()
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BINARY, *[word.format(at=at) for word in words]],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "DASHPOT_API": f"unix:{daemon.api}"},
        )
    assert done.returncode == 1 and "cannot print the node, so nothing is attached" in done.stderr
    assert not os.path.ismount(at) and not remains()


@requires("mkfs.ext4")
def test_two_disks_are_not_mounted_at_one_directory(serve, attach, tmp_path):
    """Two disks cannot be mounted at one directory, because `detach` of the lower disk would unmount the
    upper disk."""
    daemon = serve("-d", "d=ram,size=8M", "-d", "e=ram,size=8M")
    node = daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop").stdout.strip()
    refused = daemon.cli("mount", "e", tmp_path, "--mkfs", "--with", "loop", code=1).stderr
    assert f"{node} (disk 'd') is mounted there: 'dashpot detach {node}' unmounts it" in refused
    assert not daemon.disk("e")["clients"]
    daemon.cli("detach", "d")
    assert not os.path.ismount(tmp_path) and not remains()


@requires("mkfs.xfs")
def test_a_file_system_that_cannot_be_made_is_refused_in_a_line(daemon, attach):
    refused = daemon.cli("mount", "d", "/tmp", "--mkfs", "--fs", "xfs", code=1).stderr
    assert re.fullmatch(r"dashpot: mkfs.xfs: .*\n", refused), refused
    assert not remains()


def test_auto_says_which_way_and_why_no_other(daemon, attach):
    attached = daemon.cli("attach", "d")
    node = attached.stdout.strip()
    assert re.search(rf"{node} is d, by loop \(nbd: .*; ublk: .*\)", attached.stderr), attached.stderr
    daemon.cli("detach", node)
    ways = {way["way"]: way for way in daemon.json("doctor")["ways"]}
    assert ways["attach: a /dev/loop node for any program"]["works"]


def test_what_was_flushed_survives_a_power_cut(serve, attach):
    daemon = serve("-d", "d=lossy:ram,size=8M")
    node = attach(daemon)
    with open(node, "r+b", buffering=0) as device:
        device.write(b"flushed!" * 512)
        os.fsync(device)
    run("dd", "if=/dev/zero", f"of={node}", "bs=4k", "seek=1", "count=1", "oflag=direct")
    daemon.cli("crash", "d", "--keep", "none", "--off")
    # The disk's power is off and the device only returns errors, but the device can still be detached.
    assert run("dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct", code=1).stderr
    daemon.cli("detach", node)
    refused = daemon.cli("attach", "d", code=1).stderr
    assert "takes no clients now" in refused
    daemon.cli("crash", "d", "--restart")
    node = attach(daemon)
    with open(node, "rb") as device:
        assert device.read(4096) == b"flushed!" * 512
    daemon.cli("detach", node)
    assert not remains()
