"""Path disks: the types of calls that a program's filter reports, their files and their bytes, the syncs that
dashpot does first, and the accesses to files that dashpot can only count and not hold."""

import json
import os

import pytest
from conftest import BINARY, requires, run
from test_path import PYTHON, SYNCS, path_run, places  # noqa: F401

ALL = "all,close,stat,readdir,xattr"


def listed(wal, tmp_path, program, *arguments, types=ALL, rules=(), options=(), code=0):
    """Runs a Python program on a disk with these types of calls. Returns what the program printed, and the rules."""
    rules_file, events = tmp_path / "rules.json", tmp_path / "events.json"
    script = '"$@"; code=$?; "$DASHPOT" list --json >"$LISTED"; curl -s --unix-socket "${DASHPOT_API#unix:}" "http://d/v1/events?after=0" >"$EVENTS"; exit $code'
    words = [word for rule in rules for word in ("-r", f"wal {rule}")]
    done = run(
        BINARY,
        "run",
        "-d",
        f"wal=path:{wal},types={types}",
        *words,
        *options,
        "--",
        "env",
        f"DASHPOT={BINARY}",
        f"LISTED={rules_file}",
        f"EVENTS={events}",
        "sh",
        "-c",
        script,
        "sh",
        PYTHON,
        "-c",
        program,
        *arguments,
        code=code,
    )
    return done, json.loads(rules_file.read_text())


