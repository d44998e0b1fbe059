"""Kills the daemon, the helper, or both at random moments, while a file system on a device of nbd or ublk is
under load. tests/test_attach_kills.py does the same with loop devices."""

import os
import random

import pytest
from harness import guest, prepared  # noqa: F401 (fixtures)

ROUNDS = int(os.environ.get("KILLS", 2))


@pytest.mark.parametrize("way", ["nbd", "ublk"])
def test_kills_at_random_moments_leave_nothing(guest, way):
    """Kills leave nothing. Each process that waits for I/O must go on even before a command cleans up, because the
    kernel fails its I/O at once or after 25 s.
    """
    seed = int(os.environ.get("SEED", random.randrange(1 << 15)))
    print(f"to reproduce: SEED={seed}")
    said = guest(
        f"RANDOM={seed} way={way} rounds={ROUNDS}"
        + """
modprobe ublk_drv

# Makes direct and buffered writes, with flushes, until they fail.
load() {
    fio --thread --directory=/mnt --size=4M --rw=randwrite --bs=4k --time_based --runtime=1000 \\
        --name=direct --ioengine=libaio --direct=1 --iodepth=16 --fsync=8 --name=buffered --fsync=16 >/dev/null 2>&1
}

# Sleeps, mostly for a short time.
moment() { sleep "0.$(printf %03d $((RANDOM % 32 * (RANDOM % 32))))"; }

rule() {
    local rules=("-D 5ms" "-D 20ms:4 -T write,flush" "--hang -T write" "--hang -T flush")
    [ $((RANDOM % 5)) = 0 ] || dashpot inject d ${rules[RANDOM % 4]} >/dev/null
}

# Sets `helper` to a process that makes the device, or takes the device away from a load.
begin() {
    job=
    dashpot mount d /mnt --mkfs --with $way >/dev/null 2>&1 &
    helper=$!
    [ $((RANDOM % 4)) != 0 ] || return 0
    wait $helper
    load &
    job=$!
    eventually in_flight '[1-9][0-9]*'
    rule
    moment
    local option
    [ $((RANDOM % 2)) = 0 ] || option=--fail-held
    dashpot detach d ${option:-} >/dev/null 2>&1 &
    helper=$!
}

# Whether the load has ended, with all its threads.
job_ended() { [ -z "$job" ] || ! kill -0 $job 2>/dev/null; }

none_guards() { ! grep -q dashpot-guards /proc/[0-9]*/cmdline 2>/dev/null; }

cleaned() { dashpot detach --stale >/dev/null && nothing_left && [ -z "$(grep ' /mnt ' /proc/mounts)" ]; }

round() {
    serve -d d=ram,size=64M
    begin
    moment
    case $1 in
        daemon) kill -9 $daemon ;;
        helper) kill -9 $helper || true; dashpot reset >/dev/null ;;
        both) kill -9 $helper $daemon || true ;;
    esac
    kill -9 $daemon $helper $job || true
    eventually job_ended
    eventually none_waits
    eventually cleaned
    eventually none_guards
    serve -d d=ram,size=64M
    node=$(dashpot attach d --with $way)
    dd if="$node" of=/dev/null bs=4k count=1 iflag=direct status=none
    dashpot detach d
    eventually nothing_left
    stop
}

for ((i = 0; i < rounds; i++)); do
    for victims in daemon helper both; do
        echo "$victims"
        round $victims
    done
done
whole
""",
        seconds=120 + 60 * ROUNDS,
    )
    assert said.count("\n") == 3 * ROUNDS, said
