"""A volume of a pool as a block device of this host. tests/test_volume_file_systems.py kills its daemon."""

import os
import signal
import subprocess

import pytest
from attached import LINKS, attach, can_attach, remains, sysfs  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run
from pools import POLICIES, VOLUME, lab
from test_attach import fio

pytestmark = can_attach


@pytest.fixture
def daemon(serve, directory):
    """A daemon with a volume, whose blocks are on two disks in memory."""
    path, _ = lab(directory)
    return serve(path)


def completed(daemon):
    return {op["op"]: op["completed"] for op in daemon.volume()["ops"]}


def hang(daemon, op):
    for disk in "ab":
        daemon.cli("inject", disk, "--hang", "-T", op)


def reader(node):
    words = ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("block", ["512", "8K", "128K"])
def test_the_device_is_what_the_volume_is(serve, attach, directory, block):
    path, _ = lab(directory, block=block)
    daemon = serve(path)
    attached = daemon.json("attach", VOLUME, "--with", "loop")
    node = attached["node"]
    assert (attached["disk"], attached["link"]) == (VOLUME, f"/dev/dashpot/{VOLUME}")
    assert os.path.realpath(LINKS / VOLUME) == node
    assert int(sysfs(node, "size")) * 512 == 48 << 20
    granularity = {"512": 512, "8K": 8192, "128K": 128 << 10}[block]
    for name, value in [
        ("logical_block_size", "512"),
        ("rotational", "0"),
        ("nr_requests", "128"),
        ("write_cache", "write back"),
        ("max_sectors_kb", "1024"),
        ("discard_granularity", str(granularity)),
    ]:
        assert sysfs(node, f"queue/{name}") == value, name
    assert int(sysfs(node, "queue/discard_max_bytes")) > 0 and sysfs(node, "ro") == "0"
    assert os.path.basename(sysfs(node, "loop/backing_file")) == "tank%2Fv"
    assert [client["name"] for client in daemon.volume()["clients"]] == [node]
    (attachment,) = daemon.volume()["attachments"]
    assert (attachment["node"], attachment["mechanism"]) == (node, "loop")
    assert f"  {node}: attached by uid=0" in daemon.cli("status").stdout.split(f"\n{VOLUME}\n")[1]
    daemon.cli("detach", VOLUME)
    assert not remains()


@pytest.mark.parametrize("policy", POLICIES)
def test_bytes_flushes_zeroes_and_discards_arrive_as_such(serve, attach, directory, policy):
    path, _ = lab(directory, policy)
    daemon = serve(path)
    node = attach(daemon, VOLUME)
    with open(node, "r+b", buffering=0) as device:
        device.write(b"dashpot!" * 4096)
        os.fsync(device)
    assert completed(daemon)["write"] > 0 and completed(daemon)["flush"] > 0
    run("blkdiscard", "--offset", "8192", "--length", "8192", node)
    assert completed(daemon)["trim"] == 1
    # This call of blkdiscard zeroes only a part of a block: the rest of the block stays.
    run("blkdiscard", "--zeroout", "--offset", "20480", "--length", "4096", node)
    assert completed(daemon)["zero"] == 1
    with open(node, "rb") as device:
        found = device.read(32768)
    parts = [found[at : at + 4096] == bytes(4096) for at in range(0, 32768, 4096)]
    assert parts == [False, False, True, True, False, True, False, False]
    daemon.cli("detach", node)


@requires("fio")
@pytest.mark.parametrize("policy", POLICIES)
def test_what_fio_has_written_at_depth_it_finds(serve, attach, directory, policy):
    path, _ = lab(directory, policy)
    daemon = serve(path)
    node = attach(daemon, VOLUME)
    job = fio(
        node, "--rw=randwrite", "--iodepth=64", "--bsrange=512-64k", "--verify=crc32c", "--size=24M", "--fsync=16"
    )
    assert job["error"] == 0
    daemon.cli("detach", node)


