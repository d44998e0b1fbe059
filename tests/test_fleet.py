"""Runs each query in fleet/ unchanged on DuckDB, ClickHouse and Spark, over recordings that the program made. All
engines must give the rows that a naive computation gives.
"""

import datetime
import json
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, eventually, requires, run
from test_record import PYTHON, end, has
from timed import Client

FLEET = ROOT / "fleet"
ENGINES = {"duckdb": "duckdb", "clickhouse": "chdb", "spark": "pyspark"}
QUESTIONS = ["hosts", "heatmap", "device", "neighbours", "before_after", "percentiles"]
DAY_NS = 86_400 * 10**9
# dashpot records only the present: this program moves a recording to an earlier time.
MOVE = """
import glob, sys
import pyarrow.compute, pyarrow.parquet
recording, earlier_ns = sys.argv[1], int(sys.argv[2])
for name, unit in [("at_ns", 1), ("second", 10**9)]:
    for path in glob.glob(f"{recording}/{'ios' if name == 'at_ns' else 'seconds'}/*.parquet"):
        table = pyarrow.parquet.read_table(path, partitioning=None)
        moved = pyarrow.compute.subtract(table[name], earlier_ns // unit)
        pyarrow.parquet.write_table(table.set_column(table.column_names.index(name), name, moved), path)
"""
READ = """
import glob, json, re, sys
import pyarrow.parquet
for table in ("ios", "seconds"):
    rows = []
    for path in glob.glob(f"recordings/*/*/{table}/*.parquet"):
        host, day = re.search("host=(.*?)/day=(.*?)/", path).groups()
        rows += [{**row, "host": host, "day": day} for row in pyarrow.parquet.read_table(path, partitioning=None).to_pylist()]
    print(json.dumps(rows))
"""


def record(daemon, into, work, earlier_ns=0):
    """Records the I/O of `work`, and then moves its times back by `earlier_ns`."""
    process = daemon.start("record", "-o", into)
    assert "until Ctrl-C" in process.stdout.readline()
    work()
    assert "nothing was lost" in end(process)
    if earlier_ns:
        run(PYTHON, "-c", MOVE, into, earlier_ns)


class Fleet:
    """Recordings of three hosts, their rows, and the client that was noisy."""

    def __init__(self, serve, directory):
        self.directory = directory
        self.place = directory / "recordings"
        self.of_the_database(serve("-d", "vda=ram,size=8M", "-d", "vdb=ram,size=8M"))
        self.of_the_others(serve("-d", "vda=ram,size=8M"))
        done = subprocess.run([PYTHON, "-c", READ], cwd=directory, capture_output=True, text=True, check=True)
        rows, self.seconds = map(json.loads, done.stdout.splitlines())
        assert sum(row["outcome"] == "in flight" for row in rows) == 1
        self.ios = [row for row in rows if row["outcome"] != "in flight"]
        # A time between the two days on which the host of the database was recorded.
        self.the_date_ns = max(row["at_ns"] for row in self.ios) - DAY_NS // 2

    def of_the_database(self, daemon):
        """A disk with one lane; yesterday a noisy neighbour used the lane, too."""
        daemon.cli("inject", "vda", "-D", "2ms:1")
        victim, other = Client(daemon, "vda"), Client(daemon, "vdb")

        def with_neighbour():
            bench = subprocess.Popen(
                ["qemu-img", "bench", "-f", "raw", "-w", "-s", "64k", "-c", "80", "-d", "8", daemon.uri("vda")],
                stdout=subprocess.DEVNULL,
            )
            self.noisy = f"pid={bench.pid}"
            while bench.poll() is None:
                victim.many(4, 1)
            assert bench.returncode == 0
            other.many(100, 4, other.write)

        record(daemon, self.place / "host=db1/day=yesterday", with_neighbour, DAY_NS)
        record(daemon, self.place / "host=db1/day=today", lambda: victim.many(60, 1))

    def of_the_others(self, daemon):
        """Records a host whose name looks like a number: it has the slowest I/Os, and an I/O that never ends."""
        client = Client(daemon, "vda")
        record(daemon, self.place / "host=web/day=yesterday", lambda: client.many(50, 4), DAY_NS)
        daemon.cli("inject", "vda", "-D", "15ms", "-T", "read", "--every", "2")
        daemon.cli("inject", "vda", "--hang", "-T", "write")

        def work():
            client.many(40, 4)
            client.write()
            client.handle.poll(0)
            eventually(lambda: daemon.disk("vda")["in_flight"] == 1)

        record(daemon, self.place / "host=007/day=today", work)

    def ask(self, engine):
        """The columns and rows of each question, asked about this fleet."""
        asked = self.directory / "asked"
        asked.mkdir(exist_ok=True)
        for question in QUESTIONS:
            text = (FLEET / f"{question}.sql").read_text()
            text = text.replace("'2026-11-24 00:00:00' as the_date", f"'{said(self.the_date_ns)}' as the_date")
            (asked / f"{question}.sql").write_text(text)
        (asked / "days.sql").write_text(
            "select host, day, count(*) as ios from io group by host, day order by host, day;"
        )
        done = subprocess.run(
            [
                PYTHON,
                ROOT / "tests/engines/ask.py",
                engine,
                FLEET / f"{engine}.sql",
                *(asked / f"{question}.sql" for question in [*QUESTIONS, "days"]),
            ],
            cwd=self.directory,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        told = [json.loads(line) for line in done.stdout.splitlines()]
        return {
            question: [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]]
            for question, one in zip([*QUESTIONS, "days"], told, strict=True)
        }


