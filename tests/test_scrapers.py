"""Scrapers of the metrics: none can change or harm the daemon, and the listener has the address that the user
gave."""

import asyncio
import http.client
import json
import pathlib
import re
import socket
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import HANG_LIMIT, eventually, run
from scraping import OPEN_METRICS, scrape, scraped, url_of  # noqa: F401 (a fixture)
from timed import Client


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/v1/status", 404),
        ("GET", "/healthz", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/metrics", 405),
        ("PUT", "/metrics", 405),
        ("POST", "/v1/reset", 404),
        ("HEAD", "/metrics", 200),
    ],
)
def test_it_can_only_be_read(scraped, method, path, status):
    address = urllib.parse.urlsplit(url_of(scraped)).netloc
    connection = http.client.HTTPConnection(address, timeout=HANG_LIMIT)
    connection.request(method, path, body=b"{}" if method in ("POST", "PUT") else None)
    assert connection.getresponse().status == status


@pytest.mark.parametrize(
    "host, status",
    [
        ("evil.example", 403),
        ("evil.example:80", 403),
        ("localhost", 200),
        ("192.0.2.7:9464", 200),
        ("lab", 200),
    ],
)
def test_pages_of_other_sites_cannot_read_it(serve, host, status):
    daemon = serve("-d", "d=null,size=1M", "--metrics", "tcp:127.0.0.1:0", "--allow-host", "lab")
    request = urllib.request.Request(url_of(daemon), headers={"Host": host})
    try:
        assert urllib.request.urlopen(request, timeout=HANG_LIMIT).status == status
    except urllib.error.HTTPError as refused:
        assert refused.code == status and "--allow-host evil.example" in refused.read().decode()


def connect(daemon):
    address = urllib.parse.urlsplit(url_of(daemon))
    return socket.create_connection((address.hostname, address.port), timeout=HANG_LIMIT)


def test_a_thousand_scrapes_at_once_are_all_answered(scraped):
    address = urllib.parse.urlsplit(url_of(scraped))

    async def one():
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {OPEN_METRICS}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    async def all_of_them():
        return await asyncio.gather(*(one() for _ in range(1_000)))

    peak = memory(scraped, "VmHWM")
    answers = asyncio.run(asyncio.wait_for(all_of_them(), HANG_LIMIT))
    assert all(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"# EOF\n") for answer in answers)
    # If each of the 1,000 scrapers had its own copy of the text, memory would grow by twice this bound.
    assert memory(scraped, "VmHWM") - peak < 500 * len(answers[0]) / 1024
    open_files = pathlib.Path(f"/proc/{scraped.pid}/fd")
    eventually(lambda: len(list(open_files.iterdir())) < 100, "the connections are closed")


def memory(daemon, what):
    """A figure of the daemon's memory in /proc/PID/status, such as VmRSS, in KiB."""
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE).group(1))


def test_scrapers_that_do_not_read_or_speak_keep_nobody_out(scraped):
    silent = [connect(scraped) for _ in range(100)]
    for one in silent[50:]:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    halves = connect(scraped)
    halves.sendall(b"GET /met")
    noise = connect(scraped)
    noise.sendall(bytes(range(256)) * 64)
    assert scrape(scraped)[1].endswith("# EOF\n")
    client = Client(scraped)
    client.many(10, 2)
    for one in [*silent, halves, noise]:
        one.close()


def test_a_socket_that_a_killed_daemon_left_is_replaced(serve, directory):
    path = directory / "metrics.sock"
    daemon = serve("-d", "d=ram,size=64M", "--metrics", f"unix:{path}")
    assert json.loads(daemon.ready.read_text())["metrics"] == f"unix:{path}"
    refused = daemon.cli(
        "serve", "-d", "e=ram,size=64M", "--nbd", "unix:-", "--api", "unix:-", "--metrics", f"unix:{path}", code=1
    )
    assert "listens there" in refused.stderr and "--metrics unix:PATH" in refused.stderr
    daemon.abandon()
    assert path.exists()
    again = serve("-d", "d=ram,size=64M", "--metrics", f"unix:{path}")
    text = run("curl", "-sf", "--unix-socket", path, "http://localhost/metrics").stdout
    assert 'dashpot_disk_failed{disk="d"} 0' in text
    again.stop()
    assert not path.exists()


def test_an_address_in_use_is_refused(scraped):
    address = urllib.parse.urlsplit(url_of(scraped)).netloc
    refused = scraped.cli(
        "serve", "-d", "e=ram,size=64M", "--nbd", "unix:-", "--api", "unix:-", "--metrics", f"tcp:{address}", code=1
    )
    assert f"--metrics tcp:{address}: cannot listen there" in refused.stderr


def test_a_lab_file_names_the_place(serve, directory):
    lab = directory / "lab.toml"
    path = directory / "m.sock"
    lab.write_text(f'[disk.d]\nstore = "ram"\nsize = "64M"\n[serve]\nmetrics = "unix:{path}"\n')
    daemon = serve(str(lab))
    assert f"metrics  unix:{path}" in daemon.output()
    assert "dashpot_build_info" in run("curl", "-sf", "--unix-socket", path, "http://localhost/metrics").stdout
