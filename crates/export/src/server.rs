//! A running server: its threads, and how they begin and end.

use std::any::Any;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use dashpot_engine::Duration;
use dashpot_rules::Address;
use dashpot_sys::Ring;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::acceptor::{Acceptor, AcceptorMessage};
use crate::complain::complain;
use crate::config::{ServerConfig, Spin};
use crate::deal::{Built, DealError, Dealt, deal};
use crate::events::{EventReader, RING, Recorder, rings};
use crate::handle::Handle;
use crate::listen::{ListenError, Listener};
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::prober::{self, Readings};
use crate::quota::cpu_quota;
use crate::shard::{Parts, Shard};
use crate::store::{self, Adoption, OpenDevices, Store, StoreError, Workers};

/// The reason that a server did not start. In that case none of its threads keeps running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An address cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A pool or a volume cannot be created.
    #[error("{0}")]
    Pool(String),
    /// The system has no thread or descriptor left.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

impl From<DealError> for StartError {
    fn from(error: DealError) -> StartError {
        match error {
            DealError::System(error) => StartError::Thread(error),
            error @ DealError::Pool { .. } => StartError::Pool(error.to_string()),
        }
    }
}

/// A running server. A server that is dropped without [`Server::shutdown`] ends without a grace period.
pub struct Server {
    handle: Handle,
    addresses: Vec<Address>,
    adoptions: Vec<Adoption>,
    events: Option<EventReader>,
    shards: Vec<Running<Message, bool>>,
    acceptor: Running<AcceptorMessage>,
}

/// A thread, and the message that ends it.
struct Running<M, T = ()> {
    mailbox: Arc<Mailbox<M>>,
    thread: Option<JoinHandle<T>>,
    end: fn() -> M,
}

impl<M, T> Running<M, T> {
    /// Waits for the thread's result. If the thread has panicked, it has already printed a message.
    fn join(mut self) -> Option<T> {
        self.thread.take()?.join().ok()
    }
}

impl<M, T> Drop for Running<M, T> {
    fn drop(&mut self) {
        // If the thread has ended, it needs no message.
        let _ = self.mailbox.send((self.end)());
    }
}

impl Server {
    /// Opens the stores, binds the addresses and starts the threads. If any of these fails, undoes the
    /// others. After this call, clients can connect, but the server serves them only after [`Server::open`].
    /// In `devices`, the caller passes the block devices that it has already opened for the stores.
    pub fn start(config: &ServerConfig, devices: &OpenDevices) -> Result<Server, StartError> {
        raise_descriptor_limit();
        let listeners = bind_all(config)?;
        let addresses = listeners
            .iter()
            .map(|listener| listener.address.clone())
            .collect();
        let opened = store::open_all(&config.disks, devices, config.overcommit)?;
        let files = config.disks.iter().zip(&opened);
        let adoptions = files.filter_map(|(disk, opened)| Adoption::of(disk, opened));
        let adoptions = adoptions.collect();
        let pool = Arc::new(Workers::new(STORE_THREADS)?);
        let spins = config.spin == Spin::Auto && cpu_quota().is_none();
        let Dealt {
            shards: built,
            routes,
            infos,
            exports,
        } = deal(config, opened)?;
        let mut shards = Vec::new();
        let mut readings = Vec::new();
        let (recorders, events) = rings(RING, built.iter().map(|shard| shard.devices.clone()));
        for (at, (built, recorder)) in built.into_iter().zip(recorders).enumerate() {
            let disks = infos.disks.iter().filter(|disk| disk.shard == at);
            let names: Vec<&str> = disks.map(|disk| disk.name.as_str()).collect();
            let (shard, found) = start_shard(at, built, &names, recorder, &pool, spins)?;
            shards.push(shard);
            readings.push(found);
        }
        let acceptor_mailbox = Arc::new(Mailbox::new()?);
        let mut acceptor = Acceptor::new(
            listeners,
            exports.into(),
            routes.exports.clone(),
            Arc::clone(&acceptor_mailbox),
        )?;
        let thread = Builder::new().name("dashpot-accept".to_owned());
        let thread = thread.spawn(move || {
            report(
                "the acceptor",
                catch_unwind(AssertUnwindSafe(|| acceptor.run())),
            );
        })?;
        let acceptor = Running {
            mailbox: acceptor_mailbox,
            thread: Some(thread),
            end: || AcceptorMessage::Close,
        };
        let handle = Handle::new(infos, routes, readings, spins);
        Ok(Server {
            handle,
            addresses,
            adoptions,
            events: Some(events),
            shards,
            acceptor,
        })
    }

    /// Lets clients in, and begins to repair mirrors. The caller must first arm the rules that have to be in
    /// force at the first request. This call, not [`Server::start`], labels the files of disks, so that a
    /// failed start leaves the files as they were.
    pub fn open(&self) -> Result<(), StartError> {
        for adoption in &self.adoptions {
            adoption.adopt()?;
        }
        self.handle.use_mirrors();
        // If the acceptor is gone, it has already printed the reason.
        let _ = self.acceptor.mailbox.send(AcceptorMessage::Open);
        Ok(())
    }