def said(at_ns):
    return datetime.datetime.fromtimestamp(at_ns // 10**9, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def groups(rows, *names):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return sorted(found.items())


def latencies(rows):
    return sorted(row["latency_ns"] for row in rows)


def percentile(values, per_mille):
    """The percentile of sorted values: the smallest value that has at least this share of the values (in per mille)
    at or below it.
    """
    return next(value for place, value in enumerate(values, 1) if place * 1000 >= len(values) * per_mille)


def naive_hosts(fleet):
    rows = []
    for (host,), ios in groups(fleet.ios, "host"):
        beyond = [it - 10_000_000 for it in latencies(ios) if it > 10_000_000]
        rows.append(
            {
                "host": host,
                "ios": len(ios),
                "slow_ios": len(beyond),
                "slow_time_ns": sum(beyond),
                "longest_ns": latencies(ios)[-1],
            }
        )
    return sorted(rows, key=lambda row: (-row["slow_time_ns"], row["host"]))


def naive_heatmap(fleet):
    ends = {
        "below_100us": 10**5,
        "below_300us": 3 * 10**5,
        "below_1ms": 10**6,
        "below_3ms": 3 * 10**6,
        "below_10ms": 10**7,
        "below_30ms": 3 * 10**7,
        "below_100ms": 10**8,
        "below_1s": 10**9,
        "from_1s_on": 2**63,
    }
    rows = {}
    for io in fleet.ios:
        minute = said(io["at_ns"])[:16]
        row = rows.setdefault(minute, {"minute": minute, **dict.fromkeys(ends, 0)})
        row[next(name for name, end_ns in ends.items() if io["latency_ns"] < end_ns)] += 1
    return [row for _, row in sorted(rows.items())]


def naive_device(fleet):
    ios = [{**io, "hour": said(io["at_ns"])[:13]} for io in fleet.ios if (io["host"], io["device"]) == ("db1", "vda")]
    return [
        {"hour": hour, "ios": len(rows), "p99_ns": percentile(latencies(rows), 990), "longest_ns": latencies(rows)[-1]}
        for (hour,), rows in groups(ios, "hour")
    ]


def naive_neighbours(fleet):
    rows = []
    for (host, device), ios in groups(fleet.ios, "host", "device"):
        for client in {io["client"] for io in ios}:
            own = [io for io in ios if io["client"] == client]
            busy = set()
            for second in {io["at_ns"] // 10**9 for io in own}:
                moved = sum(io["bytes"] for io in own if io["at_ns"] // 10**9 == second)
                if moved * 2 > sum(io["bytes"] for io in ios if io["at_ns"] // 10**9 == second):
                    busy.add(second)
            others = [io for io in ios if io["client"] != client]
            beside = [io["latency_ns"] for io in others if io["at_ns"] // 10**9 in busy]
            quiet = [io["latency_ns"] for io in others if io["at_ns"] // 10**9 not in busy]
            if beside and quiet:
                times = (sum(beside) / len(beside)) / (sum(quiet) / len(quiet))
                rows.append(
                    (
                        sum(beside) - sum(quiet) / len(quiet) * len(beside),
                        {
                            "host": host,
                            "device": device,
                            "neighbour": client,
                            "its_bytes": sum(io["bytes"] for io in own),
                            "others_beside_it": len(beside),
                            "their_mean_ns": sum(beside) // len(beside),
                            "others_else": len(quiet),
                            "mean_else_ns": sum(quiet) // len(quiet),
                            "times": int(times * 10) / 10,
                        },
                    )
                )
    return [row for _, row in sorted(rows, key=lambda one: -one[0])]


def naive_before_after(fleet):
    rows = []
    for (host, op), ios in groups(fleet.ios, "host", "op"):
        before = latencies(io for io in ios if said(io["at_ns"]) < said(fleet.the_date_ns))
        after = latencies(io for io in ios if said(io["at_ns"]) >= said(fleet.the_date_ns))
        if before and after:
            rows.append(
                {
                    "host": host,
                    "op": op,
                    "ios_before": len(before),
                    "ios_after": len(after),
                    "p50_before_ns": percentile(before, 500),
                    "p50_after_ns": percentile(after, 500),
                    "p99_before_ns": percentile(before, 990),
                    "p99_after_ns": percentile(after, 990),
                }
            )
    return sorted(rows, key=lambda row: row["p99_before_ns"] - row["p99_after_ns"])


def naive_percentiles(fleet):
    """Computes percentiles from the buckets of `seconds`: each I/O counts as the highest latency of its bucket."""
    rows = []
    for (op,), counted in groups((row for row in fleet.seconds if row["le_ns"] is not None), "op"):
        values = sorted(row["le_ns"] for row in counted for _ in range(row["n"]))
        rows.append(
            {
                "op": op,
                "all_ios": len(values),
                "p50_ns": percentile(values, 500),
                "p99_ns": percentile(values, 990),
                "p999_ns": percentile(values, 999),
            }
        )
    return rows


@pytest.fixture
def fleet(serve, directory):
    return Fleet(serve, directory)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.skipif(not has("pyarrow"), reason="pyarrow is missing: `make deps` installs it")
@requires("qemu-img")
def test_an_engine_answers_each_question_as_a_naive_computation_does(engine, fleet):
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("java is missing: Spark runs on it")
    if not has(ENGINES[engine]):
        pytest.skip(f"{ENGINES[engine]} is missing: `make deps` installs it")
    told = fleet.ask(engine)
    for question in QUESTIONS:
        assert told[question] == globals()[f"naive_{question}"](fleet), question
    shape = [(row["host"], row["day"]) for row in told["days"]]
    assert shape == [("007", "today"), ("db1", "today"), ("db1", "yesterday"), ("web", "yesterday")]
    # This fleet is known to be slow on two hosts, and to have one noisy client.
    slow = {row["host"]: row["slow_ios"] for row in told["hosts"]}
    assert set(slow) == {"007", "db1", "web"} and slow["007"] >= 20 and slow["db1"] > 0, slow
    loudest = told["neighbours"][0]
    assert fleet.noisy in loudest["neighbour"] and loudest["times"] > 1
    assert len(told["device"]) >= 2 and min(row["p99_ns"] for row in told["device"]) >= 2_000_000


def test_percentiles_of_buckets_are_at_most_an_eighth_too_high(fleet):
    exact = {op: latencies(ios) for (op,), ios in groups(fleet.ios, "op")}
    for row in naive_percentiles(fleet):
        assert row["all_ios"] == len(exact[row["op"]])
        for name, per_mille in (("p50_ns", 500), ("p99_ns", 990), ("p999_ns", 999)):
            assert (
                percentile(exact[row["op"]], per_mille) <= row[name] <= percentile(exact[row["op"]], per_mille) * 1.125
            )


def test_every_question_is_in_its_page_and_no_other():
    page = (ROOT / "docs/fleet.md").read_text()
    assert {path.stem for path in FLEET.glob("*.sql")} == {*QUESTIONS, *ENGINES}
    assert set(re.findall(r"\]\(\.\./fleet/(\w+)\.sql\)", page)) == {*QUESTIONS, *ENGINES}
