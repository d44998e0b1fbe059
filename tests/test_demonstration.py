"""`make run`: Ctrl-C ends the demonstration with 0, and leaves nothing behind."""

import os
import pathlib
import pty
import signal

from conftest import ROOT, eventually


def of_group(session):
    """The processes of a session that have not ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of_session = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of_session) == session and state != "Z":
            found.append(stat.parent.name)
    return found


def read_until(terminal, words):
    """Reads the demonstration's output up to these words."""
    text = b""
    while words not in text:
        part = os.read(terminal, 1 << 16)
        assert part, text.decode()
        text += part
    return text


def drain(terminal):
    """Reads the remaining output, so that no process blocks on a full terminal."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # the other side is closed
        pass


def test_ctrl_c_ends_it_with_0_and_leaves_no_process_and_no_directory(directory):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.environ.update(XDG_RUNTIME_DIR=str(directory), TMPDIR=str(directory))
        os.execvp("make", ["make", "--no-print-directory", "run"])
    try:
        # A line of the table shows that the daemon, both loads and the report are at work.
        read_until(terminal, b"c1t2d0  ")
        assert [path for path in directory.iterdir() if path.name.startswith("dashpot.")]
        assert len(of_group(pid)) >= 5, of_group(pid)
        os.write(terminal, b"\x03")
        drain(terminal)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        eventually(lambda: not of_group(pid), f"no process is left: {of_group(pid)}")
        assert not list(directory.iterdir())
    finally:
        for left in of_group(pid):
            os.kill(int(left), signal.SIGKILL)
        os.close(terminal)
