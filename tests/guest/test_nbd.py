"""`dashpot attach --with nbd`: the kernel's own NBD client, configured through netlink."""

import json
import re

from harness import guest, prepared  # noqa: F401 (fixtures)


def test_a_file_system_by_the_kernels_nbd_client(guest):
    said = guest("""
serve -d d=ram,size=64M
node=$(dashpot attach d --with nbd)
mount_and_write "$node"
refused dashpot detach "$node"
unmount_and_check "$node"
dashpot status --json >/run/status
dashpot detach "$node"
[ -z "$(ls /run/dashpot-attached)" ]
[ ! -e "/sys/block/$(basename "$node")/pid" ]
stop
cat /run/status
""")
    refusal, status = said.split("{", 1)
    (disk,) = json.loads("{" + status)["disks"]
    (attachment,) = disk["attachments"]
    assert attachment["mechanism"] == "nbd" and re.fullmatch(r"/dev/nbd\d+", attachment["node"])
    assert f"{attachment['node']}: it is in use: mounted at /mnt" in refusal
    completed = {op["op"]: op["completed"] for op in disk["ops"]}
    assert all(completed[op] > 0 for op in ("read", "write", "flush", "trim")), completed


def test_the_nbd_device_is_what_the_disk_is(guest):
    said = guest("""
serve -d d=ram,size=64M -d big=ram,size=8M,block=4K -d ro=ram,size=1M,ro
for disk in d big ro; do
    node=$(basename "$(dashpot attach "$disk" --with nbd)")
    cd "/sys/block/$node"
    echo "$disk $(cat size ro queue/logical_block_size queue/rotational queue/nr_requests queue/fua) $(cat queue/write_cache)" \
        $(($(cat queue/discard_max_bytes) > 0)) $(($(cat queue/write_zeroes_max_bytes) > 0)) "$(cat queue/scheduler)" | tr '\\n' ' '
    echo
    cd /
done
dd if=/dev/zero of=/dev/$node bs=4k count=1 2>/dev/null && exit 1
dashpot detach all
stop
""")
    assert said.splitlines() == [
        "d 131072 0 512 0 128 1 write back 1 1 [none]  ",
        "big 16384 0 4096 0 128 1 write back 1 1 [none]  ",
        "ro 2048 1 512 0 128 1 write back 0 0 [none]  ",
    ]


def test_depth_arrives_whole_and_none_is_early(guest):
    said = guest("""
serve -d d=ram,size=64M
node=$(dashpot attach d --with nbd)
job() {
    fio --name=job --filename="$node" --ioengine=libaio --direct=1 --bs=4k --iodepth=128 --rw=randread "$@"
}
dashpot inject d --hang -T read --name stuck >/dev/null
job --number_ios=1000 >/dev/null &
job=$!
eventually in_flight 128
dashpot clear stuck --release >/dev/null
wait "$job"
dashpot inject d -D 50ms -T read >/dev/null
job --number_ios=512 --output-format=json
dashpot detach "$node"
stop
""")
    (job,) = json.loads(said)["jobs"]
    assert job["error"] == 0 and job["read"]["lat_ns"]["min"] >= 50e6


def test_held_io_is_failed_on_request(guest):
    said = guest("""
serve -d d=ram,size=8M
node=$(dashpot attach d --with nbd)
dashpot inject d --hang -T read >/dev/null
dd if="$node" of=/dev/null bs=4k count=1 iflag=direct 2>/run/dd &
reader=$!
eventually grep -q '[1-9]' "/sys/block/$(basename "$node")/inflight"
refused dashpot detach "$node"
dashpot detach "$node" --fail-held
wait "$reader" && exit 1
cat /run/dd
stop
""")
    assert "--fail-held ends them with EIO" in said and "Input/output error" in said


def test_a_suspension_of_40_s_is_no_error(guest):
    said = guest("""
serve -d d=ram,size=64M
node=$(dashpot attach d --with nbd)
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
""")
    assert said.endswith("whole\n")


