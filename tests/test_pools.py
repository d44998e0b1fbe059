"""The pools and volumes as a daemon shows them, and tunables that a user changes while the daemon runs."""

import http.client
import json
import socket
import subprocess
import time

import pytest
from conftest import HANG_LIMIT, eventually, requires, run
from pools import VOLUME, lab
from timed import nbd

BLOCK = 8192


class Api(http.client.HTTPConnection):
    """The daemon's API over its unix socket."""

    def __init__(self, daemon):
        super().__init__("localhost", timeout=HANG_LIMIT)
        self.path = str(daemon.api)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)

    def ask(self, path, method="GET", body=None, status=200):
        text = None if body is None else json.dumps(body)
        self.request(method, path, text, {"content-type": "application/json"})
        answer = self.getresponse()
        told = json.loads(answer.read())
        assert answer.status == status, told
        return told


@pytest.fixture
def pool(serve, directory):
    """A daemon with a mirror of two disks in memory, and a volume of blocks of 8 KiB."""
    return serve(lab(directory, "openzfs", "mirror")[0])


def write(daemon, *options):
    """Writes blocks of the volume with fio, and returns what fio counted."""
    done = run(
        "fio",
        "--name=v",
        "--ioengine=nbd",
        f"--uri={daemon.uri(VOLUME)}",
        "--rw=randwrite",
        f"--bs={BLOCK}",
        "--size=8M",
        "--iodepth=8",
        "--output-format=json",
        f"--aux-path={daemon.directory}",
        *options,
    )
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["write"]


@requires("fio")
def test_operations_are_counted_at_the_volume_in_the_queues_and_at_the_disks(pool):
    writes = write(pool, "--end_fsync=1")["total_ios"]
    (tank,) = Api(pool).ask("/v1/pools")
    assert tank["volumes"] == [VOLUME] and tank["members"] == [["a", "b"]] and tank["throttle"] == "openzfs"
    traffic = tank["traffic"]
    assert (traffic["volumes"]["writes"], traffic["volumes"]["written_bytes"]) == (writes, writes * BLOCK)
    assert tank["admissions"]["assigned"] == writes and tank["dirty_bytes"] == 0
    # A txg, or the flush, writes each block to both sides of the mirror, so the queues and the disks count at most
    # twice the client's bytes.
    assert traffic["queues"]["written_bytes"] == traffic["disks"]["written_bytes"] <= 2 * writes * BLOCK
    assert traffic["disks"]["writes"] <= traffic["queues"]["writes"]
    (volume,) = Api(pool).ask("/v1/volumes")
    (count,) = [op for op in volume["ops"] if op["op"] == "write"]
    assert (count["completed"], count["bytes"], volume["write"]) == (writes, writes * BLOCK, "openzfs")


@requires("fio")
def test_events_and_seconds_of_volumes_have_their_names(pool):
    writes = write(pool)["total_ios"]
    api = Api(pool)
    found = api.ask("/v1/events?after=0&limit=10000")["zios"]
    assert {zio["disk"] for zio in found} >= {VOLUME, "a", "b"}
    of_volume = api.ask(f"/v1/events?after=0&limit=10000&op=write&disk={VOLUME.replace('/', '%2F')}")["zios"]
    assert len(of_volume) == writes and {zio["disk"] for zio in of_volume} == {VOLUME}
    seconds = api.ask("/v1/seconds")
    each = [cell for second in [*seconds["seconds"], seconds["running"]] for cell in second["latencies"]]
    cells = [cell for cell in each if (cell["disk"], cell["op"]) == (VOLUME, "write")]
    assert sum(cell["completed"] for cell in cells) == writes
    assert api.ask("/v1/events?disk=tank%2Fx", status=404)["remedy"] == f"did you mean '{VOLUME}'?"


