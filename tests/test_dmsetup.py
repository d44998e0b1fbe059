"""`dashpot dmsetup`: slow devices in the words of the device mapper's tool, over loop devices, files and memory."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest
from attached import attach, can_attach, remains  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run
from test_device import device  # noqa: F401 (a fixture)

pytestmark = can_attach
BASE = pathlib.Path("/run/dashpot-mapped")
SECTORS = 131072
NAME = f"test{os.getpid()}"


def dm(*words, code=0, stdin=""):
    return run(BINARY, "dmsetup", *words, code=code, stdin=stdin)


def of(text, name):
    """Only the lines of the output about this test's device, because other runs of the tests may have devices, too."""
    return [line for line in text.splitlines() if line.startswith(name)]


@pytest.fixture
def created(attach):
    """Makes devices, and removes those that are still there when the test ends."""
    names = []

    def create(table, name=NAME, **more):
        names.append(name)
        done = dm("create", name, "--table", table, **more)
        return pathlib.Path("/dev/mapper") / name if done.returncode == 0 else done

    yield create
    for name in {name for name in names if (BASE / name).exists()}:
        dm("remove", name)
    links = [name for name in names if os.path.lexists(f"/dev/mapper/{name}")]
    assert not links, links


def servers(name=NAME):
    """The processes that serve a device."""
    found = run("pgrep", "-f", f"serve {BASE}/{name}/", code=None).stdout.split()
    return [int(pid) for pid in found]


def read(node, code=0):
    return run("dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct", code=code)


def timed(function, *words):
    """How long a call takes, in seconds."""
    begun = time.monotonic()
    function(*words)
    return time.monotonic() - begun


def write(node):
    run("dd", "if=/dev/zero", f"of={node}", "bs=4k", "count=1", "oflag=direct")


def flush(node):
    with open(node, "r+b", buffering=0) as file:
        os.fsync(file)


@requires("blockdev")
def test_the_seed_as_it_is_typed(device, created):
    node = device()
    line = f'echo "0 `blockdev --getsz {node}` delay {node} 0 500" | {BINARY} dmsetup create {NAME}'
    run("sh", "-c", line)
    try:
        numbers = "{}:{}".format(os.major(os.stat(node).st_rdev), os.minor(os.stat(node).st_rdev))
        assert dm("table", NAME).stdout == f"0 {SECTORS} delay {numbers} 0 500\n"
        link = pathlib.Path(f"/dev/mapper/{NAME}")
        assert os.readlink(link).startswith("../")
        assert timed(read, link) >= 0.5
        upper = os.stat(link).st_rdev
        assert of(dm("ls").stdout, NAME) == [f"{NAME}\t({os.major(upper)}:{os.minor(upper)})"]
        assert of(dm("table").stdout, NAME) == [f"{NAME}: 0 {SECTORS} delay {numbers} 0 500"]
    finally:
        dm("remove", NAME)
    assert not link.exists() and not servers()
    assert not (BASE / NAME).exists()


def test_three_six_and_nine_arguments(created):
    for table, slow in [
        ("0 2048 delay ram:1M 0 300", (read, write, flush)),
        ("0 2048 delay ram:1M 0 300 ram:1M 0 0", (read,)),
        ("0 2048 delay ram:1M 0 0 ram:1M 0 300", (write, flush)),
        ("0 2048 delay ram:1M 0 0 ram:1M 0 0 ram:1M 0 300", (flush,)),
    ]:
        node = created(table)
        assert dm("table", NAME).stdout == f"{table}\n"
        for function in slow:
            # If nothing was written, the kernel may end a flush before it reaches the disk, so write first.
            if function is flush:
                write(node)
            assert timed(function, node) >= 0.3, (table, function)
        dm("remove", NAME)


def test_a_file_has_the_bytes(created, directory):
    file = directory / "disk.img"
    file.write_bytes(b"dashpot!" * (1 << 17))
    node = created(f"0 2048 delay {file} 0 1")
    run("cmp", node, file)
    dm("remove", NAME)
    assert "word 2, '4096': the device has 2048 sectors" in created(f"0 4096 delay {file} 0 1", code=1).stderr


def test_a_table_comes_from_a_file(created, directory):
    table = directory / "table"
    table.write_text("0 2048 delay ram:1M 0 7\n")
    created("0 2048 delay ram:1M 0 1")
    dm("load", NAME, table)
    assert dm("table", NAME, "--inactive").stdout.split()[-1] == "7"
    refused = dm("reload", NAME, directory / "none", code=1).stderr
    assert f"the table cannot be read from {directory}/none: No such file" in refused
    assert "cannot be used with" in dm("reload", NAME, table, "--table", "0 1 error", code=2).stderr


