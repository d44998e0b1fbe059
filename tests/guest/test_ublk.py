"""`dashpot attach --with ublk`: the kernel's ublk driver, whose queue the shard serves through a ring."""

import json
import re

from harness import guest, prepared  # noqa: F401 (fixtures)

UBLK = """
modprobe ublk_drv

job() {
    fio --name=job --filename="$node" --ioengine=libaio --direct=1 --bs=4k --rw=randread "$@"
}
"""


def test_a_file_system_by_ublk(guest):
    said = guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot attach d --with ublk)
mount_and_write "$node"
refused dashpot detach "$node"
unmount_and_check "$node"
blkdiscard -z --length 1M "$node"
dashpot status --json >/run/status
dashpot detach "$node"
eventually nothing_left
stop
cat /run/status
"""
    )
    refusal, status = said.split("{", 1)
    (disk,) = json.loads("{" + status)["disks"]
    (attachment,) = disk["attachments"]
    assert attachment["mechanism"] == "ublk" and re.fullmatch(r"/dev/ublkb\d+", attachment["node"])
    assert f"{attachment['node']}: it is in use: mounted at /mnt" in refusal
    completed = {op["op"]: op["completed"] for op in disk["ops"]}
    assert all(completed[op] > 0 for op in ("read", "write", "flush", "trim", "zero")), completed


def test_the_ublk_device_is_what_the_disk_is(guest):
    said = guest(
        UBLK
        + """
serve -d d=ram,size=64M -d big=ram,size=8M,block=4K -d ro=ram,size=1M,ro
for disk in d big ro; do
    node=$(basename "$(dashpot attach "$disk" --with ublk)")
    cd "/sys/block/$node"
    echo "$disk $(cat size ro queue/logical_block_size queue/rotational queue/nr_requests queue/fua) $(cat queue/write_cache)" \
        $(($(cat queue/discard_max_bytes) > 0)) $(($(cat queue/write_zeroes_max_bytes) > 0)) "$(cat queue/scheduler)" | tr '\\n' ' '
    echo
    cd /
done
dd if=/dev/zero of=/dev/$node bs=4k count=1 2>/dev/null && exit 1
dashpot detach all
eventually nothing_left
stop
"""
    )
    assert said.splitlines() == [
        "d 131072 0 512 0 256 1 write back 1 1 [none]  ",
        "big 16384 0 4096 0 256 1 write back 1 1 [none]  ",
        "ro 2048 1 512 0 256 1 write back 0 0 [none]  ",
    ]


def test_depth_arrives_whole_and_none_is_early(guest):
    said = guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot attach d --with ublk)
for depth in 64 128; do
    dashpot inject d --hang -T read --name stuck >/dev/null
    job --iodepth=$depth --number_ios=1000 >/dev/null &
    job=$!
    eventually in_flight $depth
    dashpot clear stuck --release >/dev/null
    wait "$job"
done
dashpot inject d -D 50ms -T read >/dev/null
job --iodepth=128 --number_ios=512 --output-format=json
dashpot detach "$node"
stop
"""
    )
    (job,) = json.loads(said)["jobs"]
    assert job["error"] == 0 and job["read"]["lat_ns"]["min"] >= 50e6


def test_data_is_whole_at_every_size_and_errors_arrive_as_they_are(guest):
    """Writes and reads at every size. Also makes a write that must be durable, and requests that the kernel
    splits because they are too large for the device."""
    said = guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot attach d --with ublk)
fio --name=job --filename="$node" --ioengine=libaio --direct=1 --bsrange=512-4M --rw=randrw --iodepth=16 --size=64M \\
    --io_size=128M --verify=crc32c --verify_fatal=1 --output-format=json >/run/job
dd if=/dev/zero of="$node" bs=4k count=3 oflag=direct,dsync status=none
dashpot status --json | grep -c '"fua"' || true
dashpot inject d -e ENOSPC -T write >/dev/null
refused dd if=/dev/zero of="$node" bs=4k count=1 oflag=direct
dashpot clear all >/dev/null
dashpot inject d -e EIO -T read >/dev/null
refused dd if="$node" of=/dev/null bs=4k count=1 iflag=direct
dashpot detach "$node"
stop
cat /run/job
"""
    )
    errors, job = said.split("{", 1)
    assert "No space left on device" in errors and "Input/output error" in errors
    (job,) = json.loads("{" + job)["jobs"]
    assert job["error"] == 0 and job["write"]["total_ios"] > 0


def test_held_io_is_failed_on_request(guest):
    """`--fail-held` must work with one request in flight, and with as many as fit into the queue."""
    said = guest(
        UBLK
        + """
serve -d d=ram,size=8M
for depth in 1 256; do
    node=$(dashpot attach d --with ublk)
    dashpot inject d --hang -T read >/dev/null
    job --iodepth=$depth --number_ios=1000 >/run/job 2>&1 &
    reader=$!
    eventually in_flight $depth
    refused dashpot detach "$node"
    dashpot detach "$node" --fail-held
    wait "$reader" && exit 1
    grep -o 'error=Input.*' /run/job | head -1
    dashpot clear all >/dev/null
    eventually nothing_left
