"""Path disks where Yama restricts ptrace(2), as it does on most hosts. The tests run in a guest, because this host's
kernel may lack Yama."""

from harness import guest, prepared  # noqa: F401 (fixtures)

# An ordinary user's program syncs a file below the directory, and opens the file. A daemon that the program
# has started, and whose parent has ended, does the same.
CASE = """
mkdir -m 777 /run/wal /run/me
export TMPDIR=/run/me
cat >/run/work <<'END'
sync() { dd if=/dev/zero of=/run/wal/f bs=1k count=1 conv=fsync 2>/dev/null; }
daemon() {
    parent=$1
    while read -r _ _ _ now _ <"/proc/$BASHPID/stat" && [ "$now" = "$parent" ]; do :; done
    sync
    : >/run/me/done
}
sync
rm -f /run/me/done
(daemon "$BASHPID" &)
until [ -e /run/me/done ]; do sleep 0.1; done
dashpot list --json | grep -E '"matched"' | tr -dc '0-9\\n'
END
for scope in 0 1 2; do
    echo "$scope" >/proc/sys/kernel/yama/ptrace_scope
    for types in sync open; do
        echo "$scope $types"
        setpriv --reuid=1000 --regid=1000 --clear-groups --bounding-set=-all \\
            dashpot run -d "wal=path:/run/wal,types=$types" -r '-D 1ms' -- bash /run/work 2>&1
    done
done
"""


def test_syncs_are_held_whatever_yama_restricts(guest):  # noqa: F811
    said = guest(CASE)
    lines = said.splitlines()
    held = {line: lines[at + 1 :] for at, line in enumerate(lines) if line[1:] in (" sync", " open")}
    assert [held[f"{scope} sync"][0] for scope in (0, 1, 2)] == ["2", "2", "2"], said
    # Names of files lie in the program's memory. An ancestor of the program may read this memory, unless Yama
    # requires CAP_SYS_PTRACE.
    assert [held[f"{scope} open"][0] for scope in (0, 1)] == ["2", "2"], said
    assert "is not held: its file is not known" in said, said
