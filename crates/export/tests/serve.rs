//! Tests a served disk under load: the data that clients read, the earliest moment of each reply, and the
//! disk's state afterwards.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;

use dashpot_engine::inject::{Effect, GroupId, RuleId, RuleSpec};
use dashpot_engine::{Answer, Command, DiskId, Duration, Op};
use dashpot_export::frontend::nbd::client::{connect, encode};
use dashpot_export::frontend::nbd::wire::RequestHeader;
use dashpot_export::store::OpenDevices;
use dashpot_export::{DeviceId, DiskSnapshot, Drops, EventRecord, Server, ServerConfig, Spin};
use dashpot_load::{LoadConfig, LoadReport, OpReport, Pace, run};
use dashpot_rules::{Address, DiskConfig, StoreConfig};
use tempfile::TempDir;

struct Served {
    directory: TempDir,
    server: Server,
}

fn serve() -> Served {
    let directory = tempfile::tempdir().unwrap();
    let disk = |name: &str| DiskConfig {
        name: name.to_owned(),
        store: StoreConfig::Ram,
        size: Some(64 << 20),
        offset: 0,
        block: 1,
        read_only: false,
        rotational: false,
    };
    let config = ServerConfig {
        shards: 2,
        seed: 1,
        disks: vec![disk("a"), disk("b")],
        pools: Vec::new(),
        volumes: Vec::new(),
        listen: vec![Address::Unix(directory.path().join("nbd.sock"))],
        handed: Vec::new(),
        overcommit: false,
        spin: Spin::Auto,
    };
    let server = Server::start(&config, &OpenDevices::default()).unwrap();
    server.open().unwrap();
    Served { directory, server }
}

impl Served {
    fn address(&self) -> Address {
        Address::Unix(PathBuf::from(self.directory.path()).join("nbd.sock"))
    }

    fn load(&self, depth: u32, connections: u32) -> LoadConfig {
        LoadConfig {
            address: self.address(),
            export: "a".to_owned(),
            connections,
            depth,
            block: 4096,
            writes_ppm: 500_000,
            flushes_ppm: 10_000,
            sequential: false,
            pace: Pace::Closed,
            lasts: Some(Duration::from_millis(300)),
            busy: false,
            verify: true,
            seed: 7,
        }
    }

    fn reads(&self, depth: u32) -> LoadConfig {
        LoadConfig {
            writes_ppm: 0,
            flushes_ppm: 0,
            ..self.load(depth, 1)
        }
    }

    fn snapshot(&self) -> DiskSnapshot {
        let (sender, receiver) = mpsc::channel();
        let send = move |snapshot| sender.send(snapshot).unwrap();
        self.server.handle().snapshot(0, usize::MAX, send).unwrap();
        receiver.recv().unwrap()
    }

    fn drops(&self) -> Drops {
        let (sender, receiver) = mpsc::channel();
        let send = move |drops| sender.send(drops).unwrap();
        self.server.handle().flush_events(0, send).unwrap();
        receiver.recv().unwrap()
    }

    fn command(&self, build: impl FnOnce(DiskId) -> Command) -> Answer {
        let (sender, receiver) = mpsc::channel();
        let send = move |answer| sender.send(answer).unwrap();
        self.server.handle().command(0, build, send).unwrap();
        receiver.recv().unwrap().unwrap()
    }

    fn inject(&self, spec: RuleSpec) {
        let rules = vec![(RuleId(1), spec)];
        self.command(|disk| Command::Inject {
            disk,
            group: GroupId(1),
            rules,
        });
    }

    /// Takes snapshots until the disk is in the expected state. If it never is, the test hangs.
    fn until(&self, is_so: impl Fn(&DiskSnapshot) -> bool) -> DiskSnapshot {
        loop {
            let snapshot = self.snapshot();
            if is_so(&snapshot) {
                return snapshot;
            }
            std::thread::yield_now();
        }
    }
}

fn sum(report: &LoadReport, of: impl Fn(&OpReport) -> u64) -> u64 {
    report.ops.iter().map(of).sum()
}

#[test]
fn what_is_read_was_written_over_many_connections() {
    let served = serve();
    let report = run(&served.load(64, 8), |_| false).unwrap();
    assert_eq!(sum(&report, |op| op.errors + op.wrong), 0);
    let stats = served.until(|disk| disk.clients.is_empty()).stats;
    for op in [Op::Read, Op::Write, Op::Flush] {
        let sent = report.op(op).unwrap().latency.len();
        assert!(sent > 0);
        assert_eq!(stats.op(op).completed, sent, "{}", op.name());
    }
    assert_eq!(stats.aborted, 0);
}

