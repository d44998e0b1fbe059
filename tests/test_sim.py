"""`dashpot sim`: labs under the virtual clock, tested only by their output."""

import csv
import json
import re
import signal
import subprocess
from collections import Counter

import pytest
from conftest import BINARY, ROOT, run

LABS = ROOT / "labs"

POOL = """
[disk.a]
store = "null"
size = "64M"
bandwidth = "100M"
rules = ["-D 1ms:1 -T read --name slow"]
[disk.b]
store = "null"
size = "64M"
bandwidth = "100M"
[disk.c]
store = "null"
size = "64M"
service = "lognormal=1ms..5ms"
lanes = 2
[pool.tank]
disks = ["a", "b"]
zfs_dirty_data_max = "4M"
txg_overhead = "off"
[volume."tank/foo"]
size = "64M"
write = "openzfs"
[workload.client]
target = "tank/foo"
threads = 4
think = "1ms"
read = "30%"
[workload.lone]
target = "c"
rate = 100
flush_every = 10
[sim]
lasts = "3s"
"""


@pytest.fixture
def lab(tmp_path):
    """Writes a lab file."""

    def write(text, name="lab.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def sim(*words, code=0):
    return run(BINARY, "sim", *words, code=code)


def as_json(*words):
    return json.loads(sim(*words, "--json").stdout)


def test_the_summary_has_clients_devices_pools_and_a_histogram(lab):
    text = sim(lab(POOL)).stdout
    assert text.startswith("lab: 3s, seed 1\n")
    for row in [
        r"client +read +client ",
        r"client +write +device ",
        r"lone +flush +client ",
        r"tank +volumes ",
        r"tank +disks ",
        r"tank +\d+ ",
    ]:
        assert re.search(f"^{row}", text, re.M), f"{row}\n{text}"
    assert re.search(r"^latency    client read +lone write", text, re.M), text


def test_json_counts_what_the_client_asked_for(lab):
    [outcome] = as_json(lab(POOL))
    lone = next(one for one in outcome["workloads"] if one["workload"] == "lone")
    writes = next(op for op in lone["ops"] if op["op"] == "write")
    flushes = next(op for op in lone["ops"] if op["op"] == "flush")
    # A call begins every 10 ms, and every eleventh is a flush. The last calls have not ended.
    asked = writes["client"]["n"] + flushes["client"]["n"] + lone["in_flight"]
    assert 300 <= asked <= 301
    assert writes["failed"] == 0 and writes["failed_client"] is None
    assert sum(bucket["count"] for bucket in writes["client"]["histogram"]) == writes["client"]["n"]
    [pool] = outcome["pools"]
    client = next(one for one in outcome["workloads"] if one["workload"] == "client")
    calls = sum(op["client"]["n"] for op in client["ops"])
    asked = pool["volumes"]["reads"] + pool["volumes"]["writes"]
    assert calls <= asked <= calls + 4


def test_failures_are_told_apart_from_latencies(lab):
    """Every second write fails at once. Latencies must include only the writes that succeed, which take 1 ms."""
    path = lab(
        '[disk.d]\nstore = "null"\nsize = "1M"\nservice = "1ms"\nrules = ["-e EIO -T write --every 2"]\n'
        '[workload.w]\ntarget = "d"\nthink = "1ms"\n[sim]\nlasts = "300ms"\n'
    )
    text = sim(path).stdout
    assert re.search(r"^w +write +200 +100 +50\.0% ", text, re.M), text
    assert re.search(r"^w +write +client +1\.00ms +0ns +1\.00ms +1\.00ms +- +1\.00ms$", text, re.M), text
    assert "\nFailed writes of w: 100, after 0ns on average; they are in no latency above.\n" in text
    [op] = as_json(path)[0]["workloads"][0]["ops"]
    assert (op["failed"], op["client"]["n"], op["failed_client"]["n"]) == (100, 100, 100)


def test_what_waits_longer_than_all_that_was_counted_is_said(lab):
    """Three of ten writers hang. The report must say that their writes have waited longer than all counted writes."""
    path = lab(
        '[disk.d]\nstore = "null"\nsize = "1M"\nservice = "1ms"\nrules = ["--hang -T write --first 3"]\n'
        '[workload.w]\ntarget = "d"\nthreads = 10\nthink = "1ms"\n[sim]\nlasts = "2s"\n'
    )
    text = sim(path).stdout
    assert re.search(r"^In flight of w: \d+, the oldest for 2\.00s \(hung for 2\.00s\)\.$", text, re.M), text
    assert "\n3 writes of w wait longer than any that was counted (1.00ms): the latencies\n" in text
    [op] = as_json(path)[0]["workloads"][0]["ops"]
    assert op["outlasting"]["longer_than_all"] == 3


def test_what_is_in_flight_names_the_wait_it_is_in_and_since_when(lab):
    """The report must name the present wait of the oldest zio at the disk, although it waited longer in a
    queue."""
    lines = "".join(
        sim(LABS / "scenario2-legacy.toml", "--for", "33s", "--report", f"quantize --layer {layer}").stdout
        for layer in ("disk", "volume")
    )
    at_disk = re.search(r"^In flight: \d+, the oldest for ([\d.]+) s on c1t1d0 \(store for [\d.]+us\)\.", lines, re.M)
    assert at_disk and float(at_disk[1]) > 1, lines
    assert re.search(r"^In flight: \d+, the oldest for [\d.]+ s on tank/foo \(throttled\)\.", lines, re.M), lines


def test_reads_that_writes_cause_are_counted_against_the_writes(lab):
    """The client writes 8 KiB to blocks of 128 KiB, so each write first reads the rest of its block."""
    pool = (
        '[disk.a]\nstore = "null"\nsize = "256M"\nbandwidth = "400M"\n[pool.tank]\ndisks = ["a"]\n'
        '[volume."tank/v"]\nsize = "256M"\nblock_size = "128K"\nwrite = "openzfs"\n[workload.w]\n'
        'target = "tank/v"\nrate = 100\nread = "%s"\n[sim]\nlasts = "3s"\n'
    )
    only_writes = lab(pool % "0%")
    text = sim(only_writes).stdout
    found = re.search(
        r"^The clients of tank only write\. For each of their writes the disks did ([\d.]+) reads, "
        r"and for each written byte they read ([\d.]+) bytes",
        text,
        re.M,
    )
    assert found and 0.8 < float(found[1]) <= 1 and 13 < float(found[2]) <= 16, text
    [volumes] = as_json(only_writes)[0]["pools"]
    times = volumes["amplification"]
    assert times["reads"] is None and times["read_bytes_per_written_byte"] == pytest.approx(float(found[2]), abs=0.01)
    reads_too = as_json(lab(pool % "50%"))[0]["pools"][0]["amplification"]
    assert reads_too["reads_per_write"] is None and reads_too["reads"] > 0


def test_two_kinds_of_latency_are_named():
    text = sim(LABS / "bimodal-12m.toml", "--for", "60s").stdout
    assert re.search(
        r"^At the volume, writes of client are of two kinds: 7\d % take less than "
        r"1\.00us,\n1\d % at least \d+ms\. Their mean, \d+ms, is of both together\.$",
        text,
        re.M,
    ), text
    assert "two kinds" not in sim(LABS / "bimodal-64m.toml", "--for", "60s").stdout


def test_tables_fit_a_terminal():
    for name in ("scenario2-legacy", "amplification", "bimodal-12m"):
        text = sim(LABS / f"{name}.toml", "--for", "40s").stdout
        assert max(map(len, text.splitlines())) <= 80, text


REPORTS = [
    "observe 1",
    "iolatency -T 1",
    "iolatency -d c 1",
    "iostat -x 1",
    "iostat --layer volume",
    "quantize --by disk",
    "quantize --layer volume --op write",
    "zpool-iostat -l 1",
    "zpool-iostat -q tank 1 2",
    "zpool-iostat -w",
    "zpool-iostat -r",
    "txgs",
    "txgs tank",
    "iolatency --by client 1",
    "iolatency --by size --percentiles",
    "quantize --layer volume --layer disk --layer store",
]


@pytest.mark.parametrize(
    "words",
    [
        [],
        *([("--report"), report] for report in REPORTS),
        ["--report", "txgs", "--report", "iostat 1"],
        ["--json", "--report", "txgs"],
    ],
    ids=" ".join,
)
def test_equal_seeds_give_equal_bytes(lab, words):
    path = lab(POOL)
    once, again, other = (sim(path, *words, *seed).stdout for seed in ([], [], ["--seed", "2"]))
    assert once and once == again
    quiet = words[-1:] == ["zpool-iostat -r"]
    assert quiet or once != other, "the seed changes nothing"


def test_reports_begin_as_the_originals_do(lab):
    path = lab(POOL)
    for report, beginning in [
        ("iolatency 1", "Tracing block I/O. Output every 1 seconds.\n\n  >=(ms) .. <(ms)   : I/O      |Distribution"),
        ("iostat -x 1", "Device            r/s     rkB/s   rrqm/s"),
        ("quantize", "\nhistogram of latencies (us):\n"),
        (
            "zpool-iostat -l 1",
            "              capacity     operations     bandwidth    total_wait     disk_wait    "
            "syncq_wait    asyncq_wait  scrub   trim  rebuild\npool        alloc   free ",
        ),
        ("zpool-iostat -w", "\ntank         total_wait     disk_wait    syncq_wait    asyncq_wait\nlatency      read"),
        ("txgs", "txg      birth            state ndirty "),
    ]:
        text = sim(path, "--report", report).stdout
        assert text.startswith(beginning.lstrip("\n") if report.startswith("zpool") else beginning), text[:300]


def test_intervals_are_of_virtual_time(lab):
    path = lab(POOL)
    table = sim(path, "--report", "zpool-iostat 1").stdout.splitlines()
    assert [line.split()[0] for line in table[1:]] == ["pool", "----------", "tank", "tank", "tank"]
    assert len(sim(path, "--report", "zpool-iostat tank 1 2").stdout.splitlines()) == 5
    text = sim(path, "--report", "iolatency -T 2").stdout
    # The end of the simulation cuts the last interval short.
    assert re.findall(r"^\d\d:\d\d:\d\d:$", text, re.M) == ["00:00:02:", "00:00:03:"]


def of_report(path, report, *words):
    """The intervals of the report, as JSON."""
    [outcome] = as_json(path, "--report", report, *words)
    [one] = outcome["reports"]
    return one["output"]


def rows_of(*histograms):
    """The counts of all histograms together, by lower bound."""
    counts = Counter()
    for one in histograms:
        counts.update({row["from_ns"]: row["count"] for row in one["rows"]})
    return +counts


@pytest.mark.parametrize("layer", ["disk", "volume"])
def test_breakdowns_add_up_to_the_whole(lab, layer):
    """The values of a breakdown, which come from single events, must add up to the counts of the data
    path."""
    path = lab(POOL)
    whole = of_report(path, f"iolatency --layer {layer} 1")
    names = {
        "client": {"client", "lone", "tank", "tank/foo"},
        "device": {"a", "b", "c", "tank/foo"},
        "type": {"read", "write", "flush"},
        "size": None,
    }
    for by, known in names.items():
        parts = of_report(path, f"iolatency --layer {layer} --by {by} 1")
        assert len(parts) == len(whole) == 3
        for interval, all_together in zip(parts, whole):
            assert interval["by"] == by
            values = interval["values"]
            assert sum(value["latency"]["n"] for value in values) == all_together["latency"]["n"] > 0
            assert rows_of(*values) == rows_of(all_together)
            assert known is None or {value["value"] for value in values} <= known


def test_the_same_interval_at_every_layer(lab):
    volume, disk, store = of_report(lab(POOL), "quantize --op read --layer volume --layer disk --layer store")
    assert [one["layer"] for one in (volume, disk, store)] == ["volume", "disk", "store"]
    assert disk["total"]["latency"]["n"] == store["total"]["latency"]["n"] > 0
    # The reads of disk a, a third of all, are held for a millisecond.
    assert disk["total"]["latency"]["p90_ns"] >= 1_000_000 > store["total"]["latency"]["p90_ns"]
    [alone] = of_report(lab(POOL), "quantize --op read --layer disk")
    assert alone == {name: disk[name] for name in disk if name != "layer"}


def test_a_volume_is_the_same_with_its_store_beside_it():
    """A volume's latency must include the wait for the throttle, even if the report also shows the store's latency."""
    flood = LABS / "scenario2-legacy.toml"
    beside, _ = of_report(flood, "quantize --layer volume --layer store", "--for", "60s")
    [alone] = of_report(flood, "quantize --layer volume", "--for", "60s")
    assert alone == {name: beside[name] for name in beside if name != "layer"}
    assert alone["total"]["latency"]["max_ns"] > 1_000_000_000, "nobody was held back"


def test_several_reports_and_labs_are_told_apart(lab):
    one, two = lab(POOL, "one.toml"), lab(POOL, "two.toml")
    text = sim(one, two, "--report", "txgs", "--report", "iostat").stdout
    headings = re.findall(r"^--- .*", text, re.M)
    assert headings == ["--- one: txgs", "--- one: iostat", "--- two: txgs", "--- two: iostat"]


COLUMNS = (
    "number,parent,device,client,class,op,fua,offset,length,outcome,arrived_ns,submitted_ns,admitted_ns,"
    "issued_ns,store_done_ns,target_ns,offered_ns,ended_ns,rule,lane"
).split(",")


def test_events_have_a_line_for_each_zio(lab, tmp_path):
    path = tmp_path / "events.csv"
    [outcome] = as_json(lab(POOL), "--events", path)
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == COLUMNS
        events = list(reader)
    ended = sum(op["client"]["n"] for one in outcome["workloads"] for op in one["ops"])
    of_clients = [event for event in events if event["device"] in ("tank/foo", "c")]
    assert len(of_clients) == ended
    times = [name for name in COLUMNS if name.endswith("_ns") and name != "target_ns"]
    for event in events:
        moments = [int(event[name]) for name in times]
        assert moments == sorted(moments), event
    numbers = {event["number"] for event in events}
    assert len(numbers) == len(events)
    children = [event for event in events if event["device"] in ("a", "b")]
    assert children and {child["class"] for child in children} >= {"sync_read", "async_write"}
    slow = [child for child in children if child["device"] == "a" and child["op"] == "read"]
    assert slow and {(child["rule"], child["lane"]) for child in slow} == {("1", "0")}
    assert {event["client"] for event in of_clients} == {"client", "lone"}
    assert [name.name for name in tmp_path.iterdir() if name.name.startswith(".")] == []


def test_events_that_cannot_be_written_leave_nothing(lab, tmp_path):
    refused = sim(lab(POOL), "--events", tmp_path / "missing" / "e.csv", code=1)
    assert "--events" in refused.stderr
    directory = tmp_path / "directory"
    directory.mkdir()
    sim(lab(POOL), "--events", directory, code=1)
    assert sorted(name.name for name in tmp_path.iterdir()) == ["directory", "lab.toml"]


def test_pictures_are_whole_and_the_same_every_time(lab, tmp_path):
    path = lab(POOL)
    pictures = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sim(path, "--chart", tmp_path / name)
        files = sorted((tmp_path / name).iterdir())
        assert [file.name for file in files] == ["latency-at-device.svg", "latency.svg", "series.svg"]
        pictures.append([file.read_text() for file in files])
    assert pictures[0] == pictures[1]
    for picture in pictures[0]:
        assert "3s simulated" in picture
        assert picture.startswith("<svg ") and picture.endswith("</svg>\n")
        assert "NaN" not in picture and "inf" not in picture


def test_ctrl_c_shows_what_there_is(lab, tmp_path):
    path = lab(POOL.replace('lasts = "3s"', 'lasts = "100000m"'))
    events = tmp_path / "events.csv"
    with subprocess.Popen([BINARY, "sim", path, "--events", events], stdout=subprocess.PIPE, text=True) as process:
        draft = None
        while draft is None or draft.stat().st_size < 10_000:
            draft = next(tmp_path.glob(".events.csv.*"), None)
        process.send_signal(signal.SIGINT)
        text = process.communicate()[0]
    assert process.returncode == 130
    assert "client    read" in text
    assert events.read_text().endswith("\n") and not list(tmp_path.glob(".events*"))


def test_a_trace_is_replayed_to_the_nanosecond(lab, tmp_path):
    (tmp_path / "t.csv").write_text(
        "time_ns,op,target,offset,length\n0,read,d,0,4096\n0,read,d,0,4096\n5000000,read,d,0,4096\n"
    )
    path = lab(
        '[disk.d]\nstore = "null"\nsize = "1M"\nrules = ["-D 10ms:1"]\n[workload.w]\ntrace = "t.csv"\n'
        '[sim]\nlasts = "1s"\n'
    )
    events = tmp_path / "e.csv"
    sim(path, "--events", events)
    with open(events, newline="") as file:
        ended = [int(event["ended_ns"]) for event in csv.DictReader(file)]
    assert ended == [10_000_000, 20_000_000, 30_000_000]


DISK = '[disk.a]\nstore = "null"\nsize = "1M"\n'
BAD_LABS = [
    ('[pool.p]\ndisks = ["b"]', "lab.toml:5: [pool.p] disks: there is no disk 'b'; did you mean 'a'?"),
    ('[pool.p]\ndisks = ["a", "a"]', "lab.toml:5: [pool.p] disks: disk 'a' is in pool 'p' already"),
    ('[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "2M"', "lab.toml:7: [volume.p/v] size: '2M' is more than"),
    (
        '[pool.p]\ndisks = ["a"]\n[volume."p/v"]\nsize = "1M"\nblock_size = "3K"',
        "lab.toml:8: [volume.p/v] block_size: blocks of '3K' are not possible: give a power of two",
    ),
    (
        '[pool.p]\ndisks = ["a"]\nzfs_dirty_data_sync_percent = 0',
        "lab.toml:6: [pool.p] zfs_dirty_data_sync_percent: '0' is out of bounds: give 1% to 100%",
    ),
    (
        '[disk.big]\nstore = "null"\nsize = "100T"\n[pool.p]\ndisks = ["big"]\n[volume."p/v"]\nsize = "100T"',
        "lab.toml:9: [volume.p/v]: a volume of 109951162777600 bytes has more than 4294967295 blocks: choose larger ones",
    ),
    ('[workload.w]\ntrace = "t.csv"', "t.csv:2: op: 'reed' is unknown"),
    ('[workload.w]\ntrace = "u.csv"', "u.csv:1: there is no target 'b'; did you mean 'a'?"),
    ('[workload.w]\ntrace = "v.csv"', "v.csv:2: time_ns: '4' is before the line above, 5"),
    ('[sim]\nlasts = "0s"', "lab.toml:5: [sim] lasts: '0s' ends at once"),
    (
        '[sim]\nsample = "1ns"',
        "lab.toml:5: [sim] sample: '1ns' makes 60000000000 samples in 1m, and there may be 100000: "
        "sample every 600us or more",
    ),
    ('[workload.w]\ntrace = "/dev/zero"', "lab.toml:5: [workload.w] trace: the trace '/dev/zero' is longer than 128M"),
    (
        '[workload.w]\ntarget = "a"\nthreads = 600000\n[workload.x]\ntarget = "a"\nthreads = 600000',
        "lab.toml:9: [workload.x] threads: 1200000 with earlier workloads: at most 1000000 in a lab",
    ),
    (
        "".join(f'[disk.d{n}]\nstore = "null"\nsize = "1M"\n' for n in range(10_000)),
        "lab.toml:12289: [disk.d4095]: a lab has at most 4096 of [disk.NAME]",
    ),
]


@pytest.mark.parametrize("text, message", BAD_LABS, ids=[message[:40] for _, message in BAD_LABS])
def test_bad_labs_are_refused_with_their_place(lab, tmp_path, text, message):
    for name, line in [
        ("t", "0,read,a,0,512\n1,reed,a,0,512"),
        ("u", "0,read,b,0,512"),
        ("v", "5,read,a,0,512\n4,read,a,0,512"),
    ]:
        (tmp_path / f"{name}.csv").write_text(line + "\n")
    refused = sim(lab(f"{DISK}{text}\n"), code=1)
    assert message in refused.stderr and refused.stdout == ""
    assert "panicked" not in refused.stderr


@pytest.mark.parametrize(
    "words, code, message",
    [
        ([], 2, "LAB"),
        (["nowhere.toml"], 1, "'nowhere.toml' cannot be read"),
        (["LAB", "--for", "1"], 2, "did you mean 1s?"),
        (["LAB", "--report", "txg"], 2, "unrecognized subcommand 'txg'"),
        (["LAB", "--report", "iostat -q"], 2, "unexpected argument '-q'"),
        (["LAB", "--report", "zpool-iostat -l -w"], 2, "cannot be used with"),
        (["LAB", "--report", "txgs tonk"], 1, "--report 'txgs tonk': there is no 'tonk'; did you mean 'tank'?"),
        (["LAB", "--report", "iolatency -d d"], 1, "there is no 'd'; did you mean"),
        (
            ["LAB", "--report", "iolatency --by process"],
            1,
            "'process' is unknown here: dashpot's disks and simulations know",
        ),
        (["LAB", "--report", "iolatency -k"], 2, "a simulation has its own"),
        (["LAB", "--report", "iostat --layer store"], 2, "take iolatency or quantize"),
        (["LAB", "--report", "iolatency 1us"], 1, "3000000 intervals of 1us in 3s: at most 100000 are kept"),
        (["LAB", "--report", "iostat --json"], 2, "give it to 'dashpot sim' itself"),
        (["LAB", "LAB", "--events", "e.csv"], 2, "--events takes one lab"),
    ],
    ids=str,
)
def test_bad_words_are_refused(lab, words, code, message):
    path = lab(POOL)
    refused = sim(*(path if word == "LAB" else word for word in words), code=code)
    assert message in refused.stderr, refused.stderr
    assert refused.stdout == ""


def test_what_a_lab_has_in_vain_is_said(lab):
    idle = sim(lab(DISK, "idle.toml"), "--json")
    assert "idle.toml: no workload, so nothing reads or writes: add [workload.NAME]" in idle.stderr
    json.loads(idle.stdout)
    path = lab(POOL.replace('target = "c"', 'target = "c"\nstart = "2s"') + '[[at]]\ntime = "2500ms"\nsuspend = "c"\n')
    assert sim(path).stderr == ""
    late = sim(path, "--for", "2s").stderr.splitlines()
    assert late == [
        f"dashpot: {path}:{line}: its time, {time}, is not before the end of the run, 2s: it does nothing"
        for line, time in [("28: [workload.lone]", "2s"), ("35: [[at]]", "2500ms")]
    ]


def test_a_short_run_needs_a_shorter_warm_up(lab):
    path = lab(POOL + 'warmup = "2s"\n')
    refused = sim(path, "--for", "2s", code=1)
    assert "a warm-up of 2s leaves nothing of 2s: make --for longer, or --warmup shorter" in refused.stderr
    none, whole = (as_json(path, "--for", "2s", "--warmup", warmup)[0] for warmup in ["0s", "1s"])
    counts = [latencies(outcome, "lone", "write")["n"] for outcome in (none, whole)]
    assert counts[0] > counts[1] > 0


def test_a_daemon_ignores_workloads_and_refuses_beginnings_that_only_simulations_have(lab):
    pipeline = POOL.replace("[pool.tank]\n", '[pool.tank]\nfull_pipeline = "1M"\n').replace("openzfs", "legacy")
    refused = run(BINARY, "serve", lab(pipeline), code=1)
    assert "[pool.tank] full_pipeline: only a simulation begins like this" in refused.stderr
    ignored = lab(f'{DISK}service = "1ms"\n[workload.w]\nanything = 1\n[sim]\nlasts = "1s"\n')
    done = run(BINARY, "run", ignored, "--", "true")
    assert done.stderr == ""


@pytest.mark.parametrize("path", sorted(LABS.glob("*.toml")), ids=lambda path: path.name)
def test_the_labs_of_the_project_run(path):
    warmup = re.search(r'warmup = "(\d+)s"', path.read_text())
    lasts = int(warmup[1]) + 1 if warmup else 1
    [outcome] = as_json(path, "--for", f"{lasts}s")
    assert outcome["elapsed_ns"] == lasts * 10**9


def test_a_swarm_checks_random_labs_and_counts_them():
    once, again = (sim("--swarm", "20", "--seed", "7").stdout for _ in range(2))
    assert once == again
    assert re.fullmatch(r"20 labs from seed 7: \d+ calls, \d+ failed, \d+ aborted, digest [0-9a-f]{16}\n", once)
    assert "cannot be used with" in sim("--swarm", "1", "x.toml", code=2).stderr


def test_a_lab_changes_at_its_times(lab):
    """Tests changes during the run: a rule is armed and cleared, and the maximum of dirty data shrinks."""
    text = (
        POOL
        + """
[[at]]
time = "1s"
inject = "c -D 300ms --name later"
[[at]]
time = "1500ms"
clear = "later"
[[at]]
time = "2s"
tune = { pool = "tank", zfs_dirty_data_max = "1M" }
"""
    )
    changed = summary_of(lab(text))
    slow = latencies(changed, "lone", "write")["max_ns"]
    plain = latencies(summary_of(lab(POOL, "plain.toml")), "lone", "write")["max_ns"]
    assert plain < 300_000_000 <= slow
    assert changed["pools"][0]["dirty_bytes"] <= 1 << 20


def summary_of(path):
    return json.loads(run(BINARY, "sim", path, "--json").stdout)[0]


def latencies(summary, workload, op):
    workload = next(one for one in summary["workloads"] if one["workload"] == workload)
    return next(one for one in workload["ops"] if one["op"] == op)["client"]


def test_tunables_are_listed_as_a_lab_takes_them():
    rows = json.loads(sim("--tunables", "--json").stdout)
    scale = next(row for row in rows if row["name"] == "zfs_delay_scale")
    assert (scale["default"], scale["max"]) == ("500us", "1s")
    assert sim("--tunables").stdout.count("\n") == len(rows) + 1
    assert "cannot be used with" in sim("--tunables", "x.toml", code=2).stderr


@pytest.mark.parametrize("command", ["sim", "observe"])
def test_help_has_no_daemon_where_none_is_asked(command):
    assert "--api" not in run(BINARY, command, "--help").stdout
    assert "--api" in run(BINARY, "iolatency", "--help").stdout


TABLES = [
    (page, name)
    for page in ("write-throttle.md", "tuning.md")
    for name in re.findall(r"^<!-- ([a-z-]+) -->\n\|", (ROOT / "docs" / page).read_text(), re.M)
]


@pytest.mark.parametrize("page, name", TABLES)
def test_pages_name_the_commands_that_print_their_tables(page, name):
    """The pages must name the commands that print their tables; `make experiments` runs these commands."""
    before, table = (ROOT / "docs" / page).read_text().split(f"<!-- {name} -->\n")
    table = table.split("<!-- end -->")[0]
    command = "served.py" if name == "served" else f"throttle.py {name}"
    assert f"    experiments/{command}\n" in before
    if name == "first-cycle":
        printed = run(ROOT / "experiments" / "throttle.py", name, env={"DASHPOT": str(BINARY)})
        assert printed.stdout == table
