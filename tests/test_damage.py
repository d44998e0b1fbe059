"""What rules do to the data of a disk: after random I/O from four clients, the bytes of the store are those of a
naive model, and the map of `faults` is exactly the bytes that the model says are wrong.
"""

import os
import random
import time

import pytest
from conftest import eventually
from pools import VOLUME, lab
from timed import Client, nbd

SIZE = 1 << 20
STEPS = 300
RULES = [
    "--drop -f 20%",
    "--torn 512 -f 20%",
    "--torn 4096 --every 3",
    "--corrupt flip -T write -f 20%",
    "--corrupt zero:4k -T write --every 4",
    "--corrupt random -T write -f 20%",
    "--corrupt misdirect -T write --every 5",
]


class Model:
    """The bytes that clients have been told of, those that the store must have, and the places that are wrong."""

    def __init__(self):
        self.told, self.stored = bytearray(SIZE), bytearray(SIZE)
        self.wrong = bytearray(SIZE)

    def payload(self, dice, offset, length):
        """Bytes that differ from all bytes there, so that each lost or changed byte can be seen."""
        span = slice(offset, offset + length)
        pairs = zip(self.told[span], self.stored[span], strict=True)
        return bytearray(dice.choice([x for x in (1, 2, 3, 4) if x not in pair]) for pair in pairs)

    def wrote(self, offset, payload, fault):
        end = offset + len(payload)
        self.told[offset:end] = payload
        self.wrong[offset:end] = bytes(len(payload))
        damaged = None if fault is None else fault["damage"]
        before = self.stored[offset:end]
        if damaged != "misdirect":
            self.stored[offset:end] = payload
        for place in fault["wrong"] if fault else []:
            start, stop = place["start_bytes"], place["end_bytes"]
            self.wrong[start:stop] = b"\1" * (stop - start)
            if damaged in ("drop", "torn"):
                self.stored[start:stop] = before[start - offset : stop - offset]
            elif damaged == "zero":
                self.stored[start:stop] = bytes(stop - start)
        if damaged == "misdirect":
            other = fault["other_bytes"]
            assert other + len(payload) <= offset or end <= other, "the other place is another"
            self.stored[other : other + len(payload)] = payload

    def read_back(self, offset, found, fault):
        """Checks the bytes whose value only the seed tells, and takes them."""
        damaged = None if fault is None else fault["damage"]
        if damaged in ("flip", "random"):
            (place,) = fault["wrong"]
            for at in range(place["start_bytes"], place["end_bytes"]):
                changed = found[at - offset] ^ self.told[at]
                assert changed != 0 and (damaged == "random" or changed.bit_count() == 1)
                self.stored[at] = found[at - offset]


def faults(daemon, disk="d"):
    return daemon.json("faults", disk, "--top", "1000000")


def of_size(store, directory):
    """The words of a store. A file is made for it."""
    if not store.endswith("file"):
        return f"{store},size={SIZE}"
    image = directory / "d.img"
    image.write_bytes(bytes(SIZE))
    return f"{store}:{image}"


def flags(places):
    wrong = bytearray(SIZE)
    for place in places:
        wrong[place["start_bytes"] : place["end_bytes"]] = b"\1" * (place["end_bytes"] - place["start_bytes"])
    return wrong