@requires("blkdiscard")
@pytest.mark.parametrize("medium", ["file", "dev"])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_device_begins_at_a_sector_of_its_medium(created, device, directory, medium, parts):
    """Reads, writes, discards and zeroes reach only the device's bytes: those before and after them stay as
    they were."""
    start, sectors = 2048 + 8, 4096
    file = node = directory / "disk.img"
    if medium == "dev":
        node = device()
        file = node.file
    before = os.urandom(SECTORS * 512)
    pathlib.Path(node).write_bytes(before)
    part = f"{node} {start} 1"
    table = f"0 {sectors} delay " + " ".join([part] * parts)
    upper = created(table)
    number = os.stat(node).st_rdev
    name = f"{os.major(number)}:{os.minor(number)}" if medium == "dev" else str(node)
    assert dm("table", NAME).stdout == table.replace(str(node), name) + "\n"
    assert dm("status", NAME).stdout == f"0 {sectors} delay 0 0 0\n"
    first, end = start * 512, (start + sectors) * 512
    assert upper.read_bytes() == before[first:end]
    new = os.urandom(sectors * 512)
    source = directory / "new"
    source.write_bytes(new)
    run("dd", f"if={source}", f"of={upper}", "bs=64k", "oflag=direct", "conv=fsync")
    run("blkdiscard", "--offset", "0", "--length", "4096", upper)
    run("blkdiscard", "--zeroout", "--offset", str(len(new) - 8192), "--length", "8192", upper)
    dm("remove", NAME)
    after = file.read_bytes()
    assert after[:first] == before[:first] and after[end:] == before[end:]
    assert after[first:end] == bytes(4096) + new[4096:-8192] + bytes(8192)


def test_a_device_that_begins_at_a_sector_ends_with_its_medium(created, device):
    node, last = device(), SECTORS - 8
    created(f"0 8 delay {node} {last} 0")
    dm("remove", NAME)
    for table, why in [
        (
            f"0 16 delay {node} {last} 0",
            "word 2, '16': the device has 131072 sectors, and 8 of them from sector 131064 on",
        ),
        (f"0 8 delay {node} {SECTORS + 8} 0", "word 5, '131080': the device has 131072 sectors: begin before its end"),
        (f"0 16 delay {node.file} {last} 0", "word 2, '16': the device has 131072 sectors, and 8 of them"),
        ("0 2048 delay ram:1M 8 0", "word 4, 'ram:1M': it has 2048 sectors, and the table needs 2056"),
        (f"0 8 delay {node} 8 0 {node} 16 0", "word 8, '16': reads, writes and flushes have one place here: write 8"),
    ]:
        assert why in created(table, code=1).stderr, table
        assert not (BASE / NAME).exists() and not servers()


@requires("blockdev")
def test_a_sector_inside_of_a_block_is_refused(created, device):
    node = device("--sector-size=4096")
    assert (
        "word 5, '1': the device has blocks of 4K: write a multiple of 8"
        in created(f"0 8 delay {node} 1 0", code=1).stderr
    )
    assert "word 2, '9': the device has blocks of 4K" in created(f"0 9 delay {node} 8 0", code=1).stderr


def test_a_reload_keeps_the_first_sector(created, device):
    node = device()
    created(f"0 2048 delay {node} 64 0")
    refused = dm("reload", NAME, "--table", f"0 2048 delay {node} 8 0", code=1).stderr
    assert f"word 5, '8': {NAME} begins at sector 64 of dev:{node}" in refused
    for table in ["0 2048 error", f"0 2048 delay {node} 64 300"]:
        dm("reload", NAME, "--table", table)
        dm("resume", NAME)
    assert dm("table", NAME).stdout.endswith(" 64 300\n")


def test_the_error_target(created):
    node = created("0 2048 error")
    assert "Input/output error" in read(node, code=1).stderr
    assert dm("status", NAME).stdout == "0 2048 error\n"


def test_status_counts_what_is_delayed_now(created):
    node = created("0 2048 delay ram:1M 0 60000")
    assert dm("status", NAME).stdout == "0 2048 delay 0 0 0\n"
    readers = [
        subprocess.Popen(
            ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct", f"skip={place}"],
            stderr=subprocess.DEVNULL,
        )
        for place in range(3)
    ]
    eventually(lambda: dm("status", NAME).stdout == "0 2048 delay 3 0 0\n", "three reads that are delayed")
    api = f"unix:{BASE}/{NAME}/api.sock"
    run(BINARY, "clear", NAME, "--release", env={"DASHPOT_API": api})
    assert [reader.wait(HANG_LIMIT) for reader in readers] == [0] * 3


