"""`dashpot attach --with loop` on a kernel other than this host's, compared with the device mapper's own
delay."""

import json

from harness import guest, prepared  # noqa: F401 (fixtures)


def test_a_file_system_on_a_loop_device(guest):
    said = guest("""
serve -d d=ram,size=64M
node=$(dashpot attach d --with loop)
mount_and_write "$node"
unmount_and_check "$node"
dashpot detach "$node"
[ -z "$(ls /run/dashpot-attached)" ]
stop
echo "$node"
""")
    assert said.strip().startswith("/dev/loop")


def test_the_same_delay_as_the_device_mappers(guest):
    """Compares dashpot's delay with the device mapper's at depth 64. The device mapper may be early, but dashpot must
    never be. Because time is emulated, the test can check no more than that.
    """
    said = guest("""
modprobe brd rd_nr=1 rd_size=65536
modprobe dm-delay
job() {
    fio --name=job --filename="$1" --ioengine=libaio --direct=1 --bs=4k --iodepth=64 --number_ios=256 \
        --rw=randread --output-format=json
}
echo "0 $(cat /sys/block/ram0/size) delay /dev/ram0 0 100" | dmsetup create slow
serve -d d=ram,size=64M
node=$(dashpot attach d --with loop)
dashpot inject d -D 100ms -T read >/dev/null
job /dev/mapper/slow >/run/dm
job "$node" >/run/ours
dashpot detach "$node"
dmsetup remove slow
stop
cat /run/dm
echo ---
cat /run/ours
""")
    theirs, ours = [json.loads(part)["jobs"][0] for part in said.split("---\n")]
    assert theirs["error"] == ours["error"] == 0
    assert ours["read"]["total_ios"] == theirs["read"]["total_ios"] == 256
    assert ours["read"]["lat_ns"]["min"] >= 100e6
