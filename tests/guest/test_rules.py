"""File systems on devices whose rules change at random; each of the kernel's drivers makes the devices in
turn."""

import os
import random
import re

import pytest
from harness import guest, prepared  # noqa: F401 (fixtures)


@pytest.mark.parametrize("way", ["nbd", "ublk"])
@pytest.mark.parametrize("fs, check", [("ext4", "e2fsck -fn"), ("xfs", "xfs_repair -n")])
def test_a_file_system_stays_whole_while_rules_change(guest, way, fs, check):
    seed = int(os.environ.get("SEED", random.randrange(1 << 15)))
    print(f"to reproduce: SEED={seed}")
    said = guest(
        f"RANDOM={seed} way={way} fs={fs} check='{check}'"
        + """
# Makes one change at random. The daemon refuses to update or clear a rule that does not exist.
change() {
    local delays=(2ms 1ms:8 lognormal=500us..5ms) ops=(read write flush all)
    local words="-D ${delays[RANDOM % 3]} -T ${ops[RANDOM % 4]}"
    case $((RANDOM % 7)) in
        0) dashpot inject d $words --name r ;;
        1) dashpot update r $words ;;
        2) dashpot clear r ;;
        3) dashpot clear r --release ;;
        4) dashpot suspend d --now ;;
        5) dashpot suspend d --for 50ms ;;
        6) dashpot resume d ;;
    esac >/dev/null 2>&1 || true
}
modprobe ublk_drv
serve -d d=ram,size=400M
dashpot mount d /mnt --fs $fs --mkfs --with $way
fio --name=job --directory=/mnt --size=48M --bs=4k --ioengine=libaio --direct=1 --rw=randwrite --iodepth=32 \
    --verify=crc32c --verify_fatal=1 --fsync=64 >/run/job &
job=$!
changes=0
while kill -0 $job 2>/dev/null; do
    change
    changes=$((changes + 1))
    [ $((changes % 8)) != 0 ] || dashpot reset >/dev/null
done
wait $job || { cat /run/job; exit 1; }
dashpot reset >/dev/null
rm /mnt/job*
fstrim /mnt
dashpot detach d
node=$(dashpot attach d --with $way)
$check "$node" >/run/checked 2>&1 || { cat /run/checked; exit 1; }
dashpot detach "$node"
eventually nothing_left
whole
stop
echo "changes: $changes"
"""
    )
    assert int(re.search(r"changes: (\d+)", said)[1]) >= 8, said
