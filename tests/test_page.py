"""Tests the page in Chromium, which web/tests/look.mjs drives."""

import gzip
import json
import re
import shutil
import subprocess

import pytest
from conftest import BINARY, ROOT, eventually, run

WEB = ROOT / "web"
MISSING = [tool for tool in ("node", "chromium") if shutil.which(tool) is None]
if not (WEB / "node_modules/playwright-core").exists():
    MISSING.append("web/node_modules")
in_chromium = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is missing: `make deps` installs it")

HOSTILE = "uid=<img src=x onerror=window.hit=1> *"


def start(serve, *words):
    """A daemon with the page, and the address of the page that the daemon prints."""
    daemon = serve("-d", "d=ram,size=64M", *words)
    found = eventually(lambda: re.search(r"^page  (http\S+#token=\S+)$", daemon.output(), re.M))
    daemon.page = found.group(1)
    return daemon


@pytest.fixture
def served(serve):
    """A daemon with the page and a disk under load."""
    daemon = start(serve, "-r", f"d -D 1ms --client '{HOSTILE}'", "--api", "tcp:127.0.0.1:0")
    daemon.load = subprocess.Popen(
        [BINARY, "load", daemon.uri("d"), "--rate", "200", "--depth", "4", "--write", "50%"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield daemon
    daemon.load.kill()
    daemon.load.wait()


def look(scenario, address, *words):
    """Runs a scenario of web/tests/look.mjs on the page. If the scenario fails, it prints the reason."""
    command = ["node", "tests/look.mjs", scenario, address, *words]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, timeout=80)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@in_chromium
@pytest.mark.parametrize(
    "scenario", ["loads", "tells", "refuses", "explains", "arms", "passes", "sleeps", "jumps", "zooms"]
)
def test_in_a_browser(served, scenario):
    look(scenario, served.page)


@in_chromium
def test_the_page_takes_a_token_of_the_users_own(serve, monkeypatch):
    monkeypatch.setenv("DASHPOT_TOKEN", "a-token_of.your~own")
    daemon = serve("-d", "d=ram,size=64M", "--api", "tcp:127.0.0.1:0")
    page = eventually(lambda: re.search(r"^page  (http\S+/)$", daemon.output(), re.M)).group(1)
    load = subprocess.Popen([BINARY, "load", daemon.uri("d"), "--rate", "200"], stdout=subprocess.DEVNULL)
    try:
        look("refuses", f"{page}#token=a-token_of.your~own")
    finally:
        load.kill()
        load.wait()


@in_chromium
def test_hostile_words_run_no_script(served):
    look("escapes", served.page, HOSTILE)


@in_chromium
def test_a_rule_on_a_path_disk_is_for_calls_that_it_can_hold(tmp_path):
    words = ["-d", f"wal=path:{tmp_path},types=sync,open", "--api", "tcp:127.0.0.1:0"]
    running = subprocess.Popen(
        [BINARY, "run", *words, "--", "cat"],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        page = next(found for line in running.stderr if (found := re.search(r"http\S+#token=\S+", line)))
        look("holds", page.group())
    finally:
        running.communicate()


@in_chromium
def test_a_daemon_that_comes_back_is_met_again(serve):
    first = start(serve, "--api", "tcp:127.0.0.1:0")
    port = re.search(r":(\d+)/", first.page).group(1)
    run("nbdcopy", "--no-extents", first.uri("d"), "null:")
    looking = subprocess.Popen(
        ["node", "tests/look.mjs", "returns", first.page],
        cwd=WEB,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert looking.stdout.readline() == "seen\n", looking.stderr.read()
        first.stop()
        assert looking.stdout.readline() == "lost\n", looking.stderr.read()
        second = start(serve, "--api", f"tcp:127.0.0.1:{port}")
        _, complaints = looking.communicate(second.page + "\n", timeout=60)
        assert looking.returncode == 0, complaints
    finally:
        looking.kill()


@in_chromium
def test_a_rectangle_finds_the_rule_on_one_disk_of_ten(serve):
    disks = [word for n in range(10) for word in ("-d", f"c1t{n}d0=ram,size=64M")]
    daemon = serve(*disks, "-r", "c1t3d0 -D 100ms -T read", "--api", "tcp:127.0.0.1:0")
    page = re.search(r"^page  (http\S+)$", eventually(lambda: "#token" in daemon.output() and daemon.output()), re.M)
    loads = [
        subprocess.Popen(
            [BINARY, "load", daemon.uri(f"c1t{n}d0"), "--rate", "100", "--depth", "32", "--write", "50%"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for n in range(10)
    ]
    try:
        look("compares", page.group(1), "disk.latency[op]", "Rule 1 has", "c1t3d0", "Not different")
    finally:
        for load in loads:
            load.kill()
            load.wait()


@in_chromium
def test_a_rectangle_finds_the_slow_client_of_eight(serve):
    daemon = start(serve, "--api", "tcp:127.0.0.1:0")
    loads = [
        subprocess.Popen(
            [BINARY, "load", daemon.uri("d"), "--rate", "100", "--depth", "32"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(8)
    ]
    api = re.search(r"^API  (\S+)$", daemon.output(), re.M).group(1)
    slow = loads[5].pid
    run(BINARY, "inject", "--api", api, "d", "-D", "100ms", "--client", f"*pid={slow}")
    try:
        look("compares", daemon.page, "disk.latency[client]", f"pid={slow}")
    finally:
        for load in loads:
            load.kill()
            load.wait()


LAB = """
[disk.a]
store = "ram"
size = "64M"
[disk.b]
store = "ram"
size = "64M"
rules = ["-D 5ms -T write"]
[pool.tank]
disks = ["a", "b"]
[volume."tank/db1"]
size = "32M"
block_size = "8K"
write = "through"
[volume."tank/db2"]
size = "32M"
block_size = "128K"
write = "through"
"""


@in_chromium
def test_slow_volumes_lead_to_the_amplified_one_in_five_clicks(serve, directory):
    lab = directory / "lab.toml"
    lab.write_text(LAB)
    daemon = serve(lab, "--api", "tcp:127.0.0.1:0")
    page = re.search(r"^page  (http\S+)$", eventually(lambda: "#token" in daemon.output() and daemon.output()), re.M)
    loads = [
        subprocess.Popen(
            [BINARY, "load", daemon.uri(volume), "--rate", "30", "--depth", "16", "--write", "80%", "--block", "128K"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for volume in ("tank/db1", "tank/db2")
    ]
    try:
        look("walks", page.group(1))
    finally:
        for load in loads:
            load.kill()
            load.wait()


@in_chromium
def test_a_power_cut_by_mouse_says_what_is_lost(serve):
    from timed import Client

    daemon = serve("-d", "d=lossy:ram,size=1M", "--api", "tcp:127.0.0.1:0")
    page = re.search(r"^page  (http\S+)$", eventually(lambda: "#token" in daemon.output() and daemon.output()), re.M)
    client = Client(daemon).handle
    client.pwrite(b"1" * 4096, 0)
    client.flush()
    client.pwrite(b"2" * 4096, 4096)
    client.pwrite(b"3" * 8192, 8192)
    look("crashes", page.group(1))
    assert Client(daemon).handle.pread(16384, 0) == b"1" * 4096 + bytes(12288)


@in_chromium
def test_a_dropped_write_marks_its_disk(serve):
    from timed import Client

    daemon = start(serve, "--api", "tcp:127.0.0.1:0")
    looking = subprocess.Popen(
        ["node", "tests/look.mjs", "damages", daemon.page],
        cwd=WEB,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert looking.stdout.readline() == "armed\n", looking.stderr.read()
        client = Client(daemon).handle
        client.pwrite(b"1" * 4096, 8192)
        _, complaints = looking.communicate(timeout=60)
        assert looking.returncode == 0, complaints
        assert client.pread(4096, 8192) == bytes(4096)
    finally:
        looking.kill()


@in_chromium
def test_the_form_arms_every_effect(serve):
    daemon = serve("-d", "d=lossy:ram,size=64M", "--api", "tcp:127.0.0.1:0")
    look("offers", eventually(lambda: re.search(r"^page  (http\S+#token=\S+)$", daemon.output(), re.M)).group(1))


@in_chromium
def test_figures_equal_the_command_lines(serve):
    daemon = start(serve, "-r", "d -D 3ms~2ms", "--api", "tcp:127.0.0.1:0")
    run(BINARY, "load", daemon.uri("d"), "--rate", "400", "--depth", "8", "--write", "30%", "--time", "2s")
    api = re.search(r"^API  (\S+)$", daemon.output(), re.M).group(1)
    told = json.loads(run(BINARY, "stat", "--api", api, "disk.latency[op]", "--last", "4m", "--json").stdout)
    shown = json.loads(look("figures", daemon.page, "disk.latency[op]", str(told["count"])))
    numbers = {name: str(told["numbers"][f"{name}_ns"]) for name in ("p50", "p90", "p99", "max")}
    assert shown == {"count": told["count"], **numbers}


def test_the_page_is_small():
    files = [path.read_bytes() for path in (WEB / "dist").iterdir()]
    assert sum(len(gzip.compress(data, 9)) for data in files) < 60_000


def test_without_a_port_the_hint_is_printed(serve):
    daemon = serve("-d", "d=ram,size=64M")
    assert "page  the page needs a port: --api tcp:127.0.0.1:0" in daemon.output()
