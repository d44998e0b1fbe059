"""The clients of a path disk are the programs that make the calls: rules select them, and reports name them."""

import json
import os
import shutil

from conftest import BINARY
from test_path import path_run, places  # noqa: F401 (a fixture)

# Makes a file, and syncs it from two programs. The sync of `sync` hangs while the last command runs.
SCRIPT = """
echo x >"$WAL/f"
/usr/bin/python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDWR))' "$WAL/f" || exit 9
"$DASHPOT" inject wal --hang -T sync --client 'exe=sync' --name hang >/dev/null
sync "$WAL/f" &
until "$DASHPOT" inflight --json | grep -q '"exe='; do sleep 0.01; done
"$DASHPOT" inflight --json >"$OUT/inflight"
"$DASHPOT" clear hang --release >/dev/null
wait $!
"$DASHPOT" snoop -n 1 --where 'client=exe=sync' --json >"$OUT/snoop" &
while kill -0 $! 2>/dev/null; do sync "$WAL/f"; done
"$DASHPOT" status --json >"$OUT/status"
"""


def test_a_rule_selects_a_program_and_reports_name_it(places, tmp_path):  # noqa: F811
    wal, _ = places
    words = ["env", f"DASHPOT={BINARY}", f"WAL={wal}", f"OUT={tmp_path}", "sh", "-c", SCRIPT]
    path_run(wal, *words, rules=["-e EIO --client exe=postgres"])
    (held,) = json.loads((tmp_path / "inflight").read_text())["ios"]
    assert (held["client"], held["op"]) == ("exe=sync", "fsync")
    assert json.loads((tmp_path / "snoop").read_text())["client"] == "exe=sync"
    (disk,) = json.loads((tmp_path / "status").read_text())["disks"]
    python = os.path.basename(os.path.realpath("/usr/bin/python3"))
    assert [client["name"] for client in disk["clients"]] == [f"exe={python}", "exe=sync"]
    done = path_run(wal, "sync", wal / "f", rules=["-e EIO --client exe=sync"], code=1)
    assert "Input/output error" in done.stderr


def test_programs_beyond_sixty_three_are_others_and_that_is_said(places, tmp_path):  # noqa: F811
    wal, other = places
    (wal / "f").touch()
    shutil.copy(shutil.which("sync"), other / "p")
    for number in range(64):
        os.link(other / "p", other / f"p{number}")
    each = 'for n in $(seq 0 63); do "$0/p$n" "$1" || echo "p$n"; done'
    words = ["sh", "-c", each, other, wal / "f"]
    done = path_run(wal, *words, rules=["-e EIO --client exe=p62", "-e EIO --client other"])
    assert done.stdout.split() == ["p62", "p63"]
    assert done.stderr.count("more than 63 programs use the files") == 1


def test_a_client_that_a_disk_cannot_have_is_refused_with_a_remedy(places):  # noqa: F811
    wal, _ = places
    done = path_run(wal, "true", rules=["-e EIO --client 'uid=0 *'"], code=125)
    assert "write 'exe=postgres'" in done.stderr