@pytest.mark.parametrize("store", ["ram", "file", "lossy:ram", "lossy:file"])
def test_the_store_and_the_map_are_those_of_a_model(serve, directory, store):
    seed = int(os.environ.get("DAMAGE_SEED", random.randrange(1 << 32)))
    print(f"DAMAGE_SEED={seed}")
    dice = random.Random(seed)
    daemon = serve("-d", f"d={of_size(store, directory)}")
    for rule in RULES:
        daemon.cli("inject", "d", *rule.split())
    clients = [Client(daemon).handle for _ in range(4)]
    model = Model()
    for step in range(STEPS):
        handle = dice.choice(clients)
        length = dice.choice([1, 512, 700, 4096, 9000, 65536])
        offset = dice.randrange(0, SIZE - length)
        payload = model.payload(dice, offset, length)
        before = faults(daemon)["damaged"]
        handle.pwrite(payload, offset)
        if dice.randrange(10) == 0:
            handle.flush()
        now = faults(daemon)
        fault = now["faults"][-1] if now["damaged"] > before else None
        model.wrote(offset, payload, fault)
        if fault:
            assert (fault["op"], fault["offset_bytes"], fault["length_bytes"]) == ("write", offset, length)
        model.read_back(offset, handle.pread(length, offset), fault)
        assert flags(now["wrong"]) == model.wrong, step
    assert clients[0].pread(SIZE, 0) == model.stored
    now = faults(daemon)
    assert now["wrong_bytes"] == sum(model.wrong) and now["places"] == len(now["wrong"])
    differing = [at for at in range(SIZE) if model.told[at] != model.stored[at]]
    assert all(model.wrong[at] for at in differing)
    kinds = {fault["damage"] for fault in now["faults"]}
    assert kinds == {"drop", "torn", "flip", "zero", "random", "misdirect"}
    rules = daemon.rules().values()
    assert sum(rule["damaged"] for rule in rules) == now["damaged"] == len(now["faults"])
    # A write of everything, which no rule damages, makes everything right.
    daemon.cli("clear", "all")
    clients[0].pwrite(bytearray(SIZE), 0)
    assert faults(daemon)["wrong_bytes"] == 0 and clients[1].pread(SIZE, 0) == bytes(SIZE)


@pytest.mark.parametrize("store", ["ram", "file", "lossy:ram"])
def test_a_damaged_read_is_wrong_in_its_reply_only(serve, directory, store):
    daemon = serve("-d", f"d={of_size(store, directory)}")
    handle = Client(daemon).handle
    data = bytearray(random.randbytes(SIZE))
    handle.pwrite(data, 0)
    for kind in ["flip", "zero:4k", "random", "misdirect"]:
        daemon.cli("inject", "d", "--corrupt", kind, "-T", "read", "--nth", "2", "-D", "0s", code=2)
        daemon.cli("inject", "d", "--corrupt", kind, "-T", "read", "--nth", "2")
        reads = [handle.pread(16384, 8192) for _ in range(3)]
        assert reads[0] == reads[2] == data[8192:24576]
        fault = faults(daemon)["faults"][-1]
        (place,) = fault["wrong"]
        start, end = place["start_bytes"] - 8192, place["end_bytes"] - 8192
        wrong = reads[1]
        assert wrong[:start] == reads[0][:start] and wrong[end:] == reads[0][end:]
        assert wrong[start:end] != reads[0][start:end]
        if kind == "misdirect":
            other = fault["other_bytes"]
            assert wrong == data[other : other + 16384]
        daemon.cli("clear", "all")
    assert faults(daemon)["wrong_bytes"] == 0


def test_a_lie_is_found_out_by_a_power_cut(serve):
    daemon = serve("-d", f"d=lossy:ram,size={SIZE}")
    handle = Client(daemon).handle
    one, two, three = (bytes([byte]) * 4096 for byte in (1, 2, 3))
    handle.pwrite(one, 0)
    handle.flush()
    daemon.cli("inject", "d", "--lie", "--name", "lie")
    handle.pwrite(two, 0)
    handle.flush()
    handle.pwrite(three, 4096, nbd.CMD_FLAG_FUA)
    assert handle.pread(8192, 0) == two + three
    daemon.cli("crash", "d", "--keep", "none")
    assert handle.pread(8192, 0) == one + bytes(4096)
    assert [fault["op"] for fault in faults(daemon)["faults"]] == ["flush", "write"]
    assert faults(daemon)["wrong_bytes"] == 0, "a lie makes no bytes wrong"
    # A flush that is honest covers what a lie was asked to cover.
    handle.pwrite(two, 0)
    handle.flush()
    daemon.cli("clear", "lie")
    handle.flush()
    daemon.cli("crash", "d", "--keep", "none")
    assert handle.pread(4096, 0) == two


def test_a_zeroing_and_a_trim_with_fua_are_no_lies(serve):
    daemon = serve("-d", f"d=lossy:ram,size={SIZE}")
    handle = Client(daemon).handle
    handle.pwrite(b"a" * 16384, 0)
    handle.flush()
    daemon.cli("inject", "d", "--lie")
    handle.zero(4096, 0, nbd.CMD_FLAG_FUA)
    handle.trim(4096, 8192, nbd.CMD_FLAG_FUA)
    kept = bytes(4096) + b"a" * 4096 + bytes(4096) + b"a" * 4096
    assert handle.pread(16384, 0) == kept
    daemon.cli("crash", "d", "--keep", "none")
    assert handle.pread(16384, 0) == kept and faults(daemon)["damaged"] == 0