    /// A handle to the shards.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes the only reader of the events of all shards; `None` if it was already taken. If no caller reads
    /// the events, the shards drop events once their rings are full.
    pub fn events(&mut self) -> Option<EventReader> {
        self.events.take()
    }

    /// The addresses at which clients connect, in the order of the configuration, with the ports that the
    /// system picked.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Stops accepting clients and requests, and waits at most `grace` until the zios in flight have ended.
    /// After that, zios that are still held or suspended fail with ESHUTDOWN. Removes the sockets. Fails if a
    /// shard has failed, then or before: writes that clients believe done may be lost.
    pub fn shutdown(self, grace: Duration) -> Result<(), ShardsFailed> {
        let _ = self.acceptor.mailbox.send(AcceptorMessage::Close);
        let _ = self.acceptor.join();
        for shard in &self.shards {
            let _ = shard.mailbox.send(Message::Shutdown(grace));
        }
        let ended = self.shards.into_iter().map(Running::join);
        match ended.filter(|is_well| *is_well != Some(true)).count() {
            0 => Ok(()),
            shards => Err(ShardsFailed { shards }),
        }
    }
}

/// Some shards have failed. Each has printed why.
#[derive(Debug)]
pub struct ShardsFailed {
    /// How many shards have failed.
    pub shards: usize,
}

impl fmt::Display for ShardsFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of the threads that serve disks failed, for the reason above: acknowledged writes may be lost",
            self.shards
        )
    }
}

impl std::error::Error for ShardsFailed {}

/// Raises the soft limit of open descriptors to the hard limit. Each client takes a descriptor, and the soft
/// limit is usually far below the hard limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If the kernel refuses, the acceptor pauses when there are too many clients.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// The listeners on the sockets that were handed over, followed by those of the configuration.
fn bind_all(config: &ServerConfig) -> Result<Vec<Listener>, ListenError> {
    let handed = config.handed.iter().zip(1..);
    let handed = handed.map(|(socket, at)| Listener::adopt(at, socket));
    handed
        .chain(config.listen.iter().map(Listener::bind))
        .collect()
}

/// Starts a shard's thread. A shard that panics or fails ends its own connections and commands, but not those
/// of other shards.
fn start_shard(
    at: usize,
    mut built: Built,
    disks: &[&str],
    recorder: Recorder,
    pool: &Arc<Workers>,
    spins: bool,
) -> io::Result<(Running<Message, bool>, Arc<Readings>)> {
    built.engine.record_events(true);
    let probed = built.add_disk(0, Store::Null, 0).id;
    let export = built.serve(prober::served(probed));
    let (prompt, readings) = prober::start(&export, probed)?;
    let on_devices = disks.iter().zip(&built.stores);
    let on_devices = on_devices.filter(|(_, store)| store.device().is_some());
    let ring = ring_for(&on_devices.map(|(disk, _)| *disk).collect::<Vec<_>>());
    let mailbox = built.mailbox;
    let inbox = Arc::clone(&mailbox);
    let mut shard = Shard::new(Parts {
        engine: built.engine,
        served: built.served,
        stores: built.stores,
        sizes: built.sizes,
        mailbox: Arc::clone(&mailbox),
        pool: Arc::clone(pool),
        ring,
        spins,
        recorder,
        prompt,
        keepers: built.keepers,
    })?;
    let thread = Builder::new()
        .name(format!("dashpot-shard-{at}"))
        .spawn(move || {
            // Without this call, the kernel may end a sleep up to 50 µs late. If the kernel refuses the call,
            // sleeps stay that late.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            let result = catch_unwind(AssertUnwindSafe(|| shard.run()));
            inbox.close();
            let is_well = matches!(result, Ok(Ok(())));
            report(&format!("shard {at}"), result);
            is_well
        })?;
    let running = Running {
        mailbox,
        thread: Some(thread),
        end: || Message::Shutdown(Duration::ZERO),
    };
    Ok((running, readings))
}

/// A ring for a shard that has these disks on block devices. If the kernel refuses a ring, worker threads do
/// the disks' work.
fn ring_for(disks: &[&str]) -> Option<Ring> {
    if disks.is_empty() {
        return None;
    }
    let ring = Ring::new(RING_ENTRIES);
    if let Err(error) = &ring {
        let (names, why) = (disks.join(", "), dashpot_sys::why_no_ring(error));
        complain(format_args!(
            "dashpot: {names}: {why}; at most {STORE_THREADS} requests at a time reach the devices"
        ));
    }
    ring.ok()
}

fn report(who: &str, result: Result<io::Result<()>, Box<dyn Any + Send>>) {
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => complain(format_args!(
            "dashpot: {who} has failed: {error}; its exports are gone"
        )),
        // The panic has already printed its own message.
        Err(_) => complain(format_args!(
            "dashpot: {who} has panicked; its exports are gone"
        )),
    }
}

/// How many requests to block devices a shard queues before it submits them to the kernel.
const RING_ENTRIES: u32 = 256;

/// How many requests can wait for a medium at once. This limit acts like a number of lanes, so `status` shows
/// it.
pub const STORE_THREADS: usize = 4;
