"""I/Os that have not ended, and the processes that wait for them."""

import json
import subprocess

from conftest import BINARY, eventually, run
from kernel import is_watching, loop_in_memory, loop_that_can_be_frozen, takes_a_kernel
from timed import Client


def test_a_daemons_ios_are_listed_the_oldest_first(daemon):
    daemon.cli("inject", "d", "--hang", "-T", "read")
    client = Client(daemon)
    assert "No I/O in flight." in daemon.cli("inflight").stdout
    requests = [client.read(4096 * at) for at in range(3)]
    eventually(lambda: daemon.disk()["in_flight"] == 3, "all hang")
    told = daemon.json("inflight")
    assert told["older"] is None and told["waiting"] is None
    ages = [io["age_ns"] for io in told["ios"]]
    assert len(ages) == 3 and ages == sorted(ages, reverse=True)
    assert {io["offset_bytes"] for io in told["ios"]} == {0, 4096, 8192}
    assert {(io["device"], io["op"], io["rule"]) for io in told["ios"]} == {("d", "read", 1)}
    text = daemon.cli("inflight").stdout
    assert "rule 1" in text and max(map(len, text.splitlines())) <= 80
    daemon.cli("clear", "all", "--release")
    client.wait(*requests)


def write(loop):
    return subprocess.Popen(
        ["dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=1", "oflag=direct", "status=none"]
    )


@takes_a_kernel
def test_an_io_of_the_kernel_names_its_process(tmp_path):
    with loop_that_can_be_frozen(tmp_path) as (loop, place):
        run("fsfreeze", "-f", place)
        try:
            watch = subprocess.Popen(
                [BINARY, "inflight", "-d", loop.path, "--for", "2s", "--json"], stdout=subprocess.PIPE, text=True
            )
            eventually(lambda: is_watching(watch.pid), "it watches")
            writer = write(loop)
            told = json.loads(watch.communicate()[0])
            [io] = told["ios"]
            assert (io["process"], io["pid"], io["op"], io["length_bytes"]) == ("dd", writer.pid, "write", 4096)
            assert (io["thread"], io["tid"]) == ("dd", writer.pid)
            assert told["older"] == 0
            # The writer's I/O began before this watch, so `inflight` can only count it.
            later = run(BINARY, "inflight", "-d", loop.path, "--for", "200ms", "--json")
            told = json.loads(later.stdout)
            assert told["ios"] == [] and told["older"] == 1
            assert writer.pid in {thread["pid"] for thread in told["waiting"]}
            text = run(BINARY, "inflight", "-d", loop.path, "--for", "200ms").stdout
            assert "1 in flight began before the watch" in text and "dd" in text
        finally:
            run("fsfreeze", "-u", place)
        assert writer.wait() == 0


@takes_a_kernel
def test_a_busy_device_has_no_older_ios():
    with loop_in_memory() as loop:
        readers = [
            subprocess.Popen(["dd", f"if={loop.path}", "of=/dev/null", "bs=4k", "iflag=direct", "status=none"])
            for _ in range(2)
        ]
        told = json.loads(run(BINARY, "inflight", "-d", loop.path, "--for", "500ms", "--json").stdout)
        for reader in readers:
            reader.kill()
            reader.wait()
        assert told["older"] == 0