# Makes each call once on a file in each of two directories, and prints the result of each call.
KINDS = """
import ctypes, fcntl, json, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ends = {}
def asked(file, request, argument):
    # Few file systems have these requests, and a call that goes on fails if its file system does not.
    try:
        fcntl.ioctl(file, request, argument)
    except OSError as error:
        if error.errno == 116:
            raise
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
def at_most_absent(act, *arguments):
    # Some file systems have no attributes.
    try:
        act(*arguments)
    except OSError as error:
        if error.errno == 116:
            raise
def call(name, act, *arguments, **named):
    try:
        act(*arguments, **named)
        ends.setdefault(name, []).append(0)
    except OSError as error:
        ends.setdefault(name, []).append(error.errno)
opened = [
    (directory, os.open(directory + "/kept", os.O_RDWR), os.open(directory + "/other", os.O_RDWR),
     os.open(directory, os.O_DIRECTORY))
    for directory in sys.argv[2:]
]
assert os.system('"$DASHPOT" inject wal -e ESTALE -T ' + sys.argv[1] + ' >&2') == 0
for directory, descriptor, other, at in opened:
    os.chdir(directory)
    call("write", os.write, descriptor, b"a" * 100)
    call("pwrite", os.pwrite, descriptor, b"a" * 100, 4096)
    call("writev", os.writev, descriptor, [b"a" * 10, b"b" * 20])
    call("pwritev", os.pwritev, descriptor, [b"a" * 10, b"b" * 20], 8192)
    call("read", os.read, descriptor, 50)
    call("pread", os.pread, descriptor, 50, 10)
    call("preadv", os.preadv, descriptor, [bytearray(7)], 4096)
    call("copy_file_range", os.copy_file_range, descriptor, other, 10, 0, 0)
    call("sendfile", os.sendfile, other, descriptor, 0, 10)
    call("clone", asked, other, 0x40049409, descriptor)
    call("clone range", asked, other, 0x4020940D, struct.pack("<qQQQ", descriptor, 0, 4096, 4096))
    call("deduplicate", asked, descriptor, 0xC0189436, struct.pack("<QQHHIqQQiI", 0, 4096, 1, 0, 0, other, 0, 0, 0, 0))
    call("unreserve", asked, descriptor, 0x4030582B, struct.pack("<hhqqiI16x", 0, 0, 0, 0, 0, 0))
    call("ftruncate", os.ftruncate, descriptor, 12345)
    call("truncate", os.truncate, "kept", 12346)
    call("fallocate", os.posix_fallocate, descriptor, 0, 20000)
    call("open", os.open, "kept", os.O_RDONLY)
    call("open new", os.open, directory + "/new", os.O_CREAT | os.O_RDWR)
    call("rename", os.rename, "new", "newer")
    call("rename at", os.rename, "newer", "newest", src_dir_fd=at, dst_dir_fd=at)
    call("unlink", os.unlink, "newest")
    call("rmdir", os.rmdir, "below")
    call("close", os.close, os.dup(descriptor))
    call("mkdir", os.mkdir, "made")
    call("mkdirat", os.mkdir, "made at", dir_fd=at)
    call("stat", os.stat, "kept")
    call("lstat", os.lstat, "kept")
    call("fstat", os.fstat, descriptor)
    call("fstatat", os.stat, "kept", dir_fd=at)
    call("statx", lambda: checked(libc.statx(at, b"kept", 0, 0xFFF, ctypes.create_string_buffer(256))))
    call("statx empty", lambda: checked(libc.statx(descriptor, b"", 0x1000, 0xFFF, ctypes.create_string_buffer(256))))
    call("statx here", lambda: checked(libc.statx(-100, b"", 0x1000, 0xFFF, ctypes.create_string_buffer(256))))
    call("access", lambda: checked(libc.access(b"kept", 0)))
    call("faccessat", lambda: checked(libc.faccessat(at, b"kept", 0, 0)))
    call("statfs", os.statvfs, "kept")
    call("fstatfs", os.statvfs, descriptor)
    call("getdents", lambda: checked(libc.getdents64(at, ctypes.create_string_buffer(4096), 4096)))
    call("getxattr", at_most_absent, os.getxattr, "kept", "user.a")
    call("fsetxattr", at_most_absent, os.setxattr, descriptor, "user.a", b"1")
    call("llistxattr", lambda: os.listxattr("kept", follow_symlinks=False))
    call("removexattr", at_most_absent, os.removexattr, "kept", "user.a")
    call("link", os.link, "kept", "linked")
    call("linkat", os.link, "kept", "linked at", src_dir_fd=at, dst_dir_fd=at)
    call("symlink", os.symlink, "kept", "symbolic")
    call("symlinkat", os.symlink, "kept", "symbolic at", dir_fd=at)
    os.chdir("/")
print(json.dumps(ends))
"""
KINDS_OF = {
    "write": [
        "write",
        "pwrite",
        "writev",
        "pwritev",
        "copy_file_range",
        "sendfile",
        "clone",
        "clone range",
        "deduplicate",
    ],
    "read": ["read", "pread", "preadv"],
    "truncate": ["ftruncate", "truncate", "fallocate", "unreserve"],
    "open": ["open", "open new"],
    "rename": ["rename", "rename at"],
    "unlink": ["unlink", "rmdir"],
    "close": ["close"],
    "mkdir": ["mkdir", "mkdirat"],
    "stat": [
        "stat",
        "lstat",
        "fstat",
        "fstatat",
        "statx",
        "statx empty",
        "statx here",
        "access",
        "faccessat",
        "statfs",
        "fstatfs",
    ],
    "readdir": ["getdents"],
    "xattr": ["getxattr", "fsetxattr", "llistxattr", "removexattr"],
    "link": ["link", "linkat", "symlink", "symlinkat"],
}


@pytest.fixture
def filled(places):  # noqa: F811
    for place in places:
        (place / "kept").write_bytes(bytes(16384))
        (place / "other").write_bytes(bytes(16384))
        (place / "below").mkdir()
        (place / "newest").write_bytes(b"")
    return places


@pytest.mark.parametrize("kind", KINDS_OF)
def test_the_calls_of_a_type_fail_and_no_others(filled, tmp_path, kind):
    wal, other = filled
    done, _ = listed(wal, tmp_path, KINDS, kind, wal, other)
    for name, (inside, outside) in json.loads(done.stdout).items():
        assert outside == 0, (name, outside)
        # 116 is ESTALE, which none of these calls returns by itself. A call may fail with another error because an
        # earlier call, which should have made its file, has failed.
        assert (inside == 116) == (name in KINDS_OF[kind]), (name, inside)