def test_a_volume_is_the_client_of_its_pools_disks(serve, directory):
    lab = directory / "two.toml"
    lab.write_text(
        '[disk.a]\nstore = "ram"\nsize = "64M"\n[pool.tank]\ndisks = ["a"]\n'
        '[volume."tank/left"]\nsize = "16M"\n[volume."tank/right"]\nsize = "16M"\nwrite = "openzfs"\n'
    )
    daemon = serve(lab)
    daemon.cli("inject", "a", "-D", "1ms", "-T", "write", "--client", "tank/left")
    for volume, writes in (("tank/left", 30), ("tank/right", 50)):
        client = nbd.NBD()
        client.connect_uri(daemon.uri(volume))
        for number in range(writes):
            client.pwrite(b"x" * BLOCK, 2 * number * BLOCK)
        client.flush()
    (rule,) = daemon.json("list")
    events = Api(daemon).ask("/v1/events?after=0&limit=10000&op=write&disk=a")["zios"]
    blocks = {
        name: sum(zio["length_bytes"] for zio in events if zio["client"] == name) // BLOCK
        for name in ("tank/left", "tank/right")
    }
    assert blocks == {"tank/left": 30, "tank/right": 50}
    assert rule["held"] == sum(zio["client"] == "tank/left" for zio in events)


def test_the_io_at_a_pools_disk_is_of_a_volume_or_of_the_pool(serve, directory):
    lab = directory / "lossy.toml"
    lab.write_text(
        '[disk.a]\nstore = "lossy:ram"\nsize = "64M"\n[pool.tank]\ndisks = ["a"]\n'
        '[volume."tank/back"]\nsize = "16M"\nwrite = "openzfs"\n'
        '[volume."tank/through"]\nsize = "16M"\nwrite = "through"\n'
    )
    daemon = serve(lab)
    daemon.cli("set", "tank", "zfs_txg_timeout=1s")
    back, through = nbd.NBD(), nbd.NBD()
    back.connect_uri(daemon.uri("tank/back"))
    through.connect_uri(daemon.uri("tank/through"))
    api = Api(daemon)

    def clients(op):
        return {zio["client"] for zio in api.ask(f"/v1/events?after=0&limit=10000&op={op}&disk=a")["zios"]}

    back.pwrite(b"x" * BLOCK, 0)
    # No client has asked for this flush: it ends the txg.
    eventually(lambda: clients("flush") == {"tank"}, "the txg syncs")
    through.flush()
    assert clients("flush") == {"tank", "tank/through"} and clients("write") == {"tank", "tank/back"}
    began = time.monotonic()
    # This write covers only a part of a block, so the pool reads the rest of the block from the disk.
    through.pwrite(b"y" * 512, 0)
    assert clients("read") == {"tank/through"}
    (lost,) = daemon.json("crash", "tank", "--keep", "none", "--restart")[0]["disks"]
    (write,) = lost["writes"]
    assert write["client"] == "tank/through" and write["age_ns"] <= (time.monotonic() - began) * 1e9

    daemon.cli("inject", "a", "--hang", "-T", "read")
    through = nbd.NBD()
    through.connect_uri(daemon.uri("tank/through"))
    through.aio_pread(nbd.Buffer(512), 0)
    eventually(lambda: any(io["device"] == "a" for io in daemon.json("inflight")["ios"]), "it hangs")
    (io,) = [io for io in daemon.json("inflight")["ios"] if io["device"] == "a"]
    assert io["client"] == "tank/through"
    daemon.cli("clear", "all", "--release")


@requires("fio")
def test_the_wait_for_the_throttle_belongs_to_the_volume_in_every_count(pool):
    """The waits for the throttle in the figures by client and by second must agree with the counters of the data path."""
    pool.cli("set", "tank", "zfs_dirty_data_max=256K", "zfs_delay_min_dirty_percent=0", "zfs_delay_scale=5ms")
    write(pool, "--size=2M")
    path = f"/v1/volumes/{VOLUME.replace('/', '%2F')}/latency"
    api = Api(pool)
    (whole,) = [op for op in api.ask(path)["ops"] if op["op"] == "write"]
    (by_client,) = [op for op in api.ask(f"{path}?by=client")["ops"] if op["op"] == "write"]
    assert whole["disk"]["buckets"] == by_client["disk"]["buckets"]
    assert whole["disk"]["sum_ns"] == by_client["disk"]["sum_ns"]
    zios = api.ask(f"/v1/events?after=0&op=write&disk={VOLUME.replace('/', '%2F')}")["zios"]
    throttled = sum(zio["waits"]["throttle_ns"] for zio in zios)
    assert throttled > int(whole["disk"]["sum_ns"]) / 2