@requires("fio")
def test_depth_arrives_whole(daemon, attach):
    node = attach(daemon, VOLUME)
    hang(daemon, "read")
    words = ["fio", "--name=job", f"--filename={node}", "--ioengine=libaio", "--direct=1", "--bs=4k", "--rw=randread"]
    job = subprocess.Popen([*words, "--iodepth=128", "--number_ios=1000"], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: daemon.volume()["in_flight"] == 128, "128 in flight")
        (attachment,) = daemon.volume()["attachments"]
        assert attachment["in_flight"] == 128 == sum(map(int, sysfs(node, "inflight").split()))
        said = daemon.cli("status").stdout
        assert f"{node}: in flight: 128 here, 128 of at most 128 in the device" in said and "most 128" in said
    finally:
        for disk in "ab":
            daemon.cli("clear", disk, "--release")
        assert job.wait(HANG_LIMIT) == 0
    daemon.cli("detach", node)


def test_held_io_is_named_and_failed_on_request(daemon, attach):
    node = attach(daemon, VOLUME)
    hang(daemon, "read")
    process = reader(node)
    eventually(lambda: daemon.volume()["in_flight"] == 1, "a read that hangs")
    refused = daemon.cli("detach", VOLUME, code=1).stderr
    assert f"open by dd (pid {process.pid})" in refused and "--fail-held ends them with EIO" in refused
    daemon.cli("detach", VOLUME, "--fail-held")
    _, said = process.communicate(timeout=HANG_LIMIT)
    assert process.returncode == 1 and "Input/output error" in said
    assert not remains()


@pytest.mark.parametrize("op", ["read", "write"])
def test_shutdown_fails_what_is_held(serve, attach, directory, op):
    path, _ = lab(directory, "through")
    daemon = serve(path)
    node = attach(daemon, VOLUME)
    hang(daemon, op)
    words = {
        "read": [f"if={node}", "of=/dev/null", "iflag=direct"],
        "write": ["if=/dev/zero", f"of={node}", "oflag=direct"],
    }
    process = subprocess.Popen(["dd", "bs=4k", "count=1", *words[op]], stderr=subprocess.DEVNULL)
    eventually(lambda: daemon.volume()["in_flight"] == 1, f"a {op} that hangs")
    daemon.stop()
    assert process.wait(HANG_LIMIT) == 1
    assert run(BINARY, "detach", "--stale").stdout == f"{node}\n"
    assert not remains()


def test_names_that_are_no_volume_are_refused_with_the_remedy(daemon, attach, directory):
    node = attach(daemon, VOLUME)
    for words, expected in [
        (["attach", VOLUME], f"volume '{VOLUME}': it is {node} already: dashpot detach {node} frees it"),
        (["attach", "tank"], f"'tank' is a pool: name a volume of the pool ({VOLUME})"),
        (["attach", "a"], f"disk 'a' belongs to pool 'tank': name a volume of the pool ({VOLUME})"),
        (["attach", "tank/w"], f"no disk or volume 'tank/w': did you mean '{VOLUME}'?"),
        (["attach", "other"], f"no disk or volume 'other': there is {VOLUME}"),
        (["mount", "tank", directory], f"'tank' is a pool: name a volume of the pool ({VOLUME})"),
        (["detach", "tank"], f"'tank' is not attached by dashpot: it attached {node} ({VOLUME})"),
    ]:
        assert daemon.cli(*words, code=1).stderr == f"dashpot: {expected}\n"
    daemon.cli("detach", LINKS / VOLUME)
    assert f"volume '{VOLUME}' has no file system" in daemon.cli("mount", VOLUME, directory, code=1).stderr
    assert not remains() and not daemon.volume()["clients"]