@pytest.mark.parametrize(
    ("kind", "command", "message"),
    [
        ("mkdir", ["mkdir", "made"], "cannot create directory"),
        ("link", ["ln", "kept", "linked"], "failed to create hard link"),
        ("link", ["ln", "-s", "kept", "linked"], "failed to create symbolic link"),
        ("stat", ["stat", "kept"], "cannot stat"),
        ("readdir", ["ls", "."], "reading directory"),
        ("rename", ["mv", "kept", "moved"], "cannot move"),
        ("close", ["cp", "kept", "copied"], "failed to close"),
        # The file system may lack clones, but the call fails before the file system is asked.
        ("ioctl", ["cp", "--reflink=always", "kept", "copied"], "failed to clone"),
    ],
)
def test_coreutils_hear_the_error(filled, kind, command, message):
    wal, _ = filled
    named = ["env", "-C", wal, "LC_ALL=C", *command]
    done = path_run(wal, *named, types=ALL, rules=[f"-e ENOSPC -T {kind}"], code=None)
    assert done.returncode != 0 and message in done.stderr and "No space left on device" in done.stderr, done.stderr


FREQUENT = """
import os, sys
os.stat(sys.argv[1])
os.close(os.open(sys.argv[1], os.O_RDONLY))
"""


@pytest.mark.parametrize(("types", "matched"), [("all", 1), ("all,stat", 2), ("close", 1), ("all,stat,close", 3)])
def test_frequent_calls_are_held_only_if_named(filled, tmp_path, types, matched):
    wal, _ = filled
    _, (rule,) = listed(wal, tmp_path, FREQUENT, wal / "kept", types=types, rules=["-D 1us"])
    assert rule["matched"] == matched


