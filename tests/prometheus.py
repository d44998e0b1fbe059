"""A real Prometheus for tests, and the queries of the dashboard."""

import json
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import HANG_LIMIT, ROOT, eventually

MONITORING = ROOT / "monitoring"


class Prometheus:
    """A server with a directory of its own, which scrapes every second."""

    def __init__(self, directory, targets):
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        config = directory / "prometheus.yml"
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(MONITORING / "alerts.yml")],
                    "scrape_configs": [{"job_name": "dashpot", "static_configs": [{"targets": targets}]}],
                }
            )
        )
        self.log = open(directory / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address={self.address}",
                "--log.level=warn",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        eventually(lambda: self.is_ready(), "Prometheus is ready")

    def is_ready(self):
        assert self.process.poll() is None, (self.directory / "prometheus.log").read_text()
        try:
            return urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=HANG_LIMIT).status == 200
        except OSError:
            return False

    def get(self, path, **options):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(options)}"
        try:
            with urllib.request.urlopen(url, timeout=HANG_LIMIT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{options}: {error.read().decode()}") from error

    def query(self, expression):
        """The present values of an expression, by their labels."""
        found = self.get("query", query=expression)["result"]
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in found}

    def number(self, expression):
        """The only value of an expression, or None."""
        values = list(self.query(expression).values())
        assert len(values) <= 1, (expression, values)
        return values[0] if values else None

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture
def prometheus(directory):
    servers = []

    def start(*targets):
        home = directory / "prometheus"
        home.mkdir()
        servers.append(Prometheus(home, targets))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def dashboard():
    """The title and the expression of each query of the dashboard, with its variables filled in."""
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == "${DS}"
            expression = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], re.sub(r"\$(instance|disk|device)\b", ".*", expression)
