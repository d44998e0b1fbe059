"""A daemon behind a block device protects itself against a shortage of memory. The tests need all of root's rights,
which a container lacks."""

import json

from harness import guest, prepared  # noqa: F401 (fixtures)

# A user with an additional group, and the flags that mark a thread as an I/O flusher: PF_MEMALLOC_NOIO and
# PF_LOCAL_THROTTLE.
USER = """
echo "me:x:1000:1000::/:/bin/sh" >/etc/passwd
printf 'me:x:1000:\\nothers:x:1001:me\\n' >/etc/group
mkdir -m 777 -p /run/me
export DASHPOT_API=unix:/run/me/api.sock SUDO_UID=1000 SUDO_GID=1000
marked() {
    for thread in /proc/$1/task/*; do
        flags=$(sed 's/.*) //' "$thread/stat" | cut -d' ' -f7)
        echo "$(cat "$thread/comm") $(((flags & 0x180000) == 0x180000))"
    done
}
"""


def test_serve_attach_locks_marks_and_becomes_the_user(guest):
    said = guest(
        USER
        + """
dashpot serve --attach -d d=ram,size=8M --api unix:/run/me/api.sock --nbd unix:/run/me/nbd.sock \\
    --ready-file /run/me/ready >/run/log 2>&1 &
daemon=$!
eventually test -e /run/me/ready
grep -E '^(Uid|Gid|Groups|CapEff|CapPrm):' "/proc/$daemon/status" | tr -s '\\t' ' '
dashpot status | grep behind
marked "$daemon" | grep -v ' 1$' || true
stat -c %u /run/me/*.sock /run/me/ready /dev/nbd0 | sort -u
setpriv --reuid=1000 --regid=1000 --clear-groups dd if=/dev/zero of=/dev/nbd0 bs=4k count=1 oflag=direct status=none
stop
[ -z "$(ls /run/dashpot-attached)" ]
stat -c %u /dev/nbd0
cat /run/log
"""
    ).splitlines()
    assert [line.strip() for line in said[:5]] == [
        "Uid: 1000 1000 1000 1000",
        "Gid: 1000 1000 1000 1000",
        "Groups: 1000 1001",
        "CapPrm: 0000000000000000",
        "CapEff: 0000000000000000",
    ]
    assert said[5] == "serves devices of its own host: memory locked: yes, I/O flusher: yes"
    # Every thread is marked. The device belongs to root again.
    assert said[6:8] == ["1000", "0"], said
    assert not any("may wait" in line for line in said)


def test_run_attach_does_not_mark_its_command(guest):
    said = guest(
        USER
        + """
dashpot run --attach -d d=ram,size=8M -- bash -c 'id -u; cut -d" " -f9 /proc/self/stat /proc/$PPID/stat'
[ -z "$(ls /run/dashpot-attached)" ]
"""
    )
    uid, command, daemon = map(int, said.splitlines())
    assert uid == 1000 and command & 0x180000 == 0 and daemon & 0x180000 == 0x180000


def test_the_daemon_of_dmsetup_is_locked_and_marked(guest):
    """Each thread of the daemon of dmsetup must be marked as an I/O flusher, not only the main thread."""
    said = guest(
        USER
        + """
unset SUDO_UID SUDO_GID
dashpot dmsetup create slow --table '0 2048 delay ram:1M 0 0' 2>&1
dashpot status --api unix:/run/dashpot-mapped/slow/api.sock | grep behind
pid=$(dashpot status --api unix:/run/dashpot-mapped/slow/api.sock --json | grep -o '"pid": *[0-9]*' | grep -o '[0-9]*$')
marked "$pid" | grep -v ' 1$' || true
dashpot dmsetup remove slow
"""
    )
    assert said == "serves devices of its own host: memory locked: yes, I/O flusher: yes\n"


def test_a_running_daemon_is_locked_when_it_is_attached(guest):
    """`attach` must raise the limit of locked memory of a running daemon, and the daemon must then lock its memory.
    `attach` cannot mark the daemon's threads as I/O flushers, because a thread can mark only itself."""
    said = guest(
        USER
        + """
ulimit -l 64
setpriv --reuid=1000 --regid=1000 --clear-groups dashpot serve -d d=ram,size=8M --api unix:/run/me/api.sock \\
    --nbd unix:/run/me/nbd.sock --ready-file /run/me/ready >/run/log 2>&1 &
daemon=$!
eventually test -e /run/me/ready
dashpot status --json | grep -A2 '"reclaim"'
dashpot attach d 2>&1
dashpot status --json
dashpot detach d
stop
"""
    )
    before, after = said.split("/dev/nbd0\n", 1) if "\n/dev/nbd0\n" in said else ("", said)
    assert '"locked": false' in before and "start it with CAP_SYS_RESOURCE" in before
    assert "not locked" not in before
    reclaim = json.loads(after)["reclaim"]
    assert reclaim["locked"] and not reclaim["io_flusher"] and len(reclaim["lacks"]) == 1


def test_serve_attach_takes_over_after_it_was_killed(guest):
    said = guest(
        USER
        + """
truncate -s 64M /run/me/image
chown 1000:1000 /run/me/image
again() {
    rm -f /run/me/ready
    dashpot serve --attach -d d=file:/run/me/image --api unix:/run/me/api.sock --nbd unix:/run/me/nbd.sock \\
        --ready-file /run/me/ready 2>&1 &
    daemon=$!
    eventually test -e /run/me/ready
}
again
mount_and_write /dev/nbd0
kill -9 "$daemon"
again
echo 3 >/proc/sys/vm/drop_caches
check_file
stat -c %u /dev/nbd0
unmount_and_check /dev/nbd0
stop
[ -z "$(ls /run/dashpot-attached)" ]
stat -c %u /dev/nbd0
"""
    )
    assert said.splitlines()[-1] == "0" and said.count("d  /dev/nbd0") == 2 and "\n1000\n" in said, said