done
whole
stop
"""
    )
    assert said.count("--fail-held ends them with EIO") == 2 and said.count("Input/output error") == 2, said


def test_a_suspension_of_40_s_is_no_error(guest):
    said = guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot attach d --with ublk)
mkfs.ext4 -q "$node"
mount "$node" /mnt
dashpot suspend d >/dev/null
dd if=/dev/zero of=/mnt/file bs=4k count=64 oflag=direct 2>/run/dd &
writer=$!
sleep 40
dashpot resume d >/dev/null
wait "$writer"
umount /mnt
e2fsck -fn "$node" >/dev/null 2>&1
dashpot detach "$node"
stop
dmesg | grep -i "i/o error" && exit 1
echo whole
"""
    )
    assert said.endswith("whole\n")


def test_the_device_ends_with_its_daemon(guest):
    """The device must end when its daemon is killed, which happens twice: while the device is mounted and has
    I/O in flight, and while the daemon has as many requests as fit into the queue."""
    said = guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot attach d --with ublk)
mount_and_write "$node"
dashpot suspend d --now >/dev/null
dd if=/dev/zero of=/mnt/file bs=4k count=8 conv=notrunc oflag=direct 2>/run/dd &
writer=$!
eventually in_flight '[1-9][0-9]*'
kill -9 "$daemon"
wait "$writer" && exit 1
cat /run/dd
gone() { [ ! -e "$node" ]; }
eventually gone
refused dashpot detach --stale
umount /mnt
dashpot detach --stale
nothing_left
serve -d d=ram,size=64M
dashpot attach d --with ublk
dashpot inject d --hang -T read >/dev/null
job --iodepth=256 --number_ios=1000 >/dev/null 2>&1 &
reader=$!
eventually in_flight 256
kill -9 "$daemon"
wait "$reader" && exit 1
serve -d d=ram,size=64M
dashpot attach d --with ublk
dashpot detach all
eventually nothing_left
whole
stop
echo ended
"""
    )
    assert said.endswith("ended\n"), said
    assert "Input/output error" in said and "in use: mounted at /mnt" in said


def test_a_daemon_that_ends_in_order_ends_the_device(guest):
    guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot attach d --with ublk)
dashpot inject d -D 20ms -T read >/dev/null
job --iodepth=64 --time_based --runtime=100 >/dev/null 2>&1 &
reader=$!
eventually in_flight 64
stop
wait "$reader" && exit 1
gone() { [ ! -e "$node" ]; }
eventually gone
dashpot detach --stale
nothing_left
whole
"""
    )


def test_dashpots_own_mount_ends_with_the_device(guest):
    guest(
        UBLK
        + """
serve -d d=ram,size=64M
node=$(dashpot mount d /mnt --mkfs --with ublk)
echo word >/mnt/file
kill -9 "$daemon"
gone() { [ ! -e "$node" ]; }
eventually gone
dashpot detach --stale
nothing_left
grep /mnt /proc/mounts && exit 1
whole
"""
    )


def test_attached_and_detached_200_times_leaves_nothing(guest):
    """Two shells attach and detach at the same time; then ten devices are attached at once. Nothing may be
    left."""
    guest(
        UBLK
        + """
serve $(for i in $(seq 10); do echo "-d d$i=ram,size=1M"; done)
held() { echo $(ls /proc/$daemon/fd | wc -l) $(ls /proc/$daemon/task | wc -l); }
before=$(held)
again_and_again() { for i in $(seq 100); do dashpot detach "$(dashpot attach $1 --with ublk)" || return; done; }
again_and_again d1 &
other=$!
again_and_again d2
wait "$other"
nothing_left
for i in $(seq 10); do dashpot attach d$i --with ublk; done >/run/nodes
[ "$(sort -u /run/nodes | wc -l)" = 10 ]
refused dashpot attach d1 --with ublk | grep already
dashpot detach all
eventually nothing_left
no_more() { [ "$(held)" = "$before" ]; }
eventually no_more
whole
stop
""",
        seconds=600,
    )


def test_a_killed_helper_leaves_nothing(guest):
    """The helper is killed at a different moment each time, and the incomplete device must be removed."""
    said = guest(
        UBLK
        + """
serve -d d=ram,size=8M
no_client() { ! dashpot status --json | grep -q /dev/ublkb; }
for step in /run/dashpot-attached /sys/class/ublk-char/ublkc0 /dev/ublkb0 "/run/dashpot-attached/*/record" \
    "/run/dashpot-attached/*" /sys/class/ublk-char/ublkc0 /dev/ublkb0; do
    dashpot attach d --with ublk >/dev/null 2>&1 &
    helper=$!
    until compgen -G "$step" >/dev/null || ! kill -0 "$helper" 2>/dev/null; do :; done
    kill -9 "$helper" 2>/dev/null || true
    wait "$helper" || true
    echo "$step $(ls /sys/class/ublk-char)"
    dashpot detach d >/dev/null 2>&1 || dashpot detach --stale
    eventually nothing_left
    eventually no_client
done
node=$(dashpot attach d --with ublk)
dd if="$node" of=/dev/null bs=4k count=1 iflag=direct status=none
dashpot detach "$node"
whole
stop
"""
    )
    assert "ublkc0 ublkc0" in said, said


