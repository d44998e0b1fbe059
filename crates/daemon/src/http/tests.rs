//! The API as a client sees it, over a real socket and real shards.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use dashpot_api::{Client, ClientError};
use dashpot_export::store::OpenDevices;
use dashpot_export::{Server, ServerConfig};
use dashpot_load::{LoadConfig, LoadReport, Pace, run};
use dashpot_rules::{Address, DiskConfig, StoreConfig, parse_injection};
use serde_json::{Value, json};

use super::{Access, HttpListener, Manners, router};
use crate::collector::Collector;
use crate::daemon::Daemon;

/// A daemon with two disks, each on a shard of its own. One disk has a rule of the lab.
struct Lab {
    server: Server,
    dir: tempfile::TempDir,
    client: Client,
    daemon: Arc<Daemon>,
}

fn disk(name: &str) -> DiskConfig {
    DiskConfig {
        name: name.to_owned(),
        store: StoreConfig::Ram,
        size: Some(1 << 20),
        offset: 0,
        block: 512,
        read_only: false,
        rotational: false,
    }
}

impl Lab {
    fn start() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server::start(
            &ServerConfig {
                shards: 2,
                seed: 1,
                disks: vec![disk("c1t1d0"), disk("tank/foo")],
                pools: Vec::new(),
                volumes: Vec::new(),
                listen: vec![Address::Unix(dir.path().join("nbd.sock"))],
                handed: Vec::new(),
                overcommit: false,
                spin: dashpot_export::Spin::Never,
            },
            &OpenDevices::default(),
        )
        .unwrap();
        let uris = vec![vec!["nbd://a".to_owned()], Vec::new()];
        let rules = vec![(1, parse_injection("-D 1ms --name lab").unwrap())];
        let reader = server.events().unwrap();
        let events = Collector::start(reader, 2, 1 << 20).unwrap();
        let daemon = Arc::new(Daemon::new(server.handle(), uris, rules, events));
        let address = Address::Unix(dir.path().join("api.sock"));
        serve(address.clone(), Arc::clone(&daemon), None);
        Lab {
            server,
            dir,
            client: Client::at(address, None).unwrap(),
            daemon,
        }
    }

    fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, ClientError> {
        self.client.send(method, path, &body)
    }

    fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        self.send(method, path, body).unwrap()
    }

    fn refused(&self, method: Method, path: &str, body: Value) -> (StatusCode, String) {
        match self.send(method, path, body) {
            Err(ClientError::Refused { status, error }) => (status, error.error),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Makes the shard of a disk panic, and waits until it is gone. Only a test inside the crate can do this,
    /// because it passes the shard a closure that panics when the shard calls it with the answer.
    fn break_shard(&self, disk: usize) {
        let handle = self.server.handle();
        handle.snapshot(disk, 0, |_| panic!("on purpose")).unwrap();
        while handle.snapshot(disk, 0, drop).is_ok() {
            std::thread::yield_now();
        }
    }

    fn ids(&self) -> Vec<u64> {
        let rules = self.ok(Method::GET, "/v1/rules", json!(null));
        let rules = rules.as_array().unwrap().iter();
        rules.map(|rule| rule["id"].as_u64().unwrap()).collect()
    }
}

/// Answers requests from a thread of its own until the tests end. Returns the address.
fn serve(address: Address, daemon: Arc<Daemon>, access: Option<Arc<Access>>) -> Address {
    let (bound, listens) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            daemon.arm_lab().await.unwrap();
            let listener = HttpListener::bind("--api", &address).await.unwrap();
            bound.send(listener.address().clone()).unwrap();
            let manners = match access {
                Some(_) => Manners::OneRequestUntilKnown,
                None => Manners::Trusted,
            };
            listener.serve(router(daemon, access), manners).await;
        });
    });
    listens.recv().unwrap()
}

