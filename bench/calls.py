"""Holds the system calls of two programs: a static one that syncs a log, and PostgreSQL. Compares the number of held
calls with the number that strace counts. Also measures the cost of a call that is not held, under dashpot and under
strace's injection, and compares the two.
"""

import contextlib
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from samples import difference
from servers import DASHPOT, Unavailable
from table import micros, print_table, spread

HOLD_NS = 20_000_000
PROGRAM = pathlib.Path(__file__).with_suffix(".go")
# A file system in memory, so that the files themselves take no time.
MEMORY = "/dev/shm"
GO, POSTGRESQL = "static Go, 16 goroutines", "PostgreSQL, one client"
OTHER, COMPUTE, BARE = "a sync of another file", "reads and computes", "a call that is not picked"
COSTS = [OTHER, COMPUTE, BARE]
# The options of strace as an injector. Its rule applies only to the 65,535th call, which no program here makes. With
# these options, as in its manual, strace stops every call; with `--seccomp-bpf` in addition, it stops only the calls
# that its rule names.
INJECTS = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=1:when=65535"]
STRACES = {"strace": ["strace", *INJECTS], "strace --seccomp-bpf": ["strace", "--seccomp-bpf", *INJECTS]}
SERVERS = ["dashpot", *STRACES, "alone"]
# The strace command that counts calls, independently of dashpot.
COUNTS = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync", "-o"]
# PostgreSQL commits for one client, and pgbench logs the time of each transaction. At the end PostgreSQL
# stops, so that no process is left that syncs.
CLUSTER = """
set -e
pg_ctl -D data -w -o "-k $PWD -h ''" -l log start >/dev/null
psql -q -h "$PWD" -c 'drop table if exists t' -c 'create table t (a int)' postgres 2>/dev/null
echo 'insert into t values (1)' >insert.sql
rm -f times.*
pgbench -n -h "$PWD" -c 1 -t "$1" -f insert.sql -l --log-prefix times postgres >/dev/null 2>&1
pg_ctl -D data -w -m fast stop >/dev/null
"$DASHPOT" list --json >rules.json
"""


def run(bench):
    with tempfile.TemporaryDirectory(prefix="dashpot-bench.", dir=MEMORY) as place:
        place = Place(bench, pathlib.Path(place))
        held = bench.measure("calls", place.programs, ["dashpot"], lambda cell, _: hold(place, cell))
        costs = bench.measure("calls", COSTS, SERVERS, lambda cell, name: cost(place, cell, name)) if place.go else None
    report_holds(bench, held, place.programs)
    if costs:
        report_costs(bench, costs)


