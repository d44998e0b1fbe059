"""The links of attached disks, /dev/dashpot/DISK, and the disks that `serve --attach` and `run --attach` name."""

import os
import subprocess

import pytest
from attached import LINKS, attach, can_attach, remains  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run
from test_attach_rights import user  # noqa: F401 (a fixture)
from test_device import SIZE, device  # noqa: F401 (a fixture)

pytestmark = can_attach


def leads_to(link, node):
    return os.path.islink(link) and os.path.realpath(link) == node


def test_a_link_leads_to_the_node_until_it_is_detached(serve, attach):
    daemon = serve("-d", "d=ram,size=8M", "-d", "tank/foo=ram,size=8M", "-d", "a/../b=ram,size=8M")
    for disk, name in [("d", "d"), ("tank/foo", "tank/foo"), ("a/../b", "a%2F..%2Fb")]:
        node, link = attach(daemon, disk), LINKS / name
        assert leads_to(link, node)
        run("dd", f"if={link}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct")
        # `detach` takes the link as well as the node.
        daemon.cli("detach", link)
        assert not os.path.lexists(link)
    attached = daemon.json("attach", "d", "--with", "loop")
    assert attached["link"] == "/dev/dashpot/d"
    daemon.cli("detach", attached["node"])
    assert not remains()


@pytest.mark.parametrize(
    "words", ["/dev/../dev/{name}", "/dev//{name}", "/dev/dashpot/./d", "{tmp}/link", "{tmp}/link-to-the-link"]
)
def test_detach_takes_any_path_of_the_device(serve, attach, tmp_path, words):
    daemon = serve("-d", "d=ram,size=8M")
    node = attach(daemon)
    (tmp_path / "link").symlink_to(node)
    (tmp_path / "link-to-the-link").symlink_to(LINKS / "d")
    daemon.cli("detach", words.format(name=os.path.basename(node), tmp=tmp_path))
    assert not remains()


@requires("mkfs.ext4")
@pytest.mark.parametrize("words", ["{at}", "{at}/", "./dir", "dir", "../{parent}/dir"])
def test_detach_takes_the_directory_where_it_is_mounted(serve, attach, tmp_path, monkeypatch, words):
    """`detach` takes the directory at which a disk is mounted, but a disk with that name has precedence."""
    at = tmp_path / "dir"
    at.mkdir()
    daemon = serve("-d", "d=ram,size=8M", "-d", "dir=ram,size=8M")
    daemon.cli("mount", "d", at, "--mkfs", "--with", "loop")
    other = attach(daemon, "dir") if words == "dir" else None
    monkeypatch.chdir(tmp_path)
    words = words.format(at=at, parent=tmp_path.name)
    daemon.cli("detach", words)
    if other:
        assert os.path.ismount(at) and not (LINKS / "dir").exists()
        daemon.cli("detach", words)
    assert not os.path.ismount(at) and not remains()
    refused = daemon.cli("detach", words, code=1).stderr
    assert f"'{words}' is not attached by dashpot: nothing is" in refused


def test_a_link_that_is_taken_refuses_the_disk_and_nothing_is_made(serve, attach, directory):
    daemon = serve("-d", "d=ram,size=8M")
    node = attach(daemon)
    other = serve("-d", "d=ram,size=8M")
    before = remains()
    refused = other.cli("attach", "d", code=1).stderr
    assert f"/dev/dashpot/d is {node} already" in refused and str(daemon.api) in refused
    assert remains() == before and not other.disk()["clients"]
    assert leads_to(LINKS / "d", node)
    daemon.cli("detach", "d")
    (LINKS / "d").write_text("not ours")
    refused = other.cli("attach", "d", code=1).stderr
    assert "/dev/dashpot/d exists, and is not a link to an attached disk: remove it" in refused
    assert (LINKS / "d").read_text() == "not ours" and not other.disk()["clients"]
    (LINKS / "d").unlink()
    other.cli("detach", attach(other))


@pytest.mark.parametrize("cleaning", ["stale", "attach"])
def test_what_a_killed_daemon_leaves_goes_with_its_link(serve, attach, cleaning):
    daemon = serve("-d", "d=ram,size=8M", "-d", "e=ram,size=8M")
    attach(daemon)
    daemon.abandon()
    assert (LINKS / "d").is_symlink()
    again = serve("-d", "d=ram,size=8M", "-d", "e=ram,size=8M")
    if cleaning == "stale":
        again.cli("detach", "--stale")
        assert not remains()
    else:
        node = attach(again, "e")
        assert not (LINKS / "d").is_symlink() and leads_to(LINKS / "e", node)
        again.cli("detach", "e")