# Each line has the type, the first byte and the number of bytes of a call.
RANGES = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.pwrite(file, b"a" * 100, 4096)
os.write(file, b"a" * 10)
os.write(file, b"a" * 20)
os.pwritev(file, [b"a" * 5, b"b" * 7], 1 << 20)
os.pread(file, 50, 8192)
os.lseek(file, 0, 0)
os.read(file, 30)
os.ftruncate(file, 1 << 21)
libc.sync_file_range(file, ctypes.c_long(4096), ctypes.c_long(8192), 1 | 2 | 4)
os.pwritev(file, [b"a" * 9], 77, os.RWF_DSYNC)
end = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(end, b"z" * 3)
"""


def test_offsets_and_lengths_are_those_of_the_calls(places, tmp_path):  # noqa: F811
    wal, _ = places
    rules = ["-D 1us -T write --range 4K..8K", "-D 1us -T sync --range 8K..16K", "-D 1us -T read --range 0..10"]
    _, (writes, syncs, reads) = listed(wal, tmp_path, RANGES, wal / "f", rules=rules)
    # The ranges of the rules match only the write at 4096, the `sync_file_range` of 4096 to 12288, and the read at
    # the position 0.
    assert [rule["matched"] for rule in (writes, syncs, reads)] == [1, 1, 1]
    zios = json.loads((tmp_path / "events.json").read_text())["zios"]
    seen = [(zio["op"], zio["offset_bytes"], zio["length_bytes"]) for zio in zios]
    for expected in [
        ("write", 4096, 100),
        ("write", 0, 10),
        ("write", 10, 20),
        ("write", 1 << 20, 12),
        ("read", 8192, 50),
        ("read", 0, 30),
        ("truncate", 1 << 21, 0),
        ("sync", 4096, 8192),
        ("sync", 77, 9),
        ("write", 1 << 21, 3),
    ]:
        assert expected in seen, (expected, seen)


def test_a_type_that_was_not_named_is_refused(places):  # noqa: F811
    wal, _ = places
    done = run(BINARY, "run", "-d", f"wal=path:{wal},types=fsync", "-r", "-D 1ms -T fdatasync", "--", "true", code=None)
    assert "this disk can hold only fsync" in done.stderr and "path:DIR,types=fsync,fdatasync" in done.stderr
    done = run(BINARY, "run", "-d", f"wal=path:{wal}", "-r", "-D 1ms -T write", "--", "true", code=None)
    assert done.returncode == 125
    assert "this disk can hold only sync" in done.stderr and "path:DIR,types=sync,write" in done.stderr
    inject = '"$0" inject wal -D 1ms -T open'
    done = path_run(wal, "sh", "-c", inject, BINARY, code=None)
    assert done.returncode != 0 and "this disk can hold only sync" in done.stderr
    for words, message in [
        (["-d", f"wal=path:{wal},types=trim"], "is not a type of call"),
        (["-d", "d=ram", "-r", "-D 1ms -T open"], "only the calls of a program have that"),
        (["-d", "d=ram", "-r", "-e ETIMEDOUT"], "NBD cannot carry 'ETIMEDOUT'"),
        (["-d", "d=ram,types=sync"], "only path:DIR has types"),
        (["-d", "d=ram", "--uring", "refuse"], "--uring is for the calls of"),
    ]:
        done = run(BINARY, "run", *words, "--", "true", code=None)
        assert done.returncode != 0 and message in done.stderr, done.stderr


def test_any_errno_reaches_the_program_as_it_is(places):  # noqa: F811
    wal, _ = places
    for name, number in [("ESHUTDOWN", 108), ("edquot", 122), ("EOWNERDEAD", 130), ("30", 30)]:
        done = path_run(wal, PYTHON, "-c", SYNCS, wal / "f", 1, rules=[f"-e {name}"], code=1)
        assert f"[Errno {number}]" in done.stderr


LINKS = """
import os, sys
inside, outside = sys.argv[1:]
file = os.open(outside + "/f", os.O_CREAT | os.O_RDWR)
os.fsync(file)
os.link(outside + "/f", inside + "/g")
os.fsync(file)
os.unlink(outside + "/f")
os.fsync(file)
os.unlink(inside + "/g")
os.fsync(file)
"""


def test_a_file_with_another_name_inside_is_held(places, tmp_path):  # noqa: F811
    wal, other = places
    _, (rule,) = listed(wal, tmp_path, LINKS, wal, other, types="sync", rules=["-D 1us"])
    # The file's syncs are held only while the file has a name inside, and not before or after.
    assert rule["matched"] == 2


def test_a_glob_names_files(places, tmp_path):  # noqa: F811
    wal, _ = places
    _, (rule,) = listed(f"{wal}/*.wal", tmp_path, SYNCS, wal / "a.wal", "3", types="sync", rules=["-D 1us"])
    assert rule["matched"] == 3
    _, (rule,) = listed(f"{wal}/*.wal", tmp_path, SYNCS, wal / "a.db", "3", types="sync", rules=["-D 1us"])
    assert rule["matched"] == 0


@pytest.mark.parametrize(
    ("glob", "file", "matched"),
    [("[0-9].wal", "7.wal", 3), ("[!0-9].wal", "7.wal", 0), ("[x]/*.wal", "[x]/7.wal", 3), ("[x]/*.wal", "x/7.wal", 0)],
)
def test_a_bracket_begins_a_class_unless_a_directory_has_that_name(places, tmp_path, glob, file, matched):  # noqa: F811
    wal, _ = places
    for directory in ("x", "[x]"):
        (wal / directory).mkdir()
    _, (rule,) = listed(f"{wal}/{glob}", tmp_path, SYNCS, wal / file, "3", types="sync", rules=["-D 1us"])
    assert rule["matched"] == matched


def test_a_floor_is_done_first_and_both_times_are_known(places, tmp_path):  # noqa: F811
    wal, _ = places
    done, (rule,) = listed(
        wal,
        tmp_path,
        SYNCS,
        wal / "f",
        "5",
        types="sync",
        rules=["-D 20ms --mode floor"],
    )
    assert min(map(int, done.stdout.split())) >= 20_000_000
    # On a busy host, a sync may take longer than the rule's delay.
    assert rule["matched"] == rule["held"] + rule["overrun"] == 5
    assert "could not be done" not in done.stderr
    zios = json.loads((tmp_path / "events.json").read_text())["zios"]
    assert len(zios) == 5 and all(zio["waits"]["store_ns"] > 0 for zio in zios), zios


def test_a_floor_can_be_asked_of_a_program_that_runs(places):  # noqa: F811
    wal, _ = places
    script = '"$0" inject wal -D 2ms --mode floor --name slow && "$0" update slow -D 3ms --mode floor'
    said = path_run(wal, "sh", "-c", script, BINARY).stdout.splitlines()
    assert [line.split(": ")[1] for line in said] == ["-D 2ms -T sync --mode floor", "-D 3ms -T sync --mode floor"]


# Records the syncs of a program, and reports them while dashpot runs.
RECORDED = """
"$DASHPOT" record -d wal -o rec >said & recorder=$!
until grep -q 'until Ctrl-C' said; do sleep 0.01; done
"$@"
until curl -s --unix-socket "${DASHPOT_API#unix:}" "http://d/v1/events?after=0" >events && [ "$(grep -o recv_ns events | wc -l)" = 5 ]
do sleep 0.01; done
"$DASHPOT" status >status
kill -INT $recorder
wait $recorder
"""


@pytest.mark.parametrize("mode", ["add", "floor"])
def test_the_time_of_the_file_is_absent_unless_dashpot_has_synced_it(places, tmp_path, mode):  # noqa: F811
    wal, _ = places
    path_run(
        wal,
        "env",
        f"DASHPOT={BINARY}",
        "sh",
        "-ec",
        f"cd {tmp_path}\n{RECORDED}",
        "sh",
        PYTHON,
        "-c",
        SYNCS,
        wal / "f",
        5,
        rules=[f"-D 20ms --mode {mode}"],
    )
    recorded = run(BINARY, "snoop", "--in", tmp_path / "rec", "--json").stdout
    told = json.loads((tmp_path / "events").read_text())["zios"]
    for zios in (told, [json.loads(line) for line in recorded.splitlines()]):
        times = [(zio["waits"]["store_ns"], zio["total_ns"]) for zio in zios]
        known = [zio for zio in times if zio != (None, None)]
        assert (len(times), len(known)) == (5, 0 if mode == "add" else 5), times
        assert all(store > 0 and total >= 20_000_000 for store, total in known), times
    reports = [
        run(BINARY, "iolatency", "--in", tmp_path / "rec", "--layer", layer, "--json") for layer in ("store", "disk")
    ]
    counts = [json.loads(report.stdout)["latency"]["n"] for report in reports]
    totals = json.loads(run(BINARY, "stat", "disk.total", "--in", tmp_path / "rec", "--json").stdout)
    assert totals["numbers"]["n"] == (0 if mode == "add" else 5), totals
    flushes = json.loads(run(BINARY, "stat", "disk.ops[op=flush]", "--in", tmp_path / "rec", "--json").stdout)
    assert flushes["count"] == 5, flushes
    assert counts == [0 if mode == "add" else 5, 5]
    assert "page cache" not in (tmp_path / "status").read_text()


def test_status_says_that_reads_and_writes_include_those_of_the_page_cache(places, tmp_path):  # noqa: F811
    wal, _ = places
    done = path_run(wal, BINARY, "status", types="sync,write", rules=["-D 1us"])
    assert "include those that the page cache serves" in done.stdout


@requires("strace")
def test_a_floor_is_synced_by_dashpot_before_the_program(places, tmp_path):  # noqa: F811
    wal, _ = places
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-y", "-qq", "-e", "trace=fdatasync", "-o", trace]
    path_run(wal, PYTHON, "-c", SYNCS, wal / "f", 3, rules=["-D 1ms --mode floor"], under=strace)
    syncs = [line for line in trace.read_text().splitlines() if f"<{wal}/f>" in line and "fdatasync(" in line]
    assert len(syncs) == 6


COUNTED = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
MAP_SHARED_VALIDATE, MAP_SYNC = 3, 0x80000
def mapped(file, flags, protection):
    libc.mmap(None, 4096, protection, flags, file, ctypes.c_long(0))
for directory in sys.argv[1:]:
    file = os.open(directory + "/f", os.O_CREAT | os.O_RDWR | os.O_DSYNC)
    os.open(directory + "/f", os.O_RDWR | os.O_SYNC)
    reading = os.open(directory + "/f", os.O_RDONLY)
    os.write(file, bytes(4096))
    mapped(file, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    mapped(file, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    mapped(file, mmap.MAP_SHARED, mmap.PROT_READ)
    # Without persistent memory, the first of these calls fails, and the second one fails everywhere.
    mapped(file, MAP_SHARED_VALIDATE | MAP_SYNC, mmap.PROT_READ | mmap.PROT_WRITE)
    mapped(reading, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
parameters = (ctypes.c_char * 120)()
ring = libc.syscall(425, 4, parameters)
print(ring if ring >= 0 else -ctypes.get_errno())
"""
# The kinds of accesses in a run of this program that are not held, for some types of calls.
UNHELD = {
    "sync": {"synced_open": 2, "io_uring": 1},
    "sync,write": {"io_uring": 1, "mapping": 1},
    "read": {"io_uring": 1, "mapping": 1, "read_mapping": 2},
    "open": {"io_uring": 1},
}


