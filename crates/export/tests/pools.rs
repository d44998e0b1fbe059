//! Tests a served pool on disks that can lose their caches: which data is lost in a power cut, and which data
//! stays.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;

use dashpot_engine::Duration;
use dashpot_engine::pool::{Layout, ThrottleConfig, Tunables, WritePolicy};
use dashpot_export::frontend::nbd::client::{connect, encode};
use dashpot_export::frontend::nbd::wire::RequestHeader;
use dashpot_export::store::OpenDevices;
use dashpot_export::{Cut, CutError, Keep, PoolLoss, Server, ServerConfig, Spin, Then};
use dashpot_rules::{Address, DiskConfig, PoolSpec, StoreConfig, VolumeSpec};
use tempfile::TempDir;

const BLOCK: usize = 8 << 10;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

struct Served {
    directory: TempDir,
    server: Server,
}

/// Serves a pool on a mirror of two disks, with one write-back volume of this size.
fn serve(store: StoreConfig, size: u64) -> Served {
    serve_as(store, size, Layout::Static, WritePolicy::Back)
}

fn serve_as(store: StoreConfig, size: u64, layout: Layout, write: WritePolicy) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let disk = |name: &str| DiskConfig {
        name: name.to_owned(),
        store: store.clone(),
        size: Some(size),
        offset: 0,
        block: 1,
        read_only: false,
        rotational: false,
    };
    let config = ServerConfig {
        shards: 1,
        seed: 1,
        disks: vec![disk("a"), disk("b")],
        pools: vec![PoolSpec {
            bitmap: None,
            name: "tank".to_owned(),
            members: vec![vec![0, 1]],
            layout,
            throttle: ThrottleConfig::OpenZfs,
            tunables: Tunables::new(1 << 30),
        }],
        volumes: vec![VolumeSpec {
            name: "tank/v".to_owned(),
            pool: 0,
            size,
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
    Served { directory, server }
}

impl Served {
    fn client(&self) -> UnixStream {
        let address = Address::Unix(PathBuf::from(self.directory.path()).join("nbd.sock"));
        UnixStream::from(connect(&address, "tank/v").unwrap().socket)
    }

    fn cut(&self, then: Then) -> Result<PoolLoss, CutError> {
        let (sender, receiver) = mpsc::channel();
        let cut = Cut {
            keep: Keep::None,
            tear: None,
            seed: 1,
            then,
        };
        let answer = move |loss| sender.send(loss).unwrap();
        self.server.handle().cut_pool(0, cut, answer).unwrap();
        receiver.recv().unwrap()
    }
}

/// The header of a request for a number of blocks.
fn header(command: u16, block: usize, blocks: usize) -> impl AsRef<[u8]> {
    encode(&RequestHeader {
        flags: 0,
        command,
        cookie: 7,
        offset: (block * BLOCK) as u64,
        length: (blocks * BLOCK) as u32,
    })
}

/// Sends a request, and returns the data of its reply.
fn ask(client: &mut UnixStream, command: u16, block: usize, payload: &[u8]) -> Vec<u8> {
    let blocks = usize::from(command != FLUSH);
    client
        .write_all(header(command, block, blocks).as_ref())
        .unwrap();
    client.write_all(payload).unwrap();
    take_reply(client, command)
}

/// Takes a reply, and returns its data.
fn take_reply(client: &mut UnixStream, command: u16) -> Vec<u8> {
    let mut reply = vec![0; 16];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], [0; 4], "an error");
    let mut data = vec![0; if command == READ { BLOCK } else { 0 }];
    client.read_exact(&mut data).unwrap();
    data
}

