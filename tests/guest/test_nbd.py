"""`dashpot attach --with nbd`: the kernel's own NBD client, configured through netlink."""

import json
import re

from harness import guest, prepared  # noqa: F401 (fixtures)


def test_a_file_system_by_the_kernels_nbd_client(guest):
    said = guest("""
serve -d d=ram,size=64M
node=$(dashpot attach d --with nbd)
mkfs.ext4 -q "$node"
mount "$node" /mnt
dd if=/dev/urandom of=/mnt/file bs=1M count=16 status=none
before=$(sha256sum /mnt/file)
umount /mnt
mount "$node" /mnt
[ "$before" = "$(sha256sum /mnt/file)" ]
fstrim /mnt
refused dashpot detach "$node"
umount /mnt
e2fsck -fn "$node" >/dev/null 2>&1
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


def test_attached_and_detached_many_times_leaves_nothing(guest):
    guest("""
serve -d d=ram,size=8M
before=$(ls /proc/$daemon/fd | wc -l)
for i in $(seq 20); do dashpot detach "$(dashpot attach d --with nbd)"; done
[ -z "$(ls /run/dashpot-attached)" ]
[ -z "$(ls -d /sys/block/nbd*/pid 2>/dev/null)" ]
no_more() { [ "$(ls /proc/$daemon/fd | wc -l)" -le "$before" ]; }
eventually no_more
stop
""")


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
    assert re.search(r"/dev/loop0 is d, by loop \(ublk: .*; nbd: this kernel has no NBD client", said), said
    assert "--with nbd: this kernel has no NBD client, or has not loaded it: modprobe nbd, as root" in said