def test_what_was_flushed_survives_a_power_cut(guest):
    """Flushed data must survive a power cut. Between the cut and the detachment, the device fails every
    request."""
    guest(
        UBLK
        + """
serve -d d=lossy:ram,size=8M
node=$(dashpot attach d --with ublk)
dd if=/dev/urandom of=/run/more bs=4k count=256 status=none
dd if=/run/more of="$node" bs=4k oflag=direct conv=fsync status=none
dd if=/dev/zero of="$node" bs=4k count=256 oflag=direct status=none
dashpot crash d --keep none --off >/dev/null
refused dd if="$node" of=/dev/null bs=4k count=1 iflag=direct
refused dd if=/dev/zero of="$node" bs=4k count=1 oflag=direct
dashpot detach "$node"
eventually nothing_left
dashpot crash d --restart >/dev/null
node=$(dashpot attach d --with ublk)
dd if="$node" of=/run/found bs=4k count=256 iflag=direct status=none
cmp /run/more /run/found
dashpot detach "$node"
whole
stop
"""
    )


def test_a_disk_that_holds_reads_can_be_given_up(guest):
    """`attach` waits while the disk holds reads: the daemon has root's rights here, so the kernel reads the
    partition table before it makes the node. The user must be able to interrupt `attach`."""
    said = guest(
        UBLK
        + """
serve -d d=ram,size=8M
dashpot suspend d --now >/dev/null
dashpot attach d --with ublk 2>/run/said &
attach=$!
waits() { grep -q 'waits for its first I/O' /run/said; }
eventually waits
kill -INT "$attach"
wait "$attach" && exit 1
cat /run/said
eventually nothing_left
dashpot attach d --with ublk 2>/run/said &
attach=$!
eventually waits
kill -9 "$attach"
dashpot detach --stale
dashpot resume d >/dev/null
nothing() { dashpot detach --stale; nothing_left; }
eventually nothing
whole
node=$(dashpot attach d --with ublk)
dd if="$node" of=/dev/null bs=4k count=1 iflag=direct status=none
dashpot detach d
stop
"""
    )
    assert "waits for its first I/O, which disk 'd' holds" in said and "nothing is attached" in said


def test_the_daemon_needs_no_privilege(guest):
    said = guest(
        UBLK
        + """
mkdir -m 777 -p /run/me
export DASHPOT_API=unix:/run/me/api.sock
echo "me:x:1000:1000::/:/bin/sh" >/etc/passwd
setpriv --reuid=1000 --regid=1000 --clear-groups dashpot serve -d d=ram,size=64M --api unix:/run/me/api.sock \\
    --nbd unix:/run/me/nbd.sock --ready-file /run/me/ready >/run/log 2>&1 &
daemon=$!
eventually test -e /run/me/ready
dashpot suspend d --now >/dev/null
node=$(dashpot attach d --with ublk)
dashpot resume d >/dev/null
mount_and_write "$node"
unmount_and_check "$node"
dashpot detach "$node"
eventually nothing_left
sysctl -qw kernel.io_uring_disabled=1
refused dashpot attach d --with ublk
eventually nothing_left
stop
"""
    )
    assert "io_uring is forbidden here" in said


def test_serve_attach_by_ublk_becomes_the_user(guest):
    said = guest(
        UBLK
        + """
rmmod nbd
echo "me:x:1000:1000::/:/bin/sh" >/etc/passwd
echo "me:x:1000:" >/etc/group
mkdir -m 777 -p /run/me
export DASHPOT_API=unix:/run/me/api.sock SUDO_UID=1000 SUDO_GID=1000
dashpot run --attach -d d=ram,size=8M -- bash -c 'stat -c "%n %u" $DASHPOT_DEV'
nothing_left
"""
    )
    assert re.search(r"/dev/ublkb0 1000", said), said


def test_what_is_missing_is_said(guest):
    said = guest("""
serve -d d=ram,size=8M
refused dashpot attach d --with ublk
dashpot doctor | grep ublkb
modprobe ublk_drv
dashpot attach d 2>&1
dashpot detach d
rmmod nbd
dashpot attach d 2>&1
dashpot detach d
rmmod ublk_drv
dashpot attach d 2>&1
dashpot detach d
stop
""")
    missing = "this kernel has no ublk driver, or has not loaded it"
    assert f"--with ublk: {missing}: modprobe ublk_drv, as root" in said, said
    assert re.search(r"/dev/nbd0 is d, by nbd \(ublk: works, too", said), said
    assert re.search(r"/dev/ublkb0 is d, by ublk \(nbd: this kernel has no NBD client", said), said
    assert re.search(rf"/dev/loop0 is d, by loop \(nbd: .*; ublk: {missing}", said), said
