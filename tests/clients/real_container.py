"""Uses dashpot.testcontainers with the real library and a real container engine, at $DOCKER_HOST. Prints the outcome:
real_container.py IMAGE PROGRAM SCENARIO. IMAGE has a shell, and an entry point that runs the shell.
"""

import json
import sys

import dashpot
from dashpot.testcontainers import slow
from testcontainers.core.container import DockerContainer

IMAGE, PROGRAM, SCENARIO = sys.argv[1:]
WORKS = {
    "slow": "dd if=/dev/zero of=/data/file bs=8k count=1 conv=fsync",
    "idle": "true",
}


def main():
    command = [f"{WORKS[SCENARIO]}; echo done; trap 'exit 0' TERM; while :; do sleep 0.1; done"]
    container = DockerContainer(IMAGE).with_command(command).with_kwargs(network_mode="none")
    made = slow(container, "db=path:/data", "db -D 20ms -T sync", program=PROGRAM)
    try:
        with made as started:
            while b"done" not in started.get_wrapped_container().logs():
                started.get_wrapped_container().reload()
                assert started.get_wrapped_container().status == "running", started.get_logs()
        print(json.dumps({"rules": made.rules()}))
    except dashpot.NothingInjected as error:
        print(json.dumps({"error": type(error).__name__, "said": str(error)}))


main()
