"""Volumes of pools as block devices, which each of the kernel's drivers makes in turn."""

import json
import re

import pytest
from harness import guest, prepared  # noqa: F401 (fixtures)

VOLUMES = """
modprobe ublk_drv

# Writes a lab: a pool of two disks, mirrored or not, with the given volumes in this order.
# usage: lab POLICY STORE DISKS VOLUME…
lab() {
    local policy=$1 store=$2 disks=$3
    shift 3
    for disk in a b; do
        # The file of a disk outlives the daemon, and has the size of the disk.
        case $store in *file:*) truncate -s 128M /tmp/$disk ;; esac
        echo "[disk.$disk]
store = \\"${store/DISK/$disk}\\"
size = \\"128M\\""
    done >/tmp/lab.toml
    echo "[pool.tank]
disks = $disks" >>/tmp/lab.toml
    for volume in "$@"; do
        echo "[volume.\\"tank/$volume\\"]
size = \\"56M\\"
block_size = \\"16K\\"
write = \\"$policy\\""
    done >>/tmp/lab.toml
}

stripe='["a", "b"]'
mirror='[["a", "b"]]'

# Checks that every part of every attachment is gone, for any driver.
all_gone() {
    nothing_left && [ -z "$(ls /dev/dashpot)" ] && [ -z "$(losetup -a)" ] && ! grep -q fuse.dashpot /proc/mounts
}

no_daemon() { ! kill -0 "$daemon" 2>/dev/null; }
"""


@pytest.mark.parametrize("way", ["loop", "nbd", "ublk"])
def test_a_file_system_on_a_volume(guest, way):
    """Mounts a file system under each policy, and checks that the device has the sizes and the flags of the
    volume."""
    said = guest(
        VOLUMES
        + f"way={way}"
        + """
for policy in through none openzfs legacy; do
    lab $policy ram "$mirror" v
    serve /tmp/lab.toml
    node=$(dashpot attach tank/v --with $way)
    [ "$(readlink -f /dev/dashpot/tank/v)" = "$node" ]
    mount_and_write "$node"
    refused dashpot detach tank/v
    sync
    unmount_and_check "$node"
    blkdiscard -z --length 1M "$node"
    dashpot status --json >/run/status
    cd "/sys/block/$(basename "$node")"
    echo "queue: $(cat size ro queue/logical_block_size queue/physical_block_size queue/minimum_io_size \
        queue/discard_granularity queue/rotational queue/fua | tr '\\n' ' ')$(cat queue/write_cache)"
    cd /
    dashpot detach tank/v
    eventually all_gone
    stop
    echo "status: $(tr -d '\\n' </run/status)"
done
whole
""",
        seconds=300,
    )
    queue = {
        "loop": "114688 0 512 512 512 16384 0 0 write back",
        "nbd": "114688 0 512 512 512 512 0 1 write back",
        "ublk": "114688 0 512 16384 16384 16384 0 1 write back",
    }[way]
    assert re.findall("queue: (.*)", said) == [queue] * 4
    statuses = re.findall("status: (.*)", said)
    for policy, status in zip(["through", "none", "openzfs", "legacy"], statuses, strict=True):
        (volume,) = json.loads(status)["volumes"]
        (attachment,) = volume["attachments"]
        assert (volume["write"], attachment["mechanism"]) == (policy, way)
        completed = {op["op"]: op["completed"] for op in volume["ops"]}
        assert all(completed[op] > 0 for op in ("read", "write", "flush", "trim", "zero")), completed
    assert len(re.findall(r"/dev/\w+: it is in use: mounted at /mnt", said)) == 4


@pytest.mark.parametrize("way", ["nbd", "ublk"])
def test_depth_arrives_whole_and_held_io_is_failed_on_request(guest, way):
    said = guest(
        VOLUMES
        + f"way={way}"
        + """
lab openzfs ram "$stripe" v
serve /tmp/lab.toml
node=$(dashpot attach tank/v --with $way)
for disk in a b; do dashpot inject $disk --hang -T read >/dev/null; done
fio --name=job --filename="$node" --ioengine=libaio --direct=1 --bs=4k --iodepth=128 --rw=randread \
    --number_ios=1000 >/dev/null 2>&1 &
job=$!
eventually in_flight 128
dashpot status | grep "128 here, 128 of at most"
refused dashpot detach tank/v
dashpot detach tank/v --fail-held
wait "$job" && exit 1
eventually all_gone
for disk in a b; do dashpot clear $disk --release >/dev/null; done
dashpot attach tank/v --with $way >/dev/null
for disk in a b; do dashpot inject $disk --hang -T write >/dev/null; done
dd if=/dev/zero of=/dev/dashpot/tank/v bs=1M count=4 oflag=direct conv=fsync 2>/dev/null &
writer=$!
eventually in_flight '[1-9][0-9]*'
stop
eventually no_daemon
dashpot detach --stale >/dev/null || true
wait "$writer" && exit 1
eventually all_gone
whole
"""
    )
    assert "open by fio" in said and "--fail-held ends them with EIO" in said and "128 here, 128 of at most" in said