#[test]
fn a_rule_is_answered_as_understood_and_is_listed() {
    let lab = Lab::start();
    let request = json!({"rule": "-D 0.01s:1 -D 25ms:2 -T read", "name": "slow"});
    let rules = lab.ok(Method::POST, "/v1/disks/c1t1d0/rules", request);
    assert_eq!(rules[0]["rule"], "-D 10ms:1 -T read");
    assert_eq!(rules[1]["delay_ns"], 25_000_000);
    assert_eq!(
        (&rules[1]["id"], &rules[1]["group"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(rules[1]["name"], "slow");
    let listed = lab.ok(Method::GET, "/v1/rules/slow", json!(null));
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(listed[0]["why_nothing"], "nothing matched yet: -T read");
}

/// The shard of the first disk is gone. The daemon must answer requests about either disk all the same.
#[test]
fn exports_and_the_clock_are_told_whatever_the_shards_do() {
    let lab = Lab::start();
    lab.break_shard(0);
    let exports = lab.ok(Method::GET, "/v1/exports", json!(null));
    assert_eq!(exports[0]["name"], "c1t1d0");
    assert!(
        exports[0]["failed"]
            .as_str()
            .unwrap()
            .contains("has failed")
    );
    assert_eq!(
        (&exports[1]["name"], &exports[1]["failed"]),
        (&json!("tank/foo"), &json!(null))
    );
    assert_eq!(exports[0]["uris"], json!(["nbd://a"]));
    let clock = || lab.ok(Method::GET, "/v1/clock", json!(null));
    let (first, second) = (clock(), clock());
    assert!(first["now_ns"].as_u64() <= second["now_ns"].as_u64());
    assert_eq!(first["started_ns"], second["started_ns"]);
}

#[test]
fn a_name_with_a_slash_is_one_segment() {
    let lab = Lab::start();
    let disk = lab.ok(Method::GET, "/v1/disks/tank%2Ffoo", json!(null));
    assert_eq!(
        (&disk["name"], &disk["rules"]),
        (&json!("tank/foo"), &json!(1))
    );
}

#[test]
fn an_update_keeps_the_id() {
    let lab = Lab::start();
    let updated = lab.ok(Method::PATCH, "/v1/rules/lab", json!({"rule": "-D 7ms:3"}));
    assert_eq!(
        (&updated[0]["id"], &updated[0]["lanes"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(updated[0]["rule"], "-D 7ms:3 -T read,write,zero");
    let again = lab.refused(
        Method::PATCH,
        "/v1/rules/1",
        json!({"rule": "-D 7ms --name x"}),
    );
    assert_eq!(again.0, StatusCode::UNPROCESSABLE_ENTITY);
}

#[test]
fn clearing_takes_a_rule_a_disk_or_all() {
    let lab = Lab::start();
    for _ in 0..3 {
        lab.ok(
            Method::POST,
            "/v1/disks/c1t1d0/rules",
            json!({"rule": "-D 1ms"}),
        );
    }
    assert_eq!(lab.ids(), [1, 2, 3, 4]);
    let cleared = lab.ok(Method::DELETE, "/v1/rules/3?release=true", json!(null));
    assert_eq!(cleared["cleared"], json!([3]));
    lab.ok(Method::DELETE, "/v1/rules?disk=c1t1d0", json!(null));
    assert_eq!(lab.ids(), [1]);
    lab.ok(Method::DELETE, "/v1/rules", json!(null));
    assert_eq!(lab.ids(), [0; 0]);
}

#[test]
fn a_reset_goes_back_to_the_lab() {
    let lab = Lab::start();
    lab.ok(
        Method::POST,
        "/v1/disks/c1t1d0/rules",
        json!({"rule": "--hang"}),
    );
    lab.ok(Method::POST, "/v1/disks/c1t1d0/suspend", json!({}));
    let reset = lab.ok(Method::POST, "/v1/reset", json!(null));
    assert_eq!(reset["cleared"], json!([1, 2]));
    assert_eq!(
        (&reset["armed"][0]["id"], &reset["armed"][0]["name"]),
        (&json!(3), &json!("lab"))
    );
    let disk = lab.ok(Method::GET, "/v1/disks/c1t1d0", json!(null));
    assert_eq!(disk["suspended"], json!(null));
}

#[test]
fn a_shard_that_has_failed_keeps_nobody_from_the_others() {
    let lab = Lab::start();
    let slow = json!({"rule": "-D 1ms"});
    lab.ok(Method::POST, "/v1/disks/tank%2Ffoo/rules", slow.clone());
    lab.ok(Method::POST, "/v1/disks/c1t1d0/rules", slow.clone());
    lab.break_shard(0);
    for (path, disks) in [("/v1/status", "/disks"), ("/v1/disks", "")] {
        let answer = lab.ok(Method::GET, path, json!(null));
        let disks = answer.pointer(disks).unwrap();
        assert_eq!(disks[0]["name"], "c1t1d0");
        assert!(disks[0]["failed"].as_str().unwrap().contains("has failed"));
        assert_eq!(disks[1]["failed"], json!(null));
    }
    assert_eq!(lab.ids(), [1, 2]);
    let dead = lab.refused(Method::GET, "/v1/disks/c1t1d0/rules", json!(null));
    assert_eq!(dead.0, StatusCode::SERVICE_UNAVAILABLE);
    let cleared = lab.ok(Method::DELETE, "/v1/rules", json!(null));
    assert_eq!(cleared["cleared"], json!([1, 2]));
    assert_eq!(cleared["failed"][0]["disk"], "c1t1d0");
    let reset = lab.ok(Method::POST, "/v1/reset", json!(null));
    assert_eq!(reset["armed"][0]["name"], "lab");
    assert_eq!(reset["failed"][0]["disk"], "c1t1d0");
}

/// A long read of the collected events makes the shards drop events, because the collector cannot empty the
/// rings meanwhile.
#[test]
fn events_that_were_dropped_are_shown_wherever_they_are_missing() {
    let lab = Lab::start();
    lab.server.open().unwrap();
    let load = LoadConfig {
        address: Address::Unix(lab.dir.path().join("nbd.sock")),
        export: "c1t1d0".to_owned(),
        connections: 1,
        depth: 64,
        block: 512,
        writes_ppm: 0,
        flushes_ppm: 0,
        sequential: false,
        pace: Pace::Closed,
        lasts: None,
        busy: false,
        verify: false,
        seed: 1,
    };
    let replies = |report: &LoadReport| report.ops.iter().map(|op| op.latency.len()).sum::<u64>();
    let enough = |report: &LoadReport| replies(report) > 80_000;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let look = lab.daemon.events(None, |_| run(&load, enough).unwrap());
    runtime.unwrap().block_on(look);
    let get = |path: &str| lab.ok(Method::GET, path, json!(null));
    let count = |value: &Value| value.as_u64().unwrap();
    let finished = count(&get("/v1/disks/c1t1d0")["ops"][0]["completed"]);
    let by_client = get("/v1/disks/c1t1d0/latency?by=client");
    let dropped = count(&by_client["dropped"]);
    assert!(dropped > 0);
    assert_eq!(count(&by_client["ops"][0]["completed"]) + dropped, finished);
    assert_eq!(count(&get("/v1/disks/tank%2Ffoo/latency")["dropped"]), 0);
    assert_eq!(count(&get("/v1/events")["dropped"]), dropped);
    let seconds = get("/v1/seconds");
    assert_eq!(seconds["more"], false);
    let over = seconds["seconds"].as_array().unwrap().iter();
    let every = over.chain([&seconds["running"]]);
    assert_eq!(
        every.map(|second| count(&second["dropped"])).sum::<u64>(),
        dropped
    );
}

#[test]
fn suspending_an_idle_disk_is_answered_at_once() {
    let lab = Lab::start();
    let suspended = lab.ok(
        Method::POST,
        "/v1/disks/c1t1d0/suspend",
        json!({"for_ns": 60_000_000_000_u64}),
    );
    assert_eq!(suspended["in_flight"], 0);
    let disk = lab.ok(Method::GET, "/v1/disks/c1t1d0", json!(null));
    assert!(disk["suspended"]["remaining_ns"].as_u64().is_some());
    let resumed = lab.ok(Method::POST, "/v1/disks/c1t1d0/resume", json!(null));
    assert_eq!(resumed["waiting"], 0);
}

#[test]
fn what_is_wrong_has_its_status_and_changes_nothing() {
    let lab = Lab::start();
    let rules = "/v1/disks/c1t1d0/rules";
    for (method, path, body, status) in [
        (Method::GET, "/v1/disks/c1t1d1", json!(null), 404),
        (Method::GET, "/v1/nothing", json!(null), 404),
        (Method::GET, "/v1/disks/%ff", json!(null), 400),
        (Method::GET, "/v1/events?limit=10001", json!(null), 422),
        (
            Method::POST,
            "/v1/disks/c1t1d0/suspend",
            json!({"for_ns": 0}),
            422,
        ),
        (
            Method::POST,
            rules,
            json!({"rule": "x".repeat(3 << 20)}),
            413,
        ),
        (Method::GET, "/v1/rules/99", json!(null), 404),
        (Method::GET, "/v1/status?oldest=many", json!(null), 400),
        (Method::PUT, rules, json!(null), 405),
        (Method::POST, rules, json!({"rule": "-D 10:1"}), 422),
        (Method::POST, rules, json!({"rule": "-D 1ms --with 1"}), 409),
        (
            Method::POST,
            rules,
            json!({"rule": "-D 1ms", "name": "lab"}),
            409,
        ),
        (
            Method::POST,
            rules,
            json!({"rule": "-D 1ms --name tank/foo"}),
            409,
        ),
        (Method::POST, rules, json!({"rule": 7}), 400),
        (
            Method::POST,
            rules,
            json!({"rule": "-D 1ms", "nane": "x"}),
            400,
        ),
        (Method::POST, rules, json!("no object"), 400),
        (
            Method::POST,
            "/v1/disks/c1t1d0/suspend",
            json!({"for_ns": -1}),
            400,
        ),
    ] {
        let (refused, error) = lab.refused(method.clone(), path, body.clone());
        assert_eq!(refused.as_u16(), status, "{method} {path} {body}: {error}");
    }
    assert_eq!(lab.ids(), [1]);
}

#[test]
fn over_tcp_the_token_is_asked_for_but_not_by_healthz() {
    use tcp::get;
    assert_eq!(get("/v1/status", "localhost"), 401);
    assert_eq!(get("/v1/status?token=secret", "localhost"), 200);
    assert_eq!(get("/v1/rules?token=secret", "localhost"), 200);
    assert_eq!(get("/v1/disks?token=secret&oldest=3", "localhost"), 200);
    assert_eq!(get("/v1/status?token=secret", "evil.example"), 403);
    assert_eq!(get("/healthz", "evil.example"), 200);
    for file in ["/", "/page.js", "/page.css"] {
        assert_eq!(get(file, "localhost"), 200);
        assert_eq!(get(file, "evil.example"), 403);
    }
}

/// Requests over TCP as curl would send them.
mod tcp {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::{
        Access, Address, Arc, Collector, Daemon, OpenDevices, Server, ServerConfig, disk, serve,
    };

    pub(super) fn get(path: &str, host: &str) -> u16 {
        let mut server = Server::start(
            &ServerConfig {
                shards: 1,
                seed: 1,
                disks: vec![disk("d0")],
                pools: Vec::new(),
                volumes: Vec::new(),
                listen: Vec::new(),
                handed: Vec::new(),
                overcommit: false,
                spin: dashpot_export::Spin::Never,
            },
            &OpenDevices::default(),
        )
        .unwrap();
        let reader = server.events().unwrap();
        let events = Collector::start(reader, 1, 0).unwrap();
        let daemon = Daemon::new(server.handle(), vec![Vec::new()], Vec::new(), events);
        let daemon = Arc::new(daemon);
        let access = Arc::new(Access::new(
            "secret".to_owned(),
            crate::http::Hosts::new(Vec::new()),
        ));
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let Address::Tcp(address) = serve(any, daemon, Some(access)) else {
            panic!("not TCP")
        };
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}
