"""Uses the generated Python client; prints the answers as JSON."""

import json
import os

from client import AuthenticatedClient
from client.api.daemon import get_clock, list_exports
from client.api.disks import get_disk, get_disk_latency
from client.api.rules import clear_rules, inject, list_rules
from client.models import Inject

api = AuthenticatedClient(base_url=os.environ["API"], token=os.environ["TOKEN"])
inject.sync("d", client=api, body=Inject(rule="-D 10ms:1 -T read", name="slow"))
(read,) = [op for op in get_disk_latency.sync("d", client=api).ops if op.op == "read"]
clock = get_clock.sync(client=api)
print(
    json.dumps(
        {
            "exports": [export.name for export in list_exports.sync(client=api)],
            "refused": get_disk.sync("nothing", client=api).error,
            "rules": [rule.rule for rule in list_rules.sync(client=api)],
            "now_ns": clock.now_ns,
            "started_ns": clock.started_ns,
            "reads": read.disk.to_dict(),
        }
    )
)
clear_rules.sync(client=api)
assert list_rules.sync(client=api) == []