#[test]
fn a_power_cut_takes_what_no_flush_has_covered() {
    let served = serve(StoreConfig::Lossy(Box::new(StoreConfig::Ram)), 1 << 20);
    let mut client = served.client();
    ask(&mut client, WRITE, 3, &[1; BLOCK]);
    ask(&mut client, FLUSH, 0, &[]);
    ask(&mut client, WRITE, 3, &[2; BLOCK]);
    ask(&mut client, WRITE, 4, &[2; BLOCK]);
    let loss = served.cut(Then::Off).unwrap();
    let dirty: u64 = loss.txgs.iter().map(|(_, dirty)| dirty).sum();
    assert_eq!(dirty, 2 * BLOCK as u64);
    assert_eq!(loss.disks.len(), 2);
    assert_eq!(
        client.read(&mut [0]).unwrap(),
        0,
        "the connection has ended"
    );
    assert_eq!(served.cut(Then::GoesOn), Err(CutError::IsOff));
    assert!(served.cut(Then::Restart).unwrap().was_off);
    let mut client = served.client();
    assert_eq!(ask(&mut client, READ, 3, &[]), [1; BLOCK]);
    assert_eq!(ask(&mut client, READ, 4, &[]), [0; BLOCK]);
    ask(&mut client, WRITE, 4, &[3; BLOCK]);
    assert_eq!(ask(&mut client, READ, 4, &[]), [3; BLOCK]);
    served.server.shutdown(Duration::ZERO).unwrap();
}

/// The shard trims 64 MiB of a disk in pieces. If the power is cut meanwhile, the remaining pieces must not
/// erase writes that come after the cut.
#[test]
fn a_power_cut_ends_a_trim() {
    let size = 64 << 20;
    let served = serve(StoreConfig::Lossy(Box::new(StoreConfig::Ram)), size);
    let mut client = served.client();
    let last = (size / BLOCK as u64 - 1) as usize;
    let header = |command, length| RequestHeader {
        flags: 0,
        command,
        cookie: 7,
        offset: 0,
        length,
    };
    for header in [header(TRIM, size as u32), header(FLUSH, 0)] {
        client.write_all(&encode(&header)).unwrap();
    }
    // Waits for the reply to the trim. The flush then makes the pool send the trim to its disks.
    client.read_exact(&mut [0; 16]).unwrap();
    served.cut(Then::Restart).unwrap();
    let mut client = served.client();
    ask(&mut client, WRITE, last, &[3; BLOCK]);
    ask(&mut client, FLUSH, 0, &[]);
    for _ in 0..200 {
        let found = ask(&mut client, READ, last, &[]);
        assert!(found == [3; BLOCK], "the trim goes on: {}", found[0]);
    }
    served.server.shutdown(Duration::ZERO).unwrap();
}

#[test]
fn disks_that_lose_nothing_refuse_a_power_cut() {
    let served = serve(StoreConfig::Ram, 1 << 20);
    assert_eq!(served.cut(Then::Off), Err(CutError::LosesNothing));
    served.server.shutdown(Duration::ZERO).unwrap();
}

/// Sends a write of one block, a trim of this block, and a write of two other blocks at once, so that the
/// shard takes them in one batch. The second write may get the place on the disk that the trim has freed.
#[test]
fn requests_of_one_batch_reach_a_disk_in_memory_in_their_order() {
    for (layout, write) in [
        (Layout::Static, WritePolicy::Through),
        (Layout::Dynamic, WritePolicy::Through),
        (Layout::Dynamic, WritePolicy::Back),
    ] {
        let served = serve_as(StoreConfig::Ram, 1 << 20, layout, write);
        let mut client = served.client();
        for round in 1..=60 {
            let (first, second) = (round, 64 + round % 60);
            let mut batch = header(WRITE, first, 1).as_ref().to_vec();
            batch.extend([1; BLOCK]);
            batch.extend(header(TRIM, first, 1).as_ref());
            batch.extend(header(WRITE, second, 2).as_ref());
            batch.extend([2; 2 * BLOCK]);
            client.write_all(&batch).unwrap();
            for command in [WRITE, TRIM, WRITE] {
                take_reply(&mut client, command);
            }
            let place = (layout, write, round);
            let is_all = |bytes: Vec<u8>, value| bytes.iter().all(|byte| *byte == value);
            assert!(is_all(ask(&mut client, READ, second, &[]), 2), "{place:?}");
            assert!(is_all(ask(&mut client, READ, first, &[]), 0), "{place:?}");
        }
    }
}
