"""The page of a recording, of a simulation and of the kernel's disks, without a daemon; and reports as HTML files."""

import base64
import hashlib
import json
import re
import shutil
import signal
import subprocess

import pytest
from attached import attach  # noqa: F401
from conftest import BINARY, ROOT, eventually, requires, run
from kernel import loop_in_memory, takes_a_kernel
from test_page import in_chromium, look

LAB = """
[disk.a]
store = "null"
size = "1G"
service = "4ms~2ms"
lanes = 4
[workload.reader]
target = "a"
threads = 2
think = "10ms"
read = "100%"
[sim]
lasts = "8s"
"""


@pytest.fixture
def page(directory):
    """Starts a program that prints the address of a page, and yields that address."""
    started = []

    def start(*words):
        said = directory / f"said.{len(started)}"
        with open(said, "w") as out:
            process = subprocess.Popen([BINARY, *map(str, words)], stdout=out, stderr=out)
        started.append(process)

        def address():
            assert process.poll() is None, said.read_text()
            return re.search(r"^page  (http\S+#token=\S+)$", said.read_text(), re.M)

        found = eventually(address).group(1)
        start.process = process
        return found

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)


@pytest.fixture
def loop():
    with loop_in_memory() as loop:
        yield loop


def ask(address, path):
    origin, token = re.fullmatch(r"(http://[^/]+)/#token=(\w+)", address).groups()
    said = run("curl", "-s", "-H", f"Authorization: Bearer {token}", origin + path)
    return json.loads(said.stdout)


