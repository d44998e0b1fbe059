# Measures the ways to a block device in turns: the cost of an I/O without a delay, and the time at which I/Os with a
# delay of 100 ms end. The script needs root, and runs here or in a guest, where there is only bash.
# usage: bash ways.sh ROUNDS SECONDS WAY…
# The ways are loop, nbd and ublk (dashpot attach), nbdfuse (nbdfuse and a loop device), and two over the kernel's RAM
# disk: `ram` (the disk alone) and dm-delay. With BELOW=brd, the disks of dashpot are RAM disks of the kernel, too.
# The script prints lines of words: "cost WAY IOPS CPU", where CPU is the time of all CPUs for an I/O in microseconds,
# including fio's share; and "delay WAY FIRST MEDIAN", with times in microseconds.
set -eu
rounds=$1 seconds=$2
shift 2
ways=$*
home=$(mktemp -d)
export DASHPOT_API=unix:$home/api.sock
declare -A node
next_ram=0

main() {
    trap leave EXIT
    daemon=
    local way round
    for way in $ways; do is_dashpots "$way" && disk "$way"; done
    dashpot serve "${disks[@]}" --api "$DASHPOT_API" --nbd "unix:$home/nbd.sock" --ready-file "$home/ready" \
        >"$home/log" 2>&1 &
    daemon=$!
    until [ -e "$home/ready" ]; do kill -0 "$daemon"; sleep 0.05; done
    for way in $ways; do "attach_$(kind "$way")" "$way"; done
    for way in $ways; do dd if=/dev/zero of="${node[$way]}" bs=1M count=32 oflag=direct status=none; done
    for ((round = 0; round < rounds; round++)); do
        for way in $ways; do cost "$way"; done
    done
    for way in $ways; do [ "$way" = ram ] || delay "$way"; done
}

is_dashpots() { [ "$1" != ram ] && [ "$1" != dm-delay ]; }

kind() {
    case $1 in loop | nbd | ublk) echo disk ;; *) echo "${1/-/_}" ;; esac
}

ram_disk() {
    ram=/dev/ram$next_ram
    next_ram=$((next_ram + 1))
}

disks=()
disk() {
    local store=ram,size=32M
    if [ "${BELOW:-}" = brd ]; then ram_disk; store=dev:$ram; fi
    disks+=(-d "$1=$store")
}

attach_disk() { node[$1]=$(dashpot attach "$1" --with "$1" 2>"$home/said") || { cat "$home/said" >&2; return 1; }; }

attach_nbdfuse() {
    touch "$home/file"
    # With fewer connections, nbdfuse's threads wait for each other.
    nbdfuse -C 10 -P "$home/pid" "$home/file" "nbd+unix:///nbdfuse?socket=$home/nbd.sock" >&2 &
    # The loop device takes its size from the kernel, so wait until the kernel has asked nbdfuse for the size.
    until [ -s "$home/pid" ] && [ -s "$home/file" ]; do sleep 0.05; done
    node[$1]=$(losetup --find --show --direct-io=on "$home/file")
}

attach_ram() { ram_disk; node[$1]=$ram; }

attach_dm_delay() {
    ram_disk
    below=$ram
    table 0 | dmsetup create ways
    node[$1]=/dev/mapper/ways
}

table() { echo "0 65536 delay $below 0 $1"; }

job() {
    fio --name=job --filename="$1" --ioengine=libaio --direct=1 --bs=4k --rw=randread --size=32M --minimal --terse-version=3 \
        --randseed=1 "${@:2}"
}

# The number of ticks of 10 ms in which a CPU was busy.
busy() { awk '$1 == "cpu" {print $2 + $3 + $4 + $7 + $8}' /proc/stat; }

cost() {
    local before after
    before=$(busy)
    job "${node[$1]}" --iodepth=32 --time_based --runtime="$seconds" >"$home/job"
    after=$(busy)
    # Field 6 of fio's output is in KiB.
    awk -F ';' -v way="$1" -v ticks=$((after - before)) '{print "cost", way, $8, ticks * 10000 / ($6 / 4)}' "$home/job"
}

delay() {
    case $1 in
        dm-delay) table 100 | dmsetup reload ways; dmsetup suspend ways; dmsetup resume ways ;;
        *) dashpot inject "$1" -D 100ms -T read >/dev/null ;;
    esac
    job "${node[$1]}" --iodepth=64 --number_ios=512 >"$home/job"
    awk -F ';' -v way="$1" '{split($24, median, "="); print "delay", way, $38, median[2]}' "$home/job"
}

leave() {
    status=$?
    [ $status = 0 ] || cat "$home/log" >&2
    [ -z "${node[dm-delay]:-}" ] || dmsetup remove ways
    if [ -n "${node[nbdfuse]:-}" ]; then losetup --detach "${node[nbdfuse]}"; fi
    if [ -s "$home/pid" ]; then
        until umount "$home/file" 2>/dev/null; do sleep 0.1; done
    fi
    dashpot detach all >/dev/null 2>&1 || true
    [ -z "$daemon" ] || { kill "$daemon"; wait "$daemon" || true; }
    rm -rf "$home"
    exit $status
}

main