def test_damage_of_one_side_of_a_mirror_is_on_that_side(serve, directory):
    path, _ = lab(directory, layout="mirror")
    daemon = serve(path)
    handle = Client(daemon, VOLUME).handle
    daemon.cli("inject", "b", "--corrupt", "random", "-T", "write", "--client", VOLUME)
    data = random.randbytes(1 << 20)
    handle.pwrite(data, 0)
    handle.flush()
    assert faults(daemon, "a")["damaged"] == 0
    damaged = faults(daemon, "b")
    assert damaged["damaged"] > 0 and damaged["wrong_bytes"] > 0
    assert "its data was damaged by rules" in daemon.cli("status").stdout


def test_what_a_pool_reads_of_the_wrong_bytes_is_told(serve, directory):
    path, _ = lab(directory, layout="mirror", policy="through")
    daemon = serve(path)
    handle = Client(daemon, VOLUME).handle
    handle.pwrite(b"a" * 8192, 0)
    for disk in ["a", "b"]:
        daemon.cli("inject", disk, "--drop", "-T", "write", "--first", "1")
    handle.pwrite(b"b" * 8192, 0)
    assert faults(daemon, "a")["read_by_pool_bytes"] == 0
    assert handle.pread(8192, 0) == b"a" * 8192
    read = sum(faults(daemon, disk)["read_by_pool_bytes"] for disk in "ab")
    assert read > 0
    said = [" ".join(daemon.cli("faults", disk).stdout.split()) for disk in "ab"]
    assert any("its pool has read 8K wrong bytes" in text for text in said), said


def test_damage_counts_even_if_the_client_goes_away(daemon):
    client = Client(daemon)
    daemon.cli("inject", "d", "--drop", "--name", "lost")
    daemon.cli("inject", "d", "-D", "60s")
    client.write()
    eventually(lambda: faults(daemon)["damaged"] == 1, "a dropped write that hangs")
    assert "rule(lost).damaged" in daemon.cli("check", "rule(lost).damaged == 0", code=3).stdout
    client.close()
    eventually(lambda: daemon.disk()["in_flight"] == 0, "the client's I/O is gone")
    (rule,) = [rule for rule in daemon.rules().values() if rule["name"] == "lost"]
    assert (rule["damaged"], rule["aborted"], rule["now"]) == (1, 0, 0)
    assert "rule 1: damaged: 1; 'dashpot faults d' shows what is wrong now" in daemon.cli("list").stdout


def test_an_error_comes_after_its_delay(daemon):
    handle = Client(daemon).handle
    daemon.cli("inject", "d", "-D", "50ms", "-e", "ENOSPC", "-T", "write", "--first", "1")
    before = time.monotonic()
    with pytest.raises(nbd.Error) as error:
        handle.pwrite(b"1" * 512, 0)
    assert error.value.errno == "ENOSPC" and time.monotonic() - before >= 0.05
    assert handle.pread(512, 0) == bytes(512)
    (rule,) = daemon.rules().values()
    assert (rule["effect"], rule["delay_ns"], rule["failed"]) == ("error", 50_000_000, 1)


def test_what_cannot_be_damaged_is_refused(serve):
    daemon = serve("-d", f"d=ram,size={SIZE}")
    for words, why in [
        (["d", "--lie"], "give the disk a lossy:ram store"),
        (["d", "--drop", "-T", "read"], "--drop is for write,trim,zero only"),
        (["d", "--drop", "--mode", "add"], "cannot be used with"),
        (["d", "--corrupt", "stale"], "flip, zero, random or misdirect"),
    ]:
        refused = daemon.cli("inject", *words, code=None)
        assert refused.returncode in (1, 2) and why in " ".join(refused.stderr.split()), refused.stderr
    assert "no rule has damaged the data of disk d" in daemon.cli("faults", "d").stdout
    daemon.cli("faults", "nosuch", code=1)