class Place:
    """The programs and their files. dashpot holds the syncs of files in `wal`, but not the syncs of files in
    `other`."""

    def __init__(self, bench, directory):
        self.bench, self.directory = bench, directory
        directory.chmod(0o777)
        for name in ("wal", "other"):
            (directory / name).mkdir()
            (directory / name).chmod(0o777)
        # The program is copied, because PostgreSQL's user may not be able to reach the build directory.
        self.dashpot = shutil.copy(DASHPOT, directory / "dashpot")
        self.go = self._started(GO, self._build)
        works = {GO: self.go, POSTGRESQL: self._started(POSTGRESQL, self._cluster)}
        self.programs = [name for name in works if works[name]]

    def _started(self, name, begin):
        with contextlib.ExitStack() as stack:
            return self.bench.start(stack, name, lambda: contextlib.nullcontext(begin()))

    def _build(self):
        if not shutil.which("go"):
            raise Unavailable("go is not installed")
        built = self.directory / "program"
        environment = {**os.environ, "CGO_ENABLED": "0", "GOCACHE": str(self.directory / "cache")}
        subprocess.run(["go", "build", "-o", built, PROGRAM], env=environment, check=True)
        return built

    def _cluster(self):
        binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not binaries or os.geteuid():
            raise Unavailable("needs postgresql, and root to become its user")
        self.environment = {
            **os.environ,
            "PATH": f"{binaries[-1]}:{os.environ['PATH']}",
            "DASHPOT": self.dashpot,
            "TMPDIR": str(self.directory),
        }
        make = "initdb -D data >/dev/null && echo wal_sync_method=fdatasync >>data/postgresql.conf"
        self.run(*AS_POSTGRES, "sh", "-c", make)
        return True

    def run(self, *words):
        environment = getattr(self, "environment", {**os.environ, "DASHPOT": self.dashpot})
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=self.directory,
            env=environment,
        )
        if done.returncode:
            raise RuntimeError(f"{words[0]}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    def dashpot_run(self, directory, *command, under=()):
        # PostgreSQL's user cannot overwrite a file of the last run, so remove it.
        (self.directory / "rules.json").unlink(missing_ok=True)
        words = ["run", "-d", f"wal=path:{directory}", "-r", "-D 20ms", "--"]
        return self.run(*under, self.dashpot, *words, *command)


AS_POSTGRES = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--bounding-set=-all"]


def hold(place, cell):
    """Measures how long calls are held, by dashpot's clock and by the program's; then repeats the work under
    strace, which counts the calls.
    """
    work = {GO: hold_go, POSTGRESQL: hold_postgresql}[cell]
    figures = work(place)
    if figures["min_ns"] < HOLD_NS:
        # No call may end early, on any machine.
        place.bench.fail(f"calls: {cell}: a call ended {HOLD_NS - figures['min_ns']} ns too early")
    if not shutil.which("strace"):
        return figures
    trace = place.directory / "trace"
    counted = work(place, under=[*COUNTS, trace])
    traced = count(trace.read_text(), directory_of(place, cell))
    if counted["matched"] != traced or counted["held"] != traced:
        place.bench.fail(
            f"calls: {cell}: dashpot matched {counted['matched']} and held {counted['held']} calls, "
            f"and strace has counted {traced}"
        )
    return {**figures, "traced": traced}


def count(trace, directory):
    """How many of the traced calls are on files of a directory. If a signal interrupts a call before dashpot
    receives it, the call begins again, and strace shows it twice.
    """
    names, begun = re.escape(str(directory)), {}
    ended = again = 0
    for line in trace.splitlines():
        thread = line.split()[0]
        # strace may print a call in two lines, of which the second names no file.
        if "resumed>" not in line:
            begun[thread] = re.search(rf"sync\(\d+<{names}/", line) is not None
        if begun.get(thread) and "<unfinished" not in line:
            ended, again = ended + 1, again + ("ERESTART" in line)
    return ended - again


def directory_of(place, cell):
    return place.directory / {GO: "wal", POSTGRESQL: "data/pg_wal"}[cell]


def hold_go(place, under=()):
    count = 50 if not place.bench.quick else 10
    script = '"$@" && "$DASHPOT" list --json >rules.json'
    words = ["sh", "-c", script, "sh", place.go, "wal", place.directory / "wal/f", count, 16]
    said = json.loads(place.dashpot_run(directory_of(place, GO), *words, under=under))
    figures = {**said, **rule_of(place)}
    if figures["held"] != said["calls"]:
        place.bench.fail(f"calls: {GO}: of {said['calls']} calls {figures['held']} were held")
    return figures


def hold_postgresql(place, under=()):
    count = 100 if not place.bench.quick else 30
    words = ["sh", "-c", CLUSTER, "sh", count]
    place.dashpot_run(directory_of(place, POSTGRESQL), *words, under=[*under, *AS_POSTGRES])
    (log,) = place.directory.glob("times.*")
    # The third word of a line of pgbench's log is the time of a transaction, in microseconds.
    lasted = sorted(int(line.split()[2]) * 1000 for line in log.read_text().splitlines())
    return {"p50_ns": lasted[len(lasted) // 2], "min_ns": lasted[0], "calls": count, **rule_of(place)}


def rule_of(place):
    (rule,) = json.loads((place.directory / "rules.json").read_text())
    return {"matched": rule["matched"], "held": rule["held"], "hold_p50_ns": rule["achieved"]["p50_ns"]}


def cost(place, cell, name):
    """Runs a program that no rule holds: under dashpot, under strace, or alone."""
    few = place.bench.quick
    words = {
        OTHER: ["wal", place.directory / "other/f", 1000 if few else 5000, 1],
        COMPUTE: ["compute", place.go, 3000 if few else 15000],
        BARE: ["bare", "-", 100_000 if few else 1_000_000],
    }[cell]
    program = [place.go, *words]
    if name == "dashpot":
        return json.loads(place.dashpot_run(place.directory / "wal", *program))
    if name in STRACES and not shutil.which("strace"):
        return None
    return json.loads(place.run(*STRACES.get(name, []), *program))


def report_holds(bench, samples, programs):
    rows = []
    for cell in programs:
        of = lambda figure, form: spread(samples.spread(cell, "dashpot", figure), form)
        rows.append(
            [
                cell,
                of("hold_p50_ns", millis),
                of("p50_ns", millis),
                of("min_ns", millis),
                of("held", str),
                of("traced", str),
            ]
        )
        for promise, figure, bound in [
            ("by dashpot's clock", "hold_p50_ns", 1.02),
            ("by the program's clock", "p50_ns", 1.05),
        ]:
            if p50 := samples.spread(cell, "dashpot", figure):
                bench.at_most(f"a hold of 20 ms: p50 {promise}, over 20 ms", cell, p50.median / HOLD_NS, bound)
    columns = [
        "syncs held for 20 ms",
        "p50 ms, dashpot's clock",
        "p50 ms, the program's",
        "least ms",
        "held",
        "again, by strace",
    ]
    print_table("calls: the holds", columns, rows)


def millis(value_ns):
    return f"{value_ns / 1e6:.2f}"


def report_costs(bench, samples):
    of = lambda cell, name, figure, form: spread(samples.spread(cell, name, figure), form)
    cells = [(OTHER, "p50_ns", micros), (COMPUTE, "cpu_ns", millis), (BARE, "call_ns", str)]
    rows = [[name, *(of(cell, name, figure, form) for cell, figure, form in cells)] for name in SERVERS]
    print_table(
        "calls: the cost of calls that are not held",
        ["under", f"{OTHER}: p50 us", f"{COMPUTE}: CPU ms", f"{BARE}: CPU ns"],
        rows,
    )
    added = {name: added_ns(samples, name) for name in ("dashpot", *STRACES)}
    if added["dashpot"]:
        bench.at_most("a notified call that is not held: us added at p50", OTHER, added["dashpot"] / 1000, 12)
        if added["strace"]:
            bench.at_most(
                "a notified call that is not held: time added at p50, over what strace's injection adds",
                OTHER,
                added["dashpot"] / added["strace"],
                0.5,
            )
        if filtered := added["strace --seccomp-bpf"]:
            print(
                f"time added at p50, over what strace's injection adds with --seccomp-bpf: {added['dashpot'] / filtered:.2f}"
            )
    if ratio := samples.ratio(COMPUTE, "cpu_ns", "dashpot", "alone"):
        bench.at_most("a program without notified calls: CPU time over that alone", COMPUTE, ratio.median, 1.02)


def added_ns(samples, name):
    added = difference(samples, OTHER, "p50_ns", name, "alone")
    return added and added.median