def unheld(place, tmp_path, types, *command, options=(), disk="wal", code=0):
    """The counts of the accesses to a disk that were not held, by kind, and what dashpot said."""
    report = tmp_path / "report"
    done = run(
        BINARY,
        "run",
        "-d",
        f"{disk}=path:{place},types={types}",
        "--report",
        report,
        *options,
        "--",
        *command,
        code=code,
    )
    (summary,) = json.loads((report / "summary.json").read_text())["unheld"]
    ways = {way["way"]: way["count"] for way in summary["ways"]}
    assert summary["disk"] == disk and summary["count"] == sum(ways.values())
    return ways, done


@pytest.mark.parametrize("types", UNHELD)
def test_the_ways_that_cannot_be_held_are_counted_and_said(places, tmp_path, types):  # noqa: F811
    wal, other = places
    ways, done = unheld(wal, tmp_path, types, PYTHON, "-c", COUNTED, wal, other)
    assert ways == UNHELD[types], done.stderr
    # Each cause is told once when it occurs, and counted at the end, both times with a remedy.
    assert len(done.stderr.splitlines()) == 2 * len(ways)
    assert done.stderr.count("--uring refuse makes most programs use calls that are held") == 2
    assert "1 ring of io_uring was asked for" in done.stderr
    if types == "sync":
        assert "2 files were opened with O_SYNC or O_DSYNC" in done.stderr
        assert done.stderr.count(f"({wal}/f) with O_SYNC or O_DSYNC") == 1 and f"({other}/f)" not in done.stderr
    if types == "read":
        assert "1 mapping was shared and writable" in done.stderr and "2 files were mapped" in done.stderr