@pytest.fixture
def recording(serve, directory):
    """A recording of two seconds of a disk."""
    daemon = serve("-d", "d=ram,size=64M", "-r", "d -D 3ms")
    load = subprocess.Popen(
        [BINARY, "load", daemon.uri("d"), "--rate", "300", "--depth", "4", "--time", "4s"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    run(BINARY, "record", "--api", f"unix:{daemon.api}", "-o", directory / "rec", "--for", "2s")
    load.wait()
    return directory / "rec"


def test_a_recording_answers_as_its_reports_do(recording, page):
    address = page("view", recording)
    source, clock = ask(address, "/v1/source"), ask(address, "/v1/clock")
    assert source["kind"] == "recording" and source["devices"] == [{"layer": "disk", "name": "d", "over": []}]
    assert source["ended_ns"] is not None and source["trouble"] is None
    from_ns = clock["started_ns"] // 10**9 * 10**9
    said = ask(
        address,
        f"/v1/statistics/columns?statistic=disk.latency[op]&from_ns={from_ns}&step_ns=3600000000000".replace(
            "[", "%5B"
        ).replace("]", "%5D"),
    )
    part = [part for column in said["columns"] for part in column["parts"]]
    told = json.loads(run(BINARY, "stat", "disk.latency[op]", "--in", recording, "--json").stdout)
    assert sum(one["count"] for one in part) == told["count"] > 100
    if len(part) == 1:
        assert part[0]["numbers"]["p99"] == told["numbers"]["p99_ns"]
    ios = ask(address, f"/v1/statistics/ios?statistic=disk.latency&from_ns={from_ns}&to_ns={clock['now_ns']}&limit=3")
    assert ios["count"] == told["count"]
    totals = [io["total_ns"] for io in ios["ios"]]
    assert totals == sorted(totals, reverse=True) and len(totals) == 3


def test_the_page_of_a_recording_is_guarded_as_a_daemons(recording, page):
    address = page("view", recording)
    origin, token = re.fullmatch(r"(http://[^/]+)/#token=(\w+)", address).groups()

    def status(path, *headers):
        words = [word for header in headers for word in ("-H", header)]
        return run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *words, origin + path).stdout

    bearer = f"Authorization: Bearer {token}"
    assert status("/v1/source", bearer) == "200"
    assert status("/v1/source") == status("/v1/source", "Authorization: Bearer 0123") == "401"
    assert status("/v1/source", bearer, "Host: evil.example") == "403"
    assert status("/v1/statistics", bearer, "Origin: http://evil.example") == "403"
    assert status("/v1/disks", bearer) == "404"
    assert status("/", "Host: evil.example") == "403"
    for query in ("statistic=disk.latency%5Blatncy%5D", "statistic=disk.ops&from_ns=1", "statistic=", "from_ns=0"):
        assert status(f"/v1/statistics/columns?{query}", bearer) in ("400", "422"), query


@in_chromium
def test_a_recording_that_vanishes_is_explained(recording, page):
    address = page("view", recording)
    looking = subprocess.Popen(
        ["node", "tests/look.mjs", "vanishes", address],
        cwd=ROOT / "web",
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert looking.stdout.readline() == "seen\n", looking.stderr.read()
        shutil.rmtree(recording)
        _, complaints = looking.communicate(timeout=60)
        assert looking.returncode == 0, complaints
    finally:
        looking.kill()


@in_chromium
def test_a_simulation_on_the_page(directory, page):
    lab = directory / "lab.toml"
    lab.write_text(LAB)
    look("views", page("sim", lab, "--page", "--speed", "max"), "The simulation", "a")


def test_a_simulation_keeps_its_speed(directory, page):
    lab = directory / "lab.toml"
    lab.write_text(LAB)
    address = page("sim", lab, "--page", "--speed", "4")
    assert ask(address, "/v1/clock")["now_ns"] < 8 * 10**9
    assert ask(address, "/v1/source")["kind"] == "simulation"
    ended = eventually(lambda: ask(address, "/v1/source")["ended_ns"])
    assert ended == 8 * 10**9
    told = json.loads(run(BINARY, "sim", lab, "--report", "stat disk.ops", "--json").stdout)
    said = ask(address, "/v1/statistics/columns?statistic=disk.ops&from_ns=0&step_ns=8000000000")
    assert said["columns"][0]["parts"][0]["count"] == sum(one["count"] for one in told[0]["reports"][0]["output"])


@takes_a_kernel
def test_a_rectangle_finds_a_process_on_a_kernel_disk(directory, loop, page):
    """Two processes read one disk. The page must name the process with the large reads, whose I/Os are in the
    rectangle."""
    large = directory / "largereader"
    shutil.copy(shutil.which("dd"), large)
    address = page("observe", "--page", loop.path, "1")
    clock = ask(address, "/v1/clock")
    reads = [
        subprocess.Popen(
            [program, f"if={loop.path}", "of=/dev/null", "iflag=direct", f"bs={size}", f"count={count}"],
            stderr=subprocess.DEVNULL,
        )
        for program, size, count in ((large, "512K", 100), ("dd", "4K", 400))
    ]
    assert [read.wait() for read in reads] == [0, 0]
    ended = ask(address, "/v1/clock")["now_ns"] + 2 * 10**9
    eventually(lambda: ask(address, "/v1/clock")["now_ns"] >= ended)
    from_ns, to_ns = clock["started_ns"] // 10**9 * 10**9, ended // 10**9 * 10**9
    view = f"statistic=disk.size&from_ns={from_ns}&to_ns={to_ns}"
    said = ask(address, f"/v1/statistics/diff?{view}&begin_ns={from_ns}&end_ns={to_ns}&least=65536")
    found = {one["dimension"]: one["values"][0] for one in said["differs"]}
    assert found["process"]["value"] == "largereader" and found["process"]["inside_percent"] == 100, said
    ios = ask(address, f"/v1/statistics/ios?{view}&least=65536&limit=5")
    assert ios["count"] >= 100 and {io["process"] for io in ios["ios"]} == {"largereader"}


# The readers of a disk, and the part of it that each reads. Reads of the second part are slow.
READERS = {
    "quickreader": ["--offset=0", "--rate_iops=150", "--iodepth=4"],
    "slowreader": ["--offset=32M", "--iodepth=4"],
}


@takes_a_kernel
@in_chromium
@requires("fio")
def test_a_rectangle_by_mouse_finds_the_slow_process_on_a_kernel_disk(serve, directory, attach, page):  # noqa: F811
    daemon = serve("-d", "d=ram,size=64M", "-r", "d -D 100ms -T read --range 32M..64M")
    node = attach(daemon)
    address = page("observe", "--page", node, "1")
    readers = []
    for name, words in READERS.items():
        shutil.copy(shutil.which("fio"), directory / name)
        readers.append(
            subprocess.Popen(
                [
                    directory / name,
                    f"--name={name}",
                    f"--filename={node}",
                    "--direct=1",
                    "--ioengine=libaio",
                    "--rw=randread",
                    "--bs=4k",
                    "--size=32M",
                    "--time_based",
                    "--runtime=70",
                    *words,
                ],
                cwd=directory,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    try:
        look("compares", address, "disk.latency[process]", "Process slowreader has")
    finally:
        for reader in readers:
            reader.terminate()
            reader.wait()
        # The observer must end before its disk is removed: otherwise it would end with an error.
        page.process.send_signal(signal.SIGINT)
        page.process.wait(20)
        daemon.cli("detach", "d")


@pytest.mark.parametrize(
    "words, why",
    [
        (("sim", "x.toml", "--speed", "2"), "--page"),
        (("sim", "x.toml", "--page", "--speed", "0"), "'0' is no speed"),
        (("view", "nothing.rec"), "nothing.rec"),
        (("view", "x", "--listen", "unix:/tmp/x.sock"), "x: No such file"),
    ],
)
def test_bad_words_are_refused(words, why):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2) and why in done.stderr, done.stderr


def hashes(html, tag):
    return [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)
    ]


REPORTS = [
    "iolatency 1 1",
    "iostat 1 1",
    "quantize --for 1s",
    "heatmap 1 2",
    "snoop --for 1s",
    "stat disk.latency 1 1",
    "proof",
    "inflight",
]


def test_each_report_is_saved_as_one_file(serve, directory):
    daemon = serve("-d", "d=ram,size=64M", "-r", "-D 5ms")
    load = subprocess.Popen(
        [BINARY, "load", daemon.uri("d"), "--rate", "100", "--time", "6s"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    running = [
        subprocess.Popen(
            [BINARY, *words.split(), "--api", f"unix:{daemon.api}", "--html", directory / f"{at}.html"],
            stdout=subprocess.PIPE,
        )
        for at, words in enumerate(REPORTS)
    ]
    for at, (words, report) in enumerate(zip(REPORTS, running)):
        assert report.communicate()[0] and report.returncode == 0, words
        check_file((directory / f"{at}.html").read_text(), words)
    load.kill()
    load.wait()


def check_file(html, words):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1)
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    for tag in ("script", "style"):
        for one in hashes(html, tag):
            assert one in policy, tag
    assert json.loads(re.search(r'id="data">(.*?)</script>', html, re.S).group(1)), html
    assert "<h1>dashpot " + words.split()[0] in html and "--html" not in html.split("<script")[0]


def test_a_file_that_cannot_be_written_is_refused_before_the_report(daemon):
    done = subprocess.run(
        [BINARY, "iostat", "--api", f"unix:{daemon.api}", "--html", "/nowhere/x.html", "1", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "--html /nowhere/x.html: cannot be written" in done.stderr