@pytest.mark.parametrize("way", ["loop", "nbd", "ublk"])
@pytest.mark.parametrize("policy", ["through", "openzfs"])
def test_a_file_system_is_whole_after_the_daemon_was_killed(guest, way, policy):
    """The file system must be whole after the daemon was killed. The kill loses each write that no flush has
    covered."""
    guest(
        VOLUMES
        + f"way={way} policy={policy}"
        + """
lab $policy lossy:file:/tmp/DISK "$mirror" v
serve /tmp/lab.toml
dashpot mount tank/v /mnt --mkfs --with $way >/dev/null
dd if=/dev/urandom of=/mnt/file bs=1M count=8 conv=fsync status=none
(cd /mnt && sha256sum file) >/run/sum
sync
load() { while dd if=/dev/urandom of=/mnt/$1 bs=64k count=8 conv=fsync 2>/dev/null; do :; done; }
load one & load two &
eventually test -s /mnt/two
kill -9 "$daemon"
eventually no_daemon
eventually dashpot detach --stale >/dev/null 2>&1
wait
eventually all_gone
serve /tmp/lab.toml
node=$(dashpot attach tank/v --with $way)
e2fsck -p "$node" >/run/fsck 2>&1 || [ $? = 1 ]
e2fsck -fn "$node" >/dev/null 2>&1
mount "$node" /mnt
check_file
umount /mnt
dashpot detach tank/v
eventually all_gone
stop
whole
"""
    )


def test_a_restarted_daemon_takes_over_a_mounted_volume_that_writes_through(guest):
    said = guest(
        VOLUMES
        + """
lab through file:/tmp/DISK "$mirror" u v
serve /tmp/lab.toml
node=$(dashpot attach tank/v --with nbd)
mount_and_write "$node"
dd if=/dev/urandom of=/run/more bs=4k count=256 status=none
dd if=/run/more of=/mnt/more bs=4k oflag=direct status=none &
writer=$!
eventually test -s /mnt/more
kill -9 "$daemon"
eventually no_daemon
refused dashpot detach "$node"
serve /tmp/lab.toml
dashpot status | grep "waits for"
[ "$(dashpot attach tank/v)" = "$node" ]
dashpot status | grep -c waits && exit 1
wait "$writer"
echo 3 >/proc/sys/vm/drop_caches
check_file
cmp /run/more /mnt/more
unmount_and_check "$node"
dashpot detach tank/v
all_gone
stop
dmesg | grep -i "i/o error" && exit 1
echo whole
"""
    )
    assert said.endswith("whole\n"), said
    waits = r"(its I/O fails in \d+ s|its next I/O waits for 20 s, then fails); sudo dashpot attach tank/v"
    assert re.search(rf"/dev/nbd0 waits for volume tank/v: {waits}", said), said
    assert "/dev/nbd0: its daemon is gone: 'dashpot attach tank/v' takes the device over" in said


def test_a_volume_with_other_bytes_is_not_taken_over(guest):
    """A daemon must not take over a device if its volume no longer has the device's bytes. Some of these bytes
    may have ended with the former daemon, or the lab now puts the volume at another place or on other files."""
    said = guest(
        VOLUMES
        + """
again() {
    kill -9 "$daemon"
    eventually no_daemon
    serve /tmp/lab.toml
    dashpot attach tank/v 2>&1 && exit 1
    kill "$user"
    dashpot detach --stale
    eventually all_gone
    node=$(dashpot attach tank/v --with nbd)
    dashpot detach tank/v
    stop
}
begin() {
    lab "$@"
    serve /tmp/lab.toml
    node=$(dashpot attach tank/v --with nbd)
    sleep 1000 <"$node" &
    user=$!
}
for policy in none openzfs legacy; do
    begin $policy file:/tmp/DISK "$mirror" u v
    again
done
begin through ram "$stripe" u v
again
begin through lossy:file:/tmp/DISK "$stripe" u v
again
begin through file:/tmp/DISK "$stripe" u v
lab through file:/tmp/DISK "$stripe" v u
again
begin through file:/tmp/DISK "$stripe" u v
mv /tmp/a /tmp/old
lab through file:/tmp/DISK "$stripe" u v
again
begin through file:/tmp/DISK "$stripe" u v
sed -i 's/size = "56M"/size = "48M"/' /tmp/lab.toml
again
echo ended
"""
    )
    assert said.endswith("ended\n"), said
    lost = (
        'because some of its bytes may have ended with that daemon: only a volume with write = "through" and all disks'
        " on file or dev stores keeps them"
    )
    assert said.count("/dev/nbd0 was volume 'tank/v' of a daemon that is gone") == 8, said
    assert said.count(lost) == 5, said
    assert said.count("because its blocks are at another place, or its disks have other stores now") == 3, said