def test_a_reloaded_table_takes_effect_with_resume(created):
    node = created("0 2048 delay ram:1M 0 0")
    dm("reload", NAME, "--table", "0 2048 delay ram:1M 0 300")
    assert dm("table", NAME).stdout == "0 2048 delay ram:1M 0 0\n"
    assert dm("table", NAME, "--inactive").stdout == "0 2048 delay ram:1M 0 300\n"
    assert "Tables present:    LIVE & INACTIVE\n" in dm("info", NAME).stdout
    read(node)
    dm("resume", NAME)
    assert dm("table", NAME).stdout == "0 2048 delay ram:1M 0 300\n"
    assert dm("table", NAME, "--inactive").stdout == ""
    assert timed(read, node) >= 0.3
    dm("reload", NAME, "--table", "0 2048 error")
    dm("resume", NAME)
    read(node, code=1)
    dm("reload", NAME, "--table", "0 2048 delay ram:1M 0 0")
    dm("resume", NAME)
    read(node)


@requires("fio")
def test_no_io_is_lost_or_early_while_tables_change(created):
    """Each I/O must follow either the old or the new table, and no mixture of both: it must take at least as long as
    one of the tables says.
    """
    node = created("0 131072 delay ram:64M 0 10 ram:64M 0 20")
    words = ["--name=job", f"--filename={node}", "--ioengine=libaio", "--direct=1", "--bs=4k", "--rw=randwrite"]
    job = subprocess.Popen(
        ["fio", *words, "--iodepth=32", "--number_ios=4000", "--verify=crc32c", "--verify_state_save=0", "--size=32M"],
        stdout=subprocess.DEVNULL,
    )
    changes = 0
    while job.poll() is None:
        dm("reload", NAME, "--table", f"0 131072 delay ram:64M 0 {10 + changes % 2} ram:64M 0 20")
        dm("resume", NAME)
        changes += 1
    assert job.returncode == 0 and changes > 1


def test_a_suspended_device_waits(created):
    node = created("0 2048 delay ram:1M 0 0")
    dm("suspend", NAME)
    assert "State:             SUSPENDED\n" in dm("info", NAME).stdout
    reader = threading.Thread(target=read, args=[node])
    reader.start()
    api = {"DASHPOT_API": f"unix:{BASE}/{NAME}/api.sock"}
    eventually(lambda: "suspended" in run(BINARY, "status", "--inflight", env=api).stdout, "a read that waits")
    assert reader.is_alive()
    dm("resume", str(node))
    reader.join(HANG_LIMIT)
    assert not reader.is_alive()
    assert "State:             ACTIVE\n" in dm("info", NAME).stdout


@pytest.mark.skipif(shutil.which("dmsetup") is None, reason="dmsetup is missing: make deps")
def test_info_has_the_lines_of_dmsetup(created):
    created("0 2048 delay ram:1M 0 0")
    rows = [line.split(":", 1) for line in dm("info", NAME).stdout.splitlines()]
    assert [name for name, _ in rows] == [
        "Name",
        "State",
        "Read Ahead",
        "Tables present",
        "Open count",
        "Event number",
        "Major, minor",
        "Number of targets",
    ]
    assert all(re.fullmatch(r" +\S.*", value) for _, value in rows)


def test_a_device_in_use_stays(created):
    node = created("0 2048 delay ram:1M 0 0")
    with open(node, "rb"):
        refused = dm("remove", NAME, code=1).stderr
        assert f"{NAME} stays: it is in use: open by" in refused
    read(node)


def test_what_a_killed_daemon_leaves_is_removed(created):
    created("0 2048 delay ram:1M 0 0")
    (pid,) = servers()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not servers(), "the end of the daemon")
    assert f"'dashpot dmsetup remove {NAME}'" in dm("status", NAME, code=1).stderr
    dm("remove", NAME)
    assert not (BASE / NAME).exists()


def test_the_link_of_a_killed_daemon_leads_to_no_other_device(created):
    """The link of a device whose daemon was killed must not lead to the next device, which often gets the same node."""
    dead, other = NAME, f"{NAME}-other"
    created("0 2048 delay ram:1M 0 0")
    (pid,) = servers()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not servers(), "the end of the daemon")
    node = created("0 4096 delay ram:2M 0 0", other).resolve()
    assert not os.path.lexists(f"/dev/mapper/{dead}")
    assert f"{dead}\t(its daemon is gone)" in dm("ls").stdout.splitlines()
    # The node now belongs to the new device. `status` and `info` report both that device and the dead one.
    assert dm("table", node).stdout == "0 4096 delay ram:2M 0 0\n"
    for command in ["status", "info"]:
        done = dm(command, code=1)
        assert other in done.stdout and f"'dashpot dmsetup remove {dead}'" in done.stderr, done
    dm("remove", dead)
    read(f"/dev/mapper/{other}")