def test_a_device_that_is_still_in_use_after_its_daemon_gives_its_link_away(serve, attach):
    daemon = serve("-d", "d=ram,size=8M")
    node = attach(daemon)
    with open(node, "rb"):
        daemon.abandon()
        again = serve("-d", "d=ram,size=8M")
        after = attach(again)
        assert after != node and leads_to(LINKS / "d", after)
    # The next `detach --stale` removes the former device, and the link still leads to the present device.
    again.cli("detach", "--stale")
    assert leads_to(LINKS / "d", after)
    again.cli("detach", "d")
    assert not remains()


def test_serve_attaches_the_disks_that_are_named_and_links_them(attach, tmp_path):
    ready = tmp_path / "ready"
    disks = [word for name in "abc" for word in ("-d", f"{name}=ram,size=8M")]
    words = ["serve", *disks, "--attach=c", "--attach=a", "--ready-file", ready, "--api", "unix:-", "--nbd", "unix:-"]
    daemon = subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, text=True)
    try:
        eventually(lambda: ready.exists() or daemon.poll() is not None, "ready")
        assert {link.name for link in LINKS.iterdir()} == {"a", "c"}
    finally:
        daemon.terminate()
        said, _ = daemon.communicate(timeout=HANG_LIMIT)
    assert daemon.returncode == 0 and not remains()
    devices = [line.split()[0] for line in said.splitlines() if "  /dev/" in line]
    assert devices == ["c", "a"]


def test_run_attaches_the_disks_that_are_named_and_needs_no_links(serve, attach):
    attach(serve("-d", "a=ram,size=8M"), "a")
    disks = [word for name in "abc" for word in ("-d", f"{name}=ram,size=8M")]
    script = 'echo "$DASHPOT_DEV_C" "$DASHPOT_DEV_A" "$DASHPOT_DEV_B"; test "$DASHPOT_DEV" = "$DASHPOT_DEV_C"'
    done = run(BINARY, "run", *disks, "--attach=c,a", "--", "sh", "-c", script)
    assert len(done.stdout.split()) == 2 and done.stdout.count("/dev/loop") == 2
    assert [link.name for link in LINKS.iterdir()] == ["a"]
    run(BINARY, "detach", LINKS / "a")


@pytest.mark.parametrize("command, words, code", [("serve", [], 1), ("run", ["--", "true"], 125)])
def test_a_disk_that_is_not_there_is_named_before_anything_is_done(attach, directory, command, words, code):
    file = directory / "disk.img"
    disk = f"slow=file:{file},size=8M"
    refused = run(BINARY, command, "-d", disk, "--attach=slwo", *words, code=code).stderr
    assert "--attach slwo: there is no such disk; did you mean 'slow'?" in refused
    assert not file.exists()


def test_serve_opens_the_devices_below_before_it_becomes_the_user(attach, user, device):
    """`serve` opens the device below the disk before it takes the user's identity, because the user may not open the
    device."""
    uid, env = user
    node, ready = device(), f"/tmp/dashpot-{uid}/ready"
    os.chmod(node, 0o600)
    words = ["serve", "-d", f"d=dev:{node}", "-d", f"l=lossy:dev:{device()}", "--attach=d", "--ready-file", ready]
    daemon = subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    eventually(lambda: os.path.exists(ready) or daemon.poll() is not None, "ready")
    if daemon.poll() is None:
        run("dd", "if=/dev/zero", f"of={LINKS}/d", "bs=4k", "count=1", "oflag=direct")
        daemon.terminate()
    said, errors = daemon.communicate(timeout=HANG_LIMIT)
    assert daemon.returncode == 0 and "d  /dev/loop" in said, errors
    script = 'test "$(blockdev --getsize64 "$DASHPOT_DEV")" = "$0" && dd if="$DASHPOT_DEV" of=/dev/null bs=4k count=1'
    words = ["run", "--attach", "-d", f"d=dev:{node}", "--", "sh", "-c", script, str(SIZE)]
    done = subprocess.run([BINARY, *words], env=env, capture_output=True, text=True, timeout=HANG_LIMIT)
    assert done.returncode == 0, done.stderr
