//! Cuts the power of served lossy disks, alone and below a pool, while rules hold I/Os. The model knows only
//! which requests got a reply.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

use dashpot_engine::inject::{Effect, GroupId, Mode, RuleId, RuleSpec};
use dashpot_engine::pool::{Layout, ThrottleConfig, Tunables, WritePolicy};
use dashpot_engine::{Command, DiskId, Duration, Op, OpSet, Random, Release, Target, Wait};
use dashpot_export::frontend::nbd::client::{connect, encode};
use dashpot_export::frontend::nbd::wire::RequestHeader;
use dashpot_export::store::OpenDevices;
use dashpot_export::{Cut, DiskSnapshot, Keep, Server, ServerConfig, Spin, Then};
use dashpot_rules::{Address, DiskConfig, PoolSpec, StoreConfig, VolumeSpec};
use tempfile::TempDir;

const BLOCK: usize = 8 << 10;
const BLOCKS: usize = 6;
const SIZE: u64 = 1 << 20;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const FUA: u16 = 1;

/// The disks of a server: `d` alone, and `a` and `b` in the pools.
const DISKS: [&str; 3] = ["d", "a", "b"];

struct World {
    directory: TempDir,
    server: Server,
    export: &'static str,
    random: Random,
    rules: u32,
    versions: u8,
    /// For each block, the version that a client was told is durable, and the later ones that were
    /// acknowledged.
    told: Vec<Vec<u8>>,
}

impl World {
    fn new(export: &'static str, write: WritePolicy, seed: u64) -> World {
        let directory = tempfile::tempdir().unwrap();
        let disk = |name: &str| DiskConfig {
            name: name.to_owned(),
            store: StoreConfig::Lossy(Box::new(StoreConfig::Ram)),
            size: Some(SIZE),
            offset: 0,
            block: 1,
            read_only: false,
            rotational: false,
        };
        let config = ServerConfig {
            shards: 1,
            seed: 1,
            disks: DISKS.map(disk).to_vec(),
            pools: vec![PoolSpec {
                bitmap: None,
                name: "tank".to_owned(),
                members: vec![vec![1], vec![2]],
                layout: Layout::Static,
                throttle: ThrottleConfig::OpenZfs,
                tunables: Tunables::new(1 << 30),
            }],
            volumes: vec![VolumeSpec {
                name: "tank/v".to_owned(),
                pool: 0,
                size: SIZE,
                block_size: BLOCK as u32,
                write,
            }],
            listen: vec![Address::Unix(directory.path().join("nbd.sock"))],
            handed: Vec::new(),
            overcommit: false,
            spin: Spin::Never,
        };
        let server = Server::start(&config, &OpenDevices::default()).unwrap();
        server.open().unwrap();
        World {
            directory,
            server,
            export,
            random: Random::new(seed),
            rules: 0,
            versions: 0,
            told: vec![vec![0]; BLOCKS],
        }
    }