def test_io_in_flight_fails_when_a_device_is_removed_by_force(created):
    node = created("0 2048 delay ram:1M 0 3600000")
    words = ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"]
    reader = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    eventually(lambda: dm("status", NAME).stdout == "0 2048 delay 1 0 0\n", "a delayed read")
    assert "I/Os in flight: 1; --force ends them with EIO" in dm("remove", NAME, code=1).stderr
    dm("remove", "--force", NAME)
    assert "Input/output error" in reader.communicate(timeout=HANG_LIMIT)[1]


@pytest.mark.parametrize("moment", ["directory", "lab.toml", "nbd.sock", "ready", "state", "/dev/mapper"])
def test_what_a_killed_create_leaves_is_removed(created, moment):
    """`remove` must remove all that a killed `create` had made, even a daemon that `create` had not recorded
    yet."""
    home = BASE / NAME
    step = {"directory": home, "/dev/mapper": pathlib.Path(f"/dev/mapper/{NAME}")}.get(moment, home / moment)
    create = subprocess.Popen([BINARY, "dmsetup", "create", NAME, "--table", "0 2048 delay ram:1M 0 0"])
    while not os.path.lexists(step) and create.poll() is None:
        pass
    create.kill()
    create.wait()
    if dm("ls").stdout.find(f"{NAME}\t") < 0:
        assert f"'dashpot dmsetup remove {NAME}'" in dm("table", NAME, code=1).stderr
    dm("remove", NAME)
    assert not home.exists() and not servers() and not os.path.lexists(f"/dev/mapper/{NAME}")
    assert dm("table", NAME, code=1).stderr.startswith("dashpot: there is no device")
    assert not remains()
    created("0 2048 delay ram:1M 0 0")


def test_a_create_that_fails_leaves_nothing(created, device):
    node = device()
    for table, why in [
        (f"0 {SECTORS + 8} delay {node} 0 1", "word 2, '131080': the device has 131072 sectors: write at most that"),
        ("0 8 delay /dev/nowhere 0 1", "word 4, '/dev/nowhere': it cannot be used: No such file"),
        ("0 8 delay 999:999 0 1", "word 4, '999:999': there is no block device 999:999"),
        ("0 8 delay /dev/null 0 1", "word 4, '/dev/null': /dev/null is not a regular file"),
        ("0 8 delay /dev 0 1", "word 4, '/dev': /dev is "),
        ("0 8 delay /dev/vdb", "word 5 is missing: delay has 1 argument here"),
        (f"0 {1 << 40} delay ram:1023T 0 1", "word 2, '1099511627776': RAM disks of 512T in all"),
        ("0 8 delay ram:1M 0 1ms", "word 6, '1ms': no delay in milliseconds"),
        (f"0 {1 << 54} error", "word 2, '18014398509481984': give a number of sectors from 1"),
        ("0 8 flakey /dev/vdb 0 1 1", "word 3, 'flakey': dashpot has only delay and error"),
    ]:
        assert why in created(table, code=1).stderr, table
        assert not (BASE / NAME).exists() and not servers()
    created("0 2048 delay ram:1M 0 0")
    assert f"/dev/mapper/{NAME} exists" in created("0 8 error", code=1).stderr
    assert "the device mapper's own" in dm("create", "control", "--table", "0 8 error", code=1).stderr
    dm("create", "a/b", "--table", "0 8 error", code=1)
    assert "there is no device 'nothing'" in dm("table", "nothing", code=1).stderr


def test_a_reload_keeps_the_device(created, device):
    created("0 2048 delay ram:1M 0 0")
    refused = dm("reload", NAME, "--table", "0 8 error", code=1).stderr
    assert f"word 2, '8': {NAME} has 2048 sectors: write that" in refused
    refused = dm("reload", NAME, "--table", f"0 2048 delay {device()} 0 1", code=1).stderr
    assert "word 4, '" in refused and f"': {NAME} is on ram, not on this device" in refused
    assert dm("table", NAME, "--inactive").stdout == ""


def test_the_remedy_for_a_table_of_several_lines_works(serve, attach, device):  # noqa: F811
    """A rule with a range must do for a part of the device what a second line does."""
    table = f"0 2048 delay {device()} 0 0\n2048 2048 error"
    refused = dm("create", NAME, "--table", table, code=1).stderr
    words = dict(part.split(" ", 1) for part in re.findall(r"'dashpot (.*?)'", refused))
    assert words["inject"].endswith("--range 1M..2M") and words["attach"] == "NAME", refused
    daemon = serve("-d", f"NAME=dev:{device()}")
    daemon.cli("inject", *words["inject"].replace("-D 500ms", "-e EIO -T read").split())
    node = attach(daemon, "NAME")
    read = ["dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"]
    run(*read)
    run(*read, "skip=256", code=1)
    run(*read, "skip=512")
    daemon.cli("detach", "all")