def test_attached_and_detached_200_times_leaves_nothing(guest):
    """Two shells attach and detach at the same time; then ten devices are attached at once. After that, the
    daemon must have as many descriptors and threads as before."""
    guest(
        """
serve $(for i in $(seq 10); do echo "-d d$i=ram,size=1M"; done)
held() { echo $(ls /proc/$daemon/fd | wc -l) $(ls /proc/$daemon/task | wc -l); }
before=$(held)
again_and_again() { for i in $(seq 100); do dashpot detach "$(dashpot attach $1 --with nbd)" || return; done; }
again_and_again d1 &
other=$!
again_and_again d2
wait "$other"
nothing_left
for i in $(seq 10); do dashpot attach d$i --with nbd; done >/run/nodes
[ "$(sort -u /run/nodes | wc -l)" = 10 ]
refused dashpot attach d1 --with nbd | grep already
dashpot detach all
nothing_left
no_more() { [ "$(held)" = "$before" ]; }
eventually no_more
whole
stop
""",
        seconds=600,
    )


def test_auto_takes_nbd_before_loop(guest):
    said = guest("""
serve -d d=ram,size=8M
dashpot attach d 2>&1
dashpot doctor | grep -A1 /dev/nbd
dashpot detach all
rmmod nbd
dashpot attach d 2>&1
refused dashpot attach d --with nbd
dashpot detach all
stop
""")
    assert re.search(r"/dev/nbd0 is d, by nbd \(ublk: [^;]*\)", said), said
    assert re.search(r"/dev/loop0 is d, by loop \(nbd: this kernel has no NBD client.*; ublk: ", said), said
    assert "--with nbd: this kernel has no NBD client, or has not loaded it: modprobe nbd, as root" in said


def test_a_restarted_daemon_takes_over_a_mounted_device(guest):
    """A daemon is killed and started again. The mounted file system and its I/O in flight must go on as if
    the disk had only been slow."""
    said = guest("""
truncate -s 64M /tmp/image
serve -d d=file:/tmp/image
node=$(dashpot attach d --with nbd)
mount_and_write "$node"
dd if=/dev/urandom of=/run/more bs=4k count=256 status=none
dd if=/run/more of=/mnt/more bs=4k oflag=direct status=none &
writer=$!
eventually test -s /mnt/more
kill -9 "$daemon"
dd if=/dev/zero of=/mnt/later bs=4k count=1 oflag=direct status=none &
later=$!
eventually grep -q '[1-9]' "/sys/block/$(basename "$node")/inflight"
refused dashpot status
refused dashpot detach "$node"
serve -d d=file:/tmp/image
dashpot status | grep "waits for disk d"
dashpot status --json | grep -A3 '"waiting"'
[ "$(dashpot attach d)" = "$node" ]
dashpot attach d 2>&1 | grep already
dashpot status | grep -c waits && exit 1
wait "$later" "$writer"
cmp /run/more /mnt/more
echo 3 >/proc/sys/vm/drop_caches
check_file
cmp /run/more /mnt/more
unmount_and_check "$node"
dashpot detach "$node"
[ -z "$(ls /run/dashpot-attached)" ]
stop
cat /run/log
dmesg | grep -i "i/o error" && exit 1
echo whole
""")
    assert said.endswith("whole\n"), said
    waits = r"(its I/O fails in \d+ s|its next I/O waits for 20 s, then fails); sudo dashpot attach d"
    assert len(re.findall(rf"/dev/nbd0 waits for disk d: {waits}", said)) == 2, said
    assert "/dev/nbd0: its daemon is gone: 'dashpot attach d' takes the device over" in said