    fn is_pool(&self) -> bool {
        self.export != "d"
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    fn client(&self) -> UnixStream {
        let address = Address::Unix(self.directory.path().join("nbd.sock"));
        UnixStream::from(connect(&address, self.export).unwrap().socket)
    }

    /// The disks that do the work.
    fn disks(&self) -> std::ops::Range<usize> {
        if self.is_pool() { 1..3 } else { 0..1 }
    }

    fn command(&self, disk: usize, build: impl FnOnce(DiskId) -> Command) {
        let (sender, receiver) = mpsc::channel();
        let send = move |answer| sender.send(answer).unwrap();
        self.server.handle().command(disk, build, send).unwrap();
        receiver.recv().unwrap().unwrap();
    }

    fn inject(&mut self) {
        let effect = self.draw(2);
        let spec = RuleSpec {
            ops: OpSet::of([Op::Write, Op::Flush][self.draw(2) as usize]),
            mode: [Mode::Floor, Mode::Add][self.draw(2) as usize],
            ..match effect {
                0 => RuleSpec::new(Effect::Hang),
                _ => RuleSpec::delay(Duration::from_secs(3600), None),
            }
        };
        for disk in self.disks() {
            self.rules += 1;
            let (group, rules) = (
                GroupId(self.rules),
                vec![(RuleId(self.rules), spec.clone())],
            );
            self.command(disk, |disk| Command::Inject { disk, group, rules });
        }
    }

    /// How many zios of the disks rules hold.
    fn held(&self) -> usize {
        let count = |disk| {
            let (sender, receiver) = mpsc::channel();
            let send = move |snapshot| sender.send(snapshot).unwrap();
            self.server.handle().snapshot(disk, 9, send).unwrap();
            let snapshot: DiskSnapshot = receiver.recv().unwrap();
            let held = |wait| matches!(wait, Wait::HeldBefore | Wait::Held | Wait::Hung);
            snapshot
                .in_flight
                .iter()
                .filter(|zio| held(zio.wait))
                .count()
        };
        self.disks().map(count).sum()
    }

    /// Sends a random request, and waits until it has a reply or a disk holds something for it. Returns whether
    /// it has a reply.
    fn request(&mut self, client: &mut UnixStream) -> bool {
        let (block, kind) = (self.draw(BLOCKS as u64) as usize, self.draw(4));
        let held = self.held();
        self.versions = self.versions % 250 + 1;
        let version = self.versions;
        let (command, flags) = match kind {
            0 | 1 => (WRITE, 0),
            2 => (WRITE, FUA),
            _ => (FLUSH, 0),
        };
        send(client, command, flags, block, version);
        if !self.await_reply(client, held) {
            return false;
        }
        match (command, flags) {
            (FLUSH, _) => {
                let last = |told: &mut Vec<u8>| drop(told.drain(..told.len() - 1));
                self.told.iter_mut().for_each(last);
            }
            (_, FUA) => self.told[block] = vec![version],
            _ => self.told[block].push(version),
        }
        true
    }

    fn await_reply(&self, client: &mut UnixStream, held: usize) -> bool {
        client.set_nonblocking(true).unwrap();
        let mut reply = [0; 16];
        let is_answered = loop {
            match client.read(&mut reply) {
                Ok(16) => break true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => panic!("{other:?}"),
            }
            if self.held() > held {
                break false;
            }
        };
        client.set_nonblocking(false).unwrap();
        is_answered
    }

    fn cut(&mut self) {
        let keep = [Keep::None, Keep::All, Keep::Random][self.draw(3) as usize];
        let cut = Cut {
            keep,
            tear: None,
            seed: self.draw(1 << 32),
            then: Then::Restart,
        };
        let handle = self.server.handle();
        if self.is_pool() {
            let (sender, receiver) = mpsc::channel();
            handle
                .cut_pool(0, cut, move |loss| sender.send(loss).unwrap())
                .unwrap();
            receiver.recv().unwrap().unwrap();
        } else {
            let (sender, receiver) = mpsc::channel();
            handle
                .cut(0, cut, move |loss| sender.send(loss).unwrap())
                .unwrap();
            receiver.recv().unwrap().unwrap();
        }
        for disk in self.disks() {
            self.command(disk, |disk| Command::Clear {
                target: Target::Disk(disk),
                release: Release::All,
            });
        }
        self.check(keep);
    }

    /// Checks what is left. Below a pool, the clients that count are the pool's: it may have been told more
    /// than its own clients, and it may have flushed by itself.
    fn check(&mut self, keep: Keep) {
        let mut client = self.client();
        for block in 0..BLOCKS {
            send(&mut client, READ, 0, block, 0);
            let mut reply = vec![0; 16 + BLOCK];
            client.read_exact(&mut reply).unwrap();
            let found = reply[16];
            assert!(
                reply[16..].iter().all(|byte| *byte == found),
                "a torn block"
            );
            let told = &self.told[block];
            let is_right = match (keep, self.is_pool()) {
                (Keep::None, false) => found == told[0],
                (Keep::All, false) => Some(&found) == told.last(),
                (Keep::Random, false) | (Keep::None, true) => told.contains(&found),
                (_, true) => true,
            };
            assert!(
                is_right,
                "{}: block {block} is {found}, told {told:?}, {keep:?}",
                self.export
            );
            self.told[block] = vec![found];
        }
        // From here on, all that was found counts as durable.
        send(&mut client, FLUSH, 0, 0, 0);
        client.read_exact(&mut [0; 16]).unwrap();
    }
}

fn send(client: &mut UnixStream, command: u16, flags: u16, block: usize, version: u8) {
    let header = encode(&RequestHeader {
        flags,
        command,
        cookie: 7,
        offset: if command == FLUSH {
            0
        } else {
            (block * BLOCK) as u64
        },
        length: if command == FLUSH { 0 } else { BLOCK as u32 },
    });
    client.write_all(header.as_ref()).unwrap();
    if command == WRITE {
        client.write_all(&[version; BLOCK]).unwrap();
    }
}

/// Makes power cuts, each after some requests, with a rule that holds one or more of the last.
fn cut_often(export: &'static str, write: WritePolicy) {
    let asked = std::env::var("DASHPOT_CUTS").ok();
    let cuts = asked.and_then(|asked| asked.parse().ok()).unwrap_or(60);
    let mut world = World::new(export, write, 1);
    for _ in 0..cuts {
        let mut client = world.client();
        for _ in 0..world.draw(5) {
            assert!(world.request(&mut client));
        }
        world.inject();
        // After a request that a rule holds, the next one may get a reply. Below a pool, it may wait for the
        // first one instead.
        for _ in 0..3 {
            if !world.request(&mut client) && (world.is_pool() || world.draw(2) == 0) {
                break;
            }
        }
        world.cut();
    }
    world.server.shutdown(Duration::ZERO).unwrap();
}

#[test]
fn a_disk_loses_what_no_client_was_told_of() {
    cut_often("d", WritePolicy::Through);
}

#[test]
fn a_pool_that_writes_through_loses_what_no_client_was_told_of() {
    cut_often("tank/v", WritePolicy::Through);
}

#[test]
fn a_pool_that_writes_back_loses_what_no_client_was_told_of() {
    cut_often("tank/v", WritePolicy::Back);
}
