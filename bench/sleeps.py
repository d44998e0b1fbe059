"""The control: a bare loop of clock_nanosleep. `sleeps.py DELAY_NS SECONDS` prints its overshoot as JSON.

The loop is a process of its own, because timer slack is inherited: a peer that is started afterwards would get it,
too. While the loop runs, another process spins, as the polling client does while a server is measured.
"""

import json
import subprocess
import sys
import time

import process

PR_SET_TIMERSLACK = 29
SPIN = "while True: pass"


def main():
    delay_ns, seconds = int(sys.argv[1]), float(sys.argv[2])
    spinner = process.start([sys.executable, "-c", SPIN])
    # With the default timer slack of 50 us, the result would show the slack and not the machine.
    process.LIBC.prctl(PR_SET_TIMERSLACK, 1)
    try:
        overshoots = sorted(sleep_until(delay_ns, time.monotonic_ns() + int(seconds * 1e9)))
    finally:
        process.stop(spinner)
    at = lambda share: overshoots[int(share * len(overshoots))]
    print(json.dumps({"p50_ns": at(0.5), "p99_ns": at(0.99)}))


def sleep_until(delay_ns, end):
    """Yields the overshoot of each sleep. Since Python 3.11, time.sleep is clock_nanosleep to an absolute time."""
    delay, now = delay_ns / 1e9, time.monotonic_ns()
    while now < end:
        time.sleep(delay)
        woken = time.monotonic_ns()
        yield woken - now - delay_ns
        now = time.monotonic_ns()


def control(delay_ns, seconds):
    argv = [sys.executable, __file__, str(delay_ns), str(seconds)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=seconds + 20)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