def test_a_link_that_would_be_a_directory_of_another_is_refused(daemon, serve, attach):
    disk = serve("-d", "tank=ram,size=8M")
    for one, name, two, other in [(daemon, VOLUME, disk, "tank"), (disk, "tank", daemon, VOLUME)]:
        node = attach(one, name)
        before = remains()
        refused = two.cli("attach", other, code=1).stderr
        assert f"/dev/dashpot/{other} cannot be a link beside /dev/dashpot/{name}" in refused
        assert f"detach {node}, or give one of them another name" in refused
        assert remains() == before
        one.cli("detach", name)
        assert not remains()
    # A new link must replace the link of a daemon that was killed, even if the path of one of the two links is a
    # directory on the path of the other.
    attach(daemon, VOLUME)
    daemon.abandon()
    disk.cli("detach", attach(disk, "tank"))
    assert not remains()


def test_a_directory_of_links_goes_with_the_last_of_them(serve, attach, directory):
    path, _ = lab(directory)
    path.write_text(path.read_text() + '[volume."tank/w/x"]\nsize = "8M"\nblock_size = "8K"\n')
    daemon = serve(path)
    attach(daemon, VOLUME)
    node = attach(daemon, "tank/w/x")
    assert os.path.realpath(LINKS / "tank/w/x") == node
    daemon.cli("detach", VOLUME)
    assert [entry.name for entry in (LINKS / "tank").iterdir()] == ["w"]
    daemon.cli("detach", "all")
    assert not remains()


def test_only_a_volume_that_writes_through_to_files_has_an_identity(serve, directory):
    """Only a volume that writes through to files has an identity. It changes with the files, and with the place
    of the volume's blocks in them."""

    def identity(policy="through", store="file:{disk}.img", before="", layout="mirror"):
        path, _ = lab(directory, policy, layout, store, size="8M")
        path.write_text(path.read_text().replace("[volume.", f"{before}[volume."))
        daemon = serve(path)
        found = daemon.volume()["store_id"]
        daemon.stop()
        return found

    plain = identity()
    assert plain and identity() == plain
    for policy, store in [
        ("none", "file:{disk}.img"),
        ("openzfs", "file:{disk}.img"),
        ("legacy", "file:{disk}.img"),
        ("through", "ram"),
        ("through", "lossy:file:{disk}.img"),
    ]:
        assert identity(policy, store) is None, (policy, store)
    other = '[volume."tank/u"]\nsize = "8M"\n'
    assert len({plain, identity(before=other), identity(layout="stripe")}) == 3


@requires("mkfs.ext4")
def test_a_file_system_while_rules_come_and_go(daemon, attach, tmp_path):
    daemon.cli("mount", VOLUME, tmp_path, "--mkfs", "--with", "loop")
    for rule in [["-D", "5ms"], ["-D", "20ms:2", "-T", "write,flush"]]:
        daemon.cli("inject", "a", *rule)
        run("dd", "if=/dev/urandom", f"of={tmp_path}/file", "bs=256k", "count=16", "conv=fsync")
        wanted = run("sha256sum", tmp_path / "file").stdout
        run("sh", "-c", "sync; echo 3 >/proc/sys/vm/drop_caches", code=None)
        assert run("sha256sum", tmp_path / "file").stdout == wanted
        daemon.cli("clear", "a")
    run("fstrim", tmp_path)
    assert completed(daemon)["trim"] > 0
    daemon.cli("detach", VOLUME)
    assert not os.path.ismount(tmp_path) and not remains()
    node = attach(daemon, VOLUME)
    run("fsck.ext4", "-fn", node)
    daemon.cli("detach", VOLUME)