def test_what_was_left_of_the_time_is_told(guest):
    said = guest("""
truncate -s 8M /tmp/image
serve -d d=file:/tmp/image
node=$(dashpot attach d --with nbd)
sleep 1000 <"$node" &
user=$!
kill -9 "$daemon"
serve -d d=file:/tmp/image
dashpot attach d 2>&1
kill -9 "$daemon"
dd if="$node" of=/dev/null bs=4k count=1 skip=64 iflag=direct status=none &
reader=$!
waits() { dmesg | grep -q "Dead connection"; }
eventually waits
serve -d d=file:/tmp/image
dashpot attach d 2>&1
wait "$reader"
kill -9 "$daemon"
dd if="$node" of=/dev/null bs=4k count=1 skip=128 iflag=direct status=none && exit 1
serve -d d=file:/tmp/image
dashpot status | grep waits
dashpot attach d 2>&1
kill "$user"
dashpot detach d
stop
""")
    assert "took over /dev/nbd0: no I/O had waited" in said
    assert re.search(r"took over /dev/nbd0: (1\d|20|\d) s were left", said), said
    assert "/dev/nbd0 waits for disk d: its I/O fails; sudo" in said
    assert "took over /dev/nbd0: its I/O had begun to fail" in said


def test_another_store_is_not_taken_over(guest):
    """A daemon must not take over a device for another store: an empty disk below a mounted file system would
    destroy the file system. The I/O of the device must end with errors, and no process may be left."""
    said = guest("""
again() {
    eventually no_daemon
    serve "$@"
    dashpot attach d 2>&1 && exit 1
    kill -9 "$daemon"
}
no_daemon() { ! kill -0 "$daemon" 2>/dev/null; }
truncate -s 8M /tmp/image
serve -d d=ram,size=64M -d e=file:/tmp/image
node=$(dashpot attach d --with nbd)
other=$(dashpot attach e --with nbd)
mount_and_write "$node"
sleep 1000 <"$other" &
user=$!
dashpot suspend d --now >/dev/null
dd if=/dev/zero of=/mnt/file bs=4k count=8 conv=notrunc oflag=direct 2>/run/dd &
writer=$!
eventually in_flight '[1-9][0-9]*'
kill -9 "$daemon"
again -d d=ram,size=64M
again -d d=null,size=64M
cp /tmp/image /tmp/copy
eventually no_daemon
serve -d e=file:/tmp/copy
dashpot attach e 2>&1 && exit 1
kill -9 "$daemon"
truncate -s 16M /tmp/image
eventually no_daemon
serve -d e=file:/tmp/image
dashpot attach e 2>&1 && exit 1
dashpot attach e --with loop 2>&1
dashpot detach e 2>&1 && exit 1
kill "$user"
dashpot detach --stale 2>&1 && exit 1
wait "$writer" && exit 1
cat /run/dd
umount /mnt
dashpot detach --stale 2>&1
dashpot detach all
[ -z "$(ls /run/dashpot-attached)" ]
stop
ps -o pid,stat,comm | grep ' D ' && exit 1
echo ended
""")
    assert said.endswith("ended\n"), said
    assert said.count("because its bytes ended with that daemon, as the bytes of ram, null and lossy stores do") == 2, (
        said
    )
    assert "/dev/nbd1 was disk 'e' of a daemon that is gone" in said and "because it has another store now" in said
    assert "because its size, its blocks or its access have changed" in said
    assert "Input/output error" in said and "in use: mounted at /mnt" in said


def test_what_was_flushed_survives_a_power_cut(guest):
    guest("""
serve -d d=lossy:ram,size=8M
node=$(dashpot attach d --with nbd)
dd if=/dev/urandom of=/run/more bs=4k count=256 status=none
dd if=/run/more of="$node" bs=4k oflag=direct conv=fsync status=none
dd if=/dev/zero of="$node" bs=4k count=256 oflag=direct status=none
dashpot crash d --keep none --off >/dev/null
dashpot detach "$node" --fail-held
[ -z "$(ls /run/dashpot-attached)" ]
dashpot crash d --restart >/dev/null
node=$(dashpot attach d --with nbd)
dd if="$node" of=/run/found bs=4k count=256 iflag=direct status=none
cmp /run/more /run/found
dashpot detach "$node"
stop
""")