FORGES = """
import os, sys
open("/proc/self/comm", "w").write("a\\n::error::b")
os.open(sys.argv[1] + "/c\\n::error::d\\r\\x1b[31m", os.O_CREAT | os.O_RDWR | os.O_DSYNC)
"""


def test_a_name_of_a_file_or_a_process_begins_no_line(places):  # noqa: F811
    wal, _ = places
    said = path_run(wal, PYTHON, "-c", FORGES, wal).stderr
    assert said.count("::error::") == 2 and r"\n::error::b" in said and r"/c\n::error::d\r\u{1b}[31m" in said
    assert all(line.startswith("dashpot: ") for line in said.splitlines())


def test_refused_rings_are_not_unheld(places, tmp_path):  # noqa: F811
    wal, other = places
    ways, done = unheld(wal, tmp_path, "sync,write", PYTHON, "-c", COUNTED, wal, other, options=["--uring", "refuse"])
    assert done.stdout.strip() == "-38" and "gets ENOSYS" in done.stderr
    assert ways == {"mapping": 1} and "not held" not in done.stderr.split("mapping")[0]


def test_a_check_fails_when_accesses_went_round_the_rules(places, tmp_path):  # noqa: F811
    wal, other = places
    report, check = tmp_path / "report", ["--check", "wal.unheld == 0"]
    ways, done = unheld(wal, tmp_path, "read", PYTHON, "-c", COUNTED, wal, other, options=check, code=3)
    assert "FAIL  wal.unheld == 0  4 (1 io_uring, 1 mapping, 2 read_mapping)" in done.stderr
    junit = (report / "junit.xml").read_text()
    assert 'classname="dashpot.unheld" name="wal: read_mapping"' in junit and "2 files were mapped" in junit
    assert "2 files were mapped" in (report / "report.md").read_text()
    ways, done = unheld(wal, tmp_path, "all", "true", options=check)
    assert ways == {} and "wal.unheld == 0  0" in done.stderr