@requires("fio")
def test_a_tunable_takes_effect_while_a_client_writes(pool):
    client = subprocess.Popen(
        [
            "fio",
            "--name=v",
            "--ioengine=nbd",
            f"--uri={pool.uri(VOLUME)}",
            "--rw=randwrite",
            f"--bs={BLOCK}",
            "--size=8M",
            "--time_based",
            "--runtime=100",
            f"--aux-path={pool.directory}",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        waits = lambda: Api(pool).ask("/v1/pools/tank")["admissions"]["dirty_delay"]
        assigned = lambda: Api(pool).ask("/v1/pools/tank")["admissions"]["assigned"]
        eventually(lambda: assigned() > 100, "writes")
        before = pool.cli("get", "tank", "zfs_delay_min_dirty_percent").stdout
        assert "60%" in before
        said = pool.cli("set", "tank", "zfs_delay_min_dirty_percent=0").stdout
        assert said == "zfs_delay_min_dirty_percent: 0% (was 60%)\n"
        now = waits()
        eventually(lambda: waits() > now, "delayed writes")
    finally:
        client.terminate()
        client.wait()


def test_tunables_change_together_or_not_at_all(pool):
    low, high = "zfs_vdev_sync_read_min_active", "zfs_vdev_sync_read_max_active"
    refused = pool.cli("set", "tank", f"{low}=50", "zfs_txg_timeout=9", code=1).stderr
    assert f"{low} would be 50, above {high}, which would be 10: set both at once" in refused
    values = lambda: {one["name"]: one["value"] for one in pool.json("get", "tank")}
    assert values()["zfs_txg_timeout"] == 1
    pool.cli("set", "tank", f"{low}=50", f"{high}=60")
    assert (values()[low], values()[high]) == (50, 60)
    for words, part in [
        (["tnk", "failmode=wait"], "no pool 'tnk': did you mean 'tank'?"),
        (["tank", "failmode=wait", "failmode=continue"], "failmode is given as wait and as continue: give one value"),
        (["tank", "failmode=panic"], "give one of wait, continue"),
        (["tank", "failmod=wait"], "did you mean 'failmode'?"),
        (["tank", "failmode"], "has no value"),
        (["tank", "zfs_delay_scale=2s"], "out of bounds: give 1ns to 1s"),
    ]:
        code = 1 if words[0] == "tnk" else 2
        assert part in pool.cli("set", *words, code=code).stderr


def test_a_disk_of_a_pool_is_no_export_but_takes_rules(pool):
    exports = {export["name"]: export for export in Api(pool).ask("/v1/exports")}
    assert [exports[name]["layer"] for name in ("a", "b", VOLUME)] == ["disk", "disk", "volume"]
    assert exports["a"]["uris"] == [] and exports["a"]["pool"] == "tank"
    assert exports[VOLUME]["uris"] == [pool.uri(VOLUME)]
    pool.cli("inject", "a", "-D", "1ms")
    assert [rule["disk"] for rule in pool.rules().values()] == ["a"]


@requires("fio")
def test_status_shows_a_pool_whose_disk_fails_and_the_remedy(pool):
    pool.cli("inject", "a", "-e", "EIO", "-T", "write")
    write(pool, "--size=64K")
    said = eventually(lambda: "degraded" in (text := pool.cli("status").stdout) and text, "a degraded pool")
    assert "tank: a disk fails writes that clients believe done" in said and "clear the rule" in said
    pool.cli("clear", "all")
    eventually(lambda: "degraded" not in pool.cli("status").stdout, "a pool that is whole")


@requires("fio")
def test_reports_of_the_layer_of_volumes(pool):
    writes = write(pool)["total_ios"]
    columns = pool.cli("heatmap", "--layer", "volume", "--last", "1m", "--json").stdout.splitlines()
    assert sum(json.loads(line)["count"] for line in columns) == writes
    since_start = pool.cli("iostat", "--layer", "volume", "--json").stdout.splitlines()[0]
    assert VOLUME in since_start and '"a"' not in since_start
    for words, part in [
        (["-d", VOLUME], f"'{VOLUME}' is a volume: add --layer volume"),
        (["-d", "a", "--layer", "volume"], "'a' is a disk: name volumes only"),
    ]:
        assert part in pool.cli("iolatency", *words, "1", "1", code=2).stderr


@requires("fio")
def test_zpool_iostat_and_txgs_of_a_daemon(pool):
    write(pool, "--end_fsync=1")
    told = json.loads(pool.cli("zpool-iostat", "--json").stdout)
    (tank,) = told if isinstance(told, list) else told["pools"]
    disks = Api(pool).ask("/v1/pools/tank")["traffic"]["disks"]
    assert (tank["pool"], tank["written_bytes"]) == ("tank", disks["written_bytes"])
    classes = {one["class"]: one for one in tank["classes"]}
    homeward = classes["sync_write"]["total_wait"]["n"] + classes["async_write"]["total_wait"]["n"]
    assert homeward == disks["writes"]
    lines = pool.cli("txgs", "tank").stdout.splitlines()
    assert lines[0].split()[:3] == ["txg", "birth", "state"] and [line.split()[2] for line in lines[1:]][-1] == "O"
    assert "no pool 'tnk': there is tank" in pool.cli("txgs", "tnk", code=1).stderr


@requires("fio")
def test_small_writes_into_large_records_show_their_cost(serve, directory):
    daemon = serve(lab(directory, "through", "stripe", block="128K")[0])
    writes = write(daemon, "--size=1M", "--iodepth=1")["total_ios"]
    ((tank,),) = [json.loads(line) for line in daemon.cli("amplification", "--json").stdout.splitlines()]
    assert (tank["volumes"]["writes"], tank["volumes"]["written_bytes"]) == (writes, writes * BLOCK)
    # Each write reads its record and writes it whole.
    assert (tank["disks"]["writes"], tank["disks"]["written_bytes"]) == (writes, writes * (128 << 10))
    assert tank["amplification"]["written_bytes"] == 16
    assert "For each of their writes the disks did" in daemon.cli("amplification", "tank").stdout


@requires("fio")
def test_the_volume_that_amplifies_is_told_from_the_volume_that_does_not(serve, directory):
    path, _ = lab(directory, "through", "stripe", block="128K", size="32M")
    path.write_text(path.read_text() + '[volume."tank/small"]\nsize = "32M"\nblock_size = "8K"\nwrite = "through"\n')
    daemon = serve(path)
    writes = {
        name: write(daemon, "--size=1M", "--iodepth=1", f"--uri={daemon.uri(name)}")["total_ios"]
        for name in (VOLUME, "tank/small")
    }
    (tank,) = json.loads(daemon.cli("amplification", "--json").stdout)
    large, small = sorted(tank["by_volume"], key=lambda one: one["volume"] != VOLUME)
    assert (large["volume"], small["volume"]) == (VOLUME, "tank/small")
    for one, block in ((large, 128 << 10), (small, BLOCK)):
        count = writes[one["volume"]]
        assert (one["volumes"]["writes"], one["volumes"]["written_bytes"]) == (count, count * BLOCK)
        assert (one["disks"]["writes"], one["disks"]["written_bytes"]) == (count, count * block)
    assert (large["amplification"]["written_bytes"], small["amplification"]["written_bytes"]) == (16, 1)
    assert small["disks"]["reads"] == 0 < large["disks"]["reads"]
    # The volumes' figures add up to the pool's figures.
    for level in ("volumes", "queued", "disks"):
        assert {key: large[level][key] + small[level][key] for key in tank[level]} == tank[level]
    said = daemon.cli("amplification").stdout
    assert "The clients of tank/v only write." in said and "The clients of tank/small" not in said


@requires("fio")
def test_a_check_of_a_volume_is_of_its_clients_io(pool):
    writes = write(pool)["total_ios"]
    holds = pool.cli("check", f"{VOLUME}.write.count == {writes}", f"{VOLUME}.write.p50 > 1ns", f"{VOLUME}.failed == 0")
    assert [line.split()[0] for line in holds.stdout.splitlines()] == ["ok"] * 3
    told = pool.cli("check", f"{VOLUME}.count == {writes + 1}", "--json", code=3)
    assert json.loads(told.stdout)[0]["count"] == writes
    assert f"did you mean '{VOLUME}'?" in pool.cli("check", "tank/w.count > 1", code=2).stderr


@requires("fio")
@requires("curl")
def test_metrics_agree_with_the_clients_count_and_with_the_api(serve, directory):
    path = directory / "metrics.sock"
    daemon = serve(lab(directory, "openzfs", "mirror")[0], "--metrics", f"unix:{path}")
    writes = write(daemon, "--end_fsync=1")["total_ios"]
    daemon.cli("set", "tank", "zfs_dirty_data_max=2M")
    text = run("curl", "-sf", "--unix-socket", path, "http://localhost/metrics").stdout
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    volume = f'volume="{VOLUME}",pool="tank"'
    assert float(samples[f'dashpot_volume_operations_total{{{volume},op="write"}}']) == writes
    assert float(samples[f'dashpot_volume_bytes_total{{{volume},op="write"}}']) == writes * BLOCK
    of_clients = {
        labels: float(n)
        for labels, n in samples.items()
        if labels.startswith("dashpot_volume_client_operations_total") and 'op="write"' in labels
    }
    assert sum(of_clients.values()) == writes and all(f'volume="{VOLUME}",client="uid=' in one for one in of_clients)
    assert float(samples[f'dashpot_volume_events_dropped_total{{volume="{VOLUME}"}}']) == 0
    traffic = Api(daemon).ask("/v1/pools/tank")["traffic"]
    for at in ("volumes", "queues", "disks"):
        labels = f'pool="tank",at="{at}",direction="write"'
        assert float(samples[f"dashpot_pool_operations_total{{{labels}}}"]) == traffic[at]["writes"]
        assert float(samples[f"dashpot_pool_transferred_bytes_total{{{labels}}}"]) == traffic[at]["written_bytes"]
    assert float(samples['dashpot_pool_writes_admitted_total{pool="tank"}']) == writes
    assert float(samples['dashpot_pool_dirty_bytes{pool="tank"}']) == 0
    assert float(samples['dashpot_pool_throttle_limit_bytes{pool="tank"}']) == 2 << 20


def test_the_first_txg_opens_with_the_pool(pool):
    first, *rest = Api(pool).ask("/v1/pools/tank/txgs")
    started = Api(pool).ask("/v1/clock")
    assert [first, *rest][-1]["state"] == "open" and first["birth_ns"] <= started["started_ns"]
    assert first["open_ns"] <= started["now_ns"] - first["birth_ns"]


def test_an_idle_pool_has_a_txg_for_each_timeout(pool):
    pool.cli("set", "tank", "zfs_txg_timeout=1")
    idle = lambda: [txg for txg in Api(pool).ask("/v1/pools/tank/txgs") if txg["state"] == "committed"][-3:]
    eventually(lambda: [txg["open_ns"] for txg in idle()] == [10**9] * 3)
    one, two, three = idle()
    assert (two["txg"], two["birth_ns"]) == (one["txg"] + 1, one["birth_ns"] + 10**9) and three["sync_ns"] == 0