@pytest.mark.parametrize("policy", ["through", "openzfs"])
def test_what_was_flushed_survives_a_power_cut(serve, attach, directory, policy):
    path, _ = lab(directory, policy, store="lossy:ram")
    daemon = serve(path)
    node = attach(daemon, VOLUME)
    with open(node, "r+b", buffering=0) as device:
        device.write(b"flushed!" * 512)
        os.fsync(device)
    run("dd", "if=/dev/zero", f"of={node}", "bs=4k", "seek=1", "count=1", "oflag=direct")
    daemon.cli("crash", "tank", "--keep", "none", "--off")
    assert run("dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct", code=1).stderr
    daemon.cli("detach", node)
    assert f"volume '{VOLUME}'" in daemon.cli("attach", VOLUME, code=1).stderr
    daemon.cli("crash", "tank", "--restart")
    with open(attach(daemon, VOLUME), "rb") as device:
        assert device.read(4096) == b"flushed!" * 512
    daemon.cli("detach", VOLUME)
    assert not remains()


def test_run_attaches_the_volume_that_is_named(attach, directory):
    path, _ = lab(directory)
    script = 'test "$DASHPOT_DEV" = "$DASHPOT_DEV_TANK_V" && blockdev --getsize64 "$DASHPOT_DEV"'
    for option in ["--attach", f"--attach={VOLUME}"]:
        assert run(BINARY, "run", path, option, "--", "sh", "-c", script).stdout == f"{48 << 20}\n"
    for name, expected in [
        ("tank", f"--attach tank: that is a pool; name a volume of it: {VOLUME}"),
        ("a", f"--attach a: that disk belongs to pool 'tank'; name a volume of it: {VOLUME}"),
        (f"{VOLUME},{VOLUME}", f"--attach {VOLUME}: it is named twice; leave one out"),
        ("tank/w", f"--attach tank/w: there is no such disk or volume; did you mean '{VOLUME}'?"),
    ]:
        assert expected in run(BINARY, "run", path, f"--attach={name}", "--", "true", code=125).stderr
    refused = run(BINARY, "run", "--attach", VOLUME, "--", "true", code=125).stderr
    assert f"to attach the disk or volume of that name: --attach={VOLUME}" in refused
    assert not remains()


def test_a_signal_ends_serve_while_it_attaches(attach, directory):
    """A signal must end `serve` while it attaches: the first device is there already, and the second one waits for
    a flush that hangs. (The rules of `run` are armed only when its devices are there.)"""
    places = ["--api", "unix:-", "--nbd", "unix:-"]
    disks = ["-d", "d=ram,size=8M", "-d", "e=ram,size=8M", "-r", "e --hang -T flush"]
    process = subprocess.Popen([BINARY, "serve", *disks, "--attach", *places], stderr=subprocess.PIPE, text=True)
    while "waits for its first I/O" not in (line := process.stderr.readline()):
        assert line, "it has ended"
    assert "disk 'e' holds" in line
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=HANG_LIMIT)
    assert process.returncode == 1 and "interrupted: nothing is attached" in said, said
    assert not remains()


@requires("mkfs.ext4")
def test_run_mounts_the_volume(attach, directory, tmp_path):
    path, _ = lab(directory)
    run(BINARY, "run", path, "--mount", tmp_path, "--", "sh", "-c", f"echo whole >{tmp_path}/file && sync")
    assert not os.path.ismount(tmp_path) and not remains()


def test_serve_attaches_every_disk_that_clients_reach(attach, directory):
    path, _ = lab(directory)
    path.write_text(path.read_text() + '[disk.lone]\nstore = "ram"\nsize = "8M"\n')
    ready = directory / "ready"
    words = ["serve", path, "--attach", "--ready-file", ready, "--api", "unix:-", "--nbd", "unix:-"]
    daemon = subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, text=True)
    try:
        eventually(lambda: ready.exists() or daemon.poll() is not None, "ready")
        assert (LINKS / VOLUME).is_symlink() and (LINKS / "lone").is_symlink() and not (LINKS / "a").exists()
    finally:
        daemon.terminate()
        said, _ = daemon.communicate(timeout=HANG_LIMIT)
    assert daemon.returncode == 0 and not remains()
    assert {line.split()[0] for line in said.splitlines() if "  /dev/" in line} == {VOLUME, "lone"}