def test_a_file_of_the_disk_that_is_executed_is_read_without_a_call(places, tmp_path):  # noqa: F811
    wal, _ = places
    program = wal / "program"
    program.write_bytes(open("/bin/true", "rb").read())
    program.chmod(0o755)
    ways, _ = unheld(wal, tmp_path, "read", program)
    assert ways == {"read_mapping": 1}
    assert unheld(wal, tmp_path, "sync,write", program)[0] == {}


SUBMITS = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
context = ctypes.c_ulong(0)
assert libc.syscall(206, 600, ctypes.byref(context)) == 0
bytes_ = ctypes.create_string_buffer(512)
blocks = []
for directory in sys.argv[1:]:
    file = os.open(directory + "/f", os.O_CREAT | os.O_RDWR)
    block = struct.pack("<QIIHHIQQqQII", 0, 0, 0, 1, 0, file, ctypes.addressof(bytes_), 512, 0, 0, 0, 0)
    blocks.append(ctypes.create_string_buffer(block))
pointers = (ctypes.c_void_p * 600)(*300 * list(map(ctypes.addressof, blocks)))
assert libc.syscall(209, context, 600, pointers) == 600
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are those of x86-64")
def test_io_submit_is_counted(places, tmp_path):  # noqa: F811
    wal, other = places
    ways, done = unheld(wal, tmp_path, "sync,write", PYTHON, "-c", SUBMITS, wal, other)
    assert ways == {"io_submit": 300} and "300 I/Os by io_submit were not held" in done.stderr
    # A write is no sync.
    assert unheld(wal, tmp_path, "sync", PYTHON, "-c", SUBMITS, wal, other)[0] == {}
    options = ["--uring", "refuse"]
    ways, done = unheld(wal, tmp_path, "sync,write", PYTHON, "-c", SUBMITS, wal, other, options=options, code=1)
    assert ways == {} and "asks for a context of io_submit, and gets ENOSYS" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can set the bit on a file of root's")
def test_a_file_with_the_set_user_id_bit_is_named_once(places, tmp_path):  # noqa: F811
    wal, _ = places
    program = tmp_path / "gains"
    program.write_bytes(open("/bin/true", "rb").read())
    program.chmod(0o4755)
    done = path_run(wal, "sh", "-c", f"{program}; {program}; true")
    assert done.stderr.count("set-user-ID") == 1 and str(program) in done.stderr


# Waits for bytes of a pipe below the directory, until a signal comes.
PIPE = """
import os, signal, sys
def handle(*_): raise SystemExit("heard")
signal.signal(signal.SIGALRM, handle)
os.mkfifo(sys.argv[1])
pipe = os.open(sys.argv[1], os.O_RDWR)
signal.setitimer(signal.ITIMER_REAL, 0.02)
os.read(pipe, 1)
"""


def test_a_wait_for_a_pipe_is_no_io(places):  # noqa: F811
    wal, _ = places
    done = run(
        BINARY, "run", "-d", f"wal=path:{wal},types=all", "-r", "--hang", "--", PYTHON, "-c", PIPE, wal / "p", code=1
    )
    assert "heard\n" in done.stderr and "nothing matched" in done.stderr
