"""Mirrors whose disks outlive the daemon: after an unclean stop, or with a file that was swapped, their sides
are made equal, or the files are refused."""

import os

import pytest
from conftest import BINARY, eventually, requires, run
from pools import LAYOUTS, VOLUME, lab
from test_device import device  # noqa: F401 (a fixture)
from test_pool_power_cuts import connect, mirrors, sides_of
from timed import nbd

MIB = 1 << 20
LABEL = "user.dashpot.mirror"


@pytest.fixture(autouse=True)
def attributes(directory):
    try:
        os.setxattr(directory, "user.dashpot.test", b"")
    except OSError:
        pytest.skip(f"the file system of {directory} has no attributes; TMPDIR names another")


def kill(daemon):
    """Kills the daemon at once (SIGKILL)."""
    daemon.abandon()
    daemon.ready.unlink()


def repaired(daemon):
    eventually(lambda: mirrors(daemon)["nosync_regions"] == 0, "a repaired mirror")
    return mirrors(daemon)["repaired_bytes"]


def write_one_side(daemon, directory, text):
    """Sends writes that reach the first side of the mirror but hang on their way to the other, and returns their
    client.
    """
    daemon.cli("inject", "b", "--hang", "-T", "write")
    client = connect(daemon)
    for at in (0, 3 * MIB):
        client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(text * 8192)), at, flags=nbd.CMD_FLAG_FUA)
    eventually(lambda: mirrors(daemon)["dirty_regions"] == 2, "writes to both regions")
    return client


@pytest.mark.parametrize("policy", ["through", "openzfs"])
@pytest.mark.parametrize("store", ["file:{disk}.img", "lossy:file:{disk}.img"])
def test_the_sides_are_equal_again_after_a_daemon_was_killed(serve, directory, policy, store):
    path, _ = lab(directory, policy, "mirror", store, size="8M")
    daemon = serve(path)
    connect(daemon).pwrite(b"o" * 8 * MIB, 0, nbd.CMD_FLAG_FUA)
    client = write_one_side(daemon, directory, b"n")
    if "lossy" in store:
        daemon.cli("crash", "tank", "--off")
    else:
        eventually(lambda: sides_of(directory)[0][3 * MIB] == ord("n"), "a write at one side")
    kill(daemon)
    client = None
    daemon = serve(path)
    assert "the last stop was not clean: up to" in daemon.output()
    client = connect(daemon)
    before = client.pread(8192, 0), client.pread(8192, 3 * MIB)
    assert 2 * MIB <= repaired(daemon) <= 8 * MIB
    assert before == (client.pread(8192, 0), client.pread(8192, 3 * MIB))
    client.flush()
    client.shutdown()
    daemon.stop()
    left, right = sides_of(directory)
    assert left == right and left[MIB : MIB + 8192] == b"o" * 8192
    # A clean stop leaves nothing to repair.
    daemon = serve(path)
    assert "not clean" not in daemon.output() and repaired(daemon) == 0


@pytest.mark.parametrize("new", ["a", "b"])
def test_a_side_on_a_new_file_gets_the_content_of_the_other(serve, directory, new):
    path, _ = lab(directory, "through", "mirror", "file:{disk}.img", size="8M")
    daemon = serve(path)
    connect(daemon).pwrite(b"o" * MIB, MIB, nbd.CMD_FLAG_FUA)
    daemon.stop()
    image = directory / f"{new}.img"
    image.unlink()
    image.write_bytes(b"garbage!" * (MIB // 4))
    lab(directory, "through", "mirror", "file:{disk}.img", size="8M")
    daemon = serve(path)
    other = {"a": "b", "b": "a"}[new]
    assert f"from `{other}` to `{new}`: it has no label of this mirror" in daemon.output()
    # No read may return what was in the new file, neither before nor after the repair.
    expected = bytes(MIB) + b"o" * MIB + bytes(2 * MIB)
    assert connect(daemon).pread(4 * MIB, 0) == expected
    repaired(daemon)
    eventually(lambda: mirrors(daemon)["stale_sides"] == 0, "no stale side")
    daemon.stop()
    left, right = sides_of(directory)
    assert left == right and left[: 4 * MIB] == expected
    assert repaired(serve(path)) == 0


def test_files_of_two_mirrors_do_not_mix(serve, directory):
    path, _ = lab(directory, "through", "mirror", "file:{disk}.img", size="8M")
    daemon = serve(path)
    connect(daemon).pwrite(b"o" * MIB, 0, nbd.CMD_FLAG_FUA)
    daemon.stop()
    label = os.getxattr(directory / "a.img", LABEL)
    os.setxattr(directory / "a.img", LABEL, label.replace(b"mirror=", b"mirror=another-"))
    refused = run_refused(path)
    assert "pool `tank`: `a` and `b` are sides of two different mirrors" in refused
    assert f"setfattr -x {LABEL} FILE" in refused
    os.removexattr(directory / "a.img", LABEL)
    assert "from `b` to `a`" in serve(path).output()


def run_refused(path):
    return run(BINARY, "run", path, "--", "true", code=125).stderr


def test_a_sparse_mirror_stays_sparse(serve, directory):
    path, _ = lab(directory, "through", "mirror", "file:{disk}.img")
    daemon = serve(path)
    connect(daemon).pwrite(b"o" * 8192, 0, nbd.CMD_FLAG_FUA)
    kill(daemon)
    repaired(serve(path))
    assert (directory / "b.img").stat().st_blocks * 512 <= 2 * MIB


@requires("losetup")
def test_block_devices_keep_their_labels_in_a_file(serve, directory, device):  # noqa: F811
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        pytest.skip("block devices take root and /dev/loop-control")
    nodes = [device(size=8 * MIB), device(size=8 * MIB)]
    text = "".join(f'[disk.{name}]\nstore = "dev:{node}"\n' for name, node in zip("ab", nodes))
    text += f'[pool.tank]\ndisks = {LAYOUTS["mirror"]}\nbitmap = "tank.bitmap"\n'
    text += f'[volume."{VOLUME}"]\nsize = "8M"\nblock_size = "8K"\nwrite = "through"\n'
    path = directory / "lab.toml"
    path.write_text(text.replace('bitmap = "tank.bitmap"\n', ""))
    # Without the pool's `bitmap` file, dashpot cannot know where the sides differ.
    daemon = serve(path)
    assert 'give the pool bitmap = "FILE"' in daemon.output()
    assert repaired(daemon) == 8 * MIB
    daemon.stop()
    path.write_text(text)
    daemon = serve(path)
    repaired(daemon)
    eventually(lambda: mirrors(daemon)["stale_sides"] == 0, "no stale side")
    client = connect(daemon)
    client.pwrite(b"o" * 8192, 0, nbd.CMD_FLAG_FUA)
    daemon.cli("inject", "b", "--hang", "-T", "write")
    client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(b"n" * 8192)), 0)
    eventually(lambda: mirrors(daemon)["dirty_regions"] > 0, "a write to the sides")
    kill(daemon)
    lines = (directory / "tank.bitmap").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["a", "b"]
    daemon = serve(path)
    assert "not clean" in daemon.output() and repaired(daemon) > 0
    daemon.stop()
    left, right = (node.file.read_bytes() for node in nodes)
    assert left == right
    daemon = serve(path)
    assert repaired(daemon) == 0
