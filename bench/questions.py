"""Questions about a recording: the CPU time of `dashpot stat --in`, beside that of DuckDB on the same
files."""

import json
import os
import pathlib
import resource
import subprocess

import process
from table import print_table, spread

from bench import directory

ROOT = pathlib.Path(__file__).parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
PYTHON = TARGET / "engines" / "venv" / "bin" / "python"
IOS, QUICK_IOS = 10_500_000, 1_000_000
FINISHED = "outcome != 'in flight'"
# Each statistic, and the same question in SQL.
QUESTIONS = {
    "disk.ops[latency>=10ms][process]": f"select process, count(*), sum(bytes) from ios where {FINISHED} and latency_ns >= 10000000 group by process",
    "disk.ops": f"select count(*), sum(bytes) from ios where {FINISHED}",
    "disk.ops[process]": f"select process, count(*), sum(bytes) from ios where {FINISHED} group by process",
    "disk.latency[process]": f"select process, count(*), sum(bytes), quantile_disc(latency_ns, [0.5, 0.9, 0.99]), max(latency_ns) from ios "
    f"where {FINISHED} group by process",
}
# DuckDB has one connection, one thread and no cache, and the CPU time includes the opening of the files.
DUCKDB = """
import resource, sys
import duckdb
connection = duckdb.connect()
connection.execute("set threads = 1")
used = lambda: (lambda usage: usage.ru_utime + usage.ru_stime)(resource.getrusage(resource.RUSAGE_SELF))
before = used()
connection.execute(f"create view ios as select * from read_parquet('{sys.argv[1]}/ios/*.parquet')")
connection.execute(sys.argv[2]).fetchall()
print((used() - before) * 1000)
"""


def run(bench):
    with directory() as place:
        recording = pathlib.Path(place) / "recording"
        make(recording, QUICK_IOS if bench.quick else IOS)
        engines = {"dashpot": by_dashpot, **duckdb(bench)}
        ask = lambda question, engine: {"cpu_ms": engines[engine](recording, question)}
        samples = bench.measure("questions", list(QUESTIONS), list(engines), ask)
    rows = [row(samples, question) for question in QUESTIONS]
    print_table(
        f"questions: CPU ms for {QUICK_IOS if bench.quick else IOS:,} I/Os, whole program (DuckDB: query alone)",
        ["question", "dashpot", "DuckDB, 1 thread", "ratio"],
        rows,
    )


def make(recording, ios):
    """Writes a recording of an invented server, so that no disk needs to be busy for half an hour."""
    command = ["cargo", "run", "--quiet", "--release", "-p", "dashpot-recording", "--example", "busy_server", "--"]
    subprocess.run([*command, recording, str(ios)], cwd=ROOT, check=True)


def duckdb(bench):
    try:
        subprocess.run([PYTHON, "-c", "import duckdb"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        bench.skipped.append("duckdb: `make deps` installs it")
        return {}
    return {"duckdb": by_duckdb}


def by_dashpot(recording, question):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [os.environ["DASHPOT"], "stat", question, "--in", recording, "--json"]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not json.loads(told.stdout.splitlines()[0])["count"]:
        raise RuntimeError(f"{question}: the recording has no such I/O")
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def by_duckdb(recording, question):
    told = process.start([PYTHON, "-c", DUCKDB, recording, QUESTIONS[question]], stdout=subprocess.PIPE)
    answer, errors = told.communicate()
    if told.returncode:
        raise RuntimeError(process.complaint(errors))
    return float(answer)


def row(samples, question):
    each = [samples.spread(question, engine, "cpu_ms") for engine in ("dashpot", "duckdb")]
    ratio = samples.ratio(question, "cpu_ms", "dashpot", "duckdb")
    return [
        question,
        *(spread(value, lambda ms: f"{ms:.0f}") for value in each),
        spread(ratio, lambda one: f"{one:.2f}"),
    ]