#[test]
fn no_reply_comes_before_its_target() {
    let served = serve();
    let delay = Duration::from_millis(5);
    served.inject(RuleSpec::delay(delay, None));
    let report = run(&served.load(32, 2), |_| false).unwrap();
    for op in [Op::Read, Op::Write] {
        let least = report.op(op).unwrap().least.unwrap();
        assert!(least >= delay, "{} after {least}", op.name());
    }
    let rule = &served.until(|disk| disk.in_flight.is_empty()).rules[0];
    assert_eq!(rule.stats.held, rule.stats.matched);
}

#[test]
fn an_open_loop_counts_from_the_intended_start() {
    let served = serve();
    served.inject(RuleSpec::delay(Duration::from_millis(20), Some(1)));
    let pace = Pace::Open {
        rate: 100,
        burst: (1, 1),
    };
    let report = run(
        &LoadConfig {
            pace,
            ..served.reads(1)
        },
        |_| false,
    )
    .unwrap();
    // The load offers twice the rate of one lane, but has only one request in flight. If the report did not
    // count the wait of a request before it is sent, every latency would be 20 ms.
    let latency = &report.op(Op::Read).unwrap().latency;
    assert!(latency.max() > 60_000_000, "{}", latency.max());
}

#[test]
fn a_connection_that_goes_takes_its_zios_along() {
    let served = serve();
    served.inject(RuleSpec::new(Effect::Hang));
    let mut socket = UnixStream::from(connect(&served.address(), "a").unwrap().socket);
    for cookie in 0..100 {
        let request = RequestHeader {
            flags: 0,
            command: 0,
            cookie,
            offset: 0,
            length: 4096,
        };
        socket.write_all(&encode(&request)).unwrap();
    }
    served.until(|disk| disk.in_flight.len() == 100);
    drop(socket);
    let disk = served.until(|disk| disk.clients.is_empty() && disk.in_flight.is_empty());
    assert_eq!(disk.stats.aborted, 100);
    assert_eq!(disk.stats.op(Op::Read).completed, 0);
}

/// If no reader takes a shard's events, the shard keeps serving and counts the drops. Its ring holds 65,536
/// records.
#[test]
fn a_shard_whose_events_nobody_takes_goes_on_and_counts_them() {
    let mut served = serve();
    let mut reader = served.server.events().unwrap();
    let enough = 100_000;
    let config = LoadConfig {
        lasts: None,
        verify: false,
        ..served.reads(64)
    };
    let replies = |report: &LoadReport| sum(report, |op| op.latency.len());
    let report = run(&config, |report| replies(report) > enough).unwrap();
    assert_eq!(sum(&report, |op| op.errors), 0);
    let stats = served.until(|disk| disk.clients.is_empty()).stats;
    let finished = stats.op(Op::Read).completed;
    assert!(finished > enough);
    let drops = served.drops();
    let mut told = 0;
    reader.drain(|record| told += u64::from(matches!(record, EventRecord::Zio(_))));
    // One record of the ring has the name of the client.
    assert_eq!(told, (1 << 16) - 1);
    assert_eq!(drops.total(None), finished - told);
    assert_eq!(drops.total(Some(DeviceId(0))), drops.total(None));
    let by_second: u64 = drops
        .seconds(Some(DeviceId(0)))
        .map(|(_, dropped)| dropped)
        .sum();
    assert_eq!(by_second, drops.total(None));
    // Now that the ring has room again, the shard must drop no more events.
    run(&served.reads(1), |report| replies(report) > 0).unwrap();
    assert_eq!(served.drops(), drops);
    assert!(reader.drain(|_| ()));
}

#[test]
fn a_shutdown_fails_what_is_held_and_removes_the_sockets() {
    let served = serve();
    served.inject(RuleSpec::new(Effect::Hang));
    let config = LoadConfig {
        lasts: None,
        ..served.reads(10)
    };
    let loader = std::thread::spawn(move || run(&config, |report| sum(report, |op| op.errors) > 0));
    served.until(|disk| disk.in_flight.len() == 10);
    served.server.shutdown(Duration::from_millis(1)).unwrap();
    assert_eq!(
        std::fs::read_dir(served.directory.path()).unwrap().count(),
        0
    );
    let report = loader.join().unwrap().unwrap();
    assert_eq!(sum(&report, |op| op.errors), 10);
}

#[test]
fn a_probe_looks_while_there_are_clients_and_counts_nowhere() {
    let served = serve();
    let handle = served.server.handle();
    served.snapshot();
    assert_eq!(handle.probe(0), []);
    let mut reads = 0;
    while handle.probe(0).is_empty() {
        let report = run(&served.reads(4), |_| false).unwrap();
        reads += sum(&report, |op| op.latency.len());
    }
    assert_eq!(handle.probe(1), []);
    assert_eq!(served.snapshot().stats.op(Op::Read).completed, reads);
    assert_eq!(handle.disks().len(), 2);
}
