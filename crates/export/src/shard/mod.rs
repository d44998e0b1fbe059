//! A shard: the one thread that owns a set of disks, with the disks' engine, stores and connections.
//!
//! A shard waits in one place, for its connections and its mailbox, until something arrives or the
//! engine's next deadline comes. No I/O takes a lock, allocates memory or moves to another thread, unless a
//! store has to wait for its medium. In that case the store's work goes to [`Workers`], or to a [`Ring`] if
//! the store is on a block device.
//!
//! A pass is bounded: it takes at most a fixed number of requests from each connection, and sends at most a
//! fixed number of replies to each connection. Larger numbers would raise throughput, but delay replies. The
//! limits also keep a client that floods the shard from taking the time of other clients.
//!
//! The shard is a loop over parts with private fields. Each owns one thing: received bytes ([`Intake`]),
//! connections ([`Connections`]), clients' zios with their memory ([`Zios`]), stores and the bytes of volumes
//! ([`Storage`]), replies ([`Outbox`]), time ([`Timers`]), or messages ([`Control`]). No part calls the shard.
//! The steps of a pass are in files of their own, and a step calls only steps below it. From the top: the loop
//! in this file, `power` and `shutdown`; `commands`, `receive`, `send`, `work` and `abort`; `clock`; `step`.

mod abort;
mod attachments;
mod block_memory;
mod budget;
mod buffers;
mod chunk;
mod clients;
mod clock;
mod commands;
mod connection;
mod connections;
mod control;
mod damages;
mod device_ring;
mod exports;
mod intake;
mod load_meter;
mod outbox;
mod power;
mod prefetch;
mod receive;
mod rivals;
mod rule_marks;
mod send;
mod shutdown;
mod sleeper;
mod slots;
mod snapshots;
mod step;
mod stops;
mod storage;
mod submission;
mod timers;
mod unfinished;
mod work;
mod zios;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use dashpot_engine::{Action, Engine, Input, PoolId};
use dashpot_sys::Ring;
use rustix::event::epoll::{self, EventFlags};

use self::connections::{Connections, Poller, Source};
use self::control::Control;
use self::device_ring::DeviceRing;
use self::exports::Exports;
use self::intake::Intake;
use self::outbox::Outbox;
use self::rule_marks::RuleMarks;
use self::storage::Storage;
use self::timers::Timers;
use self::zios::Zios;
use crate::events::Recorder;
use crate::export::Served;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::prober::Prompt;
use crate::store::{Keeper, Store, Workers};

pub(crate) struct Shard {
    engine: Engine,
    actions: Vec<Action>,
    exports: Exports,
    connections: Connections,
    intake: Intake,
    outbox: Outbox,
    zios: Zios,
    storage: Storage,
    timers: Timers,
    rule_marks: RuleMarks,
    control: Control,
    recorder: Recorder,
}

/// The parts of a shard before it runs.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    /// The exports to serve. The last is the prober's.
    pub(crate) served: Vec<Served>,
    /// The stores of the engine's disks, in the same order. The last is the prober's.
    pub(crate) stores: Vec<Store>,
    /// The sizes of the disks, in bytes.
    pub(crate) sizes: Vec<u64>,
    pub(crate) mailbox: Arc<Mailbox<Message>>,
    pub(crate) pool: Arc<Workers>,
    /// The ring for stores on block devices.
    pub(crate) ring: Option<Ring>,
    pub(crate) spins: bool,
    pub(crate) recorder: Recorder,
    pub(crate) prompt: Prompt,
    /// For each pool whose mirrors have a durable record, the keeper that writes this record.
    pub(crate) keepers: HashMap<PoolId, Keeper>,
}

impl Shard {
    pub(crate) fn new(mut parts: Parts) -> io::Result<Shard> {
        if parts.stores.iter().any(Store::loses) {
            parts.engine.watch_children();
        }
        let exports = Exports::new(parts.served);
        let device_ring = DeviceRing::new(parts.ring);
        Ok(Shard {
            engine: parts.engine,
            actions: Vec::new(),
            connections: Connections::new(Poller::new(&*parts.mailbox, device_ring.bell())?),
            intake: Intake::default(),
            outbox: Outbox::default(),
            zios: Zios::new(exports.len()),
            storage: Storage::new(
                parts.stores,
                parts.sizes,
                parts.pool,
                device_ring,
                parts.keepers,
                Arc::clone(&parts.mailbox),
            ),
            exports,
            timers: Timers::new(parts.spins, parts.prompt),
            rule_marks: RuleMarks::default(),
            control: Control::new(parts.mailbox),
            recorder: parts.recorder,
        })
    }

    /// Serves until a message has ended the shard and no replies are left to send.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        self.storage.ring().enable()?;
        while !self.is_over() {
            self.wait(&mut events)?;
            let woke = self.timers.now();
            self.step(Input::Tick, None);
            // Connections that are queued after this point wait for the next pass, so that no connection is
            // read twice in a pass.
            let waiting = self.intake.len();
            for event in events.drain(..) {
                self.meet(event);
            }
            self.end_device_work();
            self.read_messages();
            self.abort_departed();
            self.read_on(waiting);
            self.work_on();
            self.submit_to_ring()?;
            self.send_on();
            self.record();
            self.evict();
            self.connections.part_with_ended(&mut self.zios);
            self.end_stalls();
            self.advance_shutdown();
            self.submit_to_ring()?;
            self.end_pass(woke);
        }
        let synced = self.sync_stores();
        self.storage.record_last(&self.engine, synced);
        self.loss(synced)
    }

    /// Submits the work that is queued for the ring. The kernel may do some of it at once.
    fn submit_to_ring(&mut self) -> io::Result<()> {
        if self.storage.ring().has_queued() {
            self.timers.note_call(true);
            self.storage.ring().submit()?;
        }
        Ok(())
    }

    fn meet(&mut self, event: epoll::Event) {
        let at = match Poller::source(&event) {
            Source::Mailbox => return self.control.collect(),
            Source::Ring => return self.storage.ring().hear(),
            Source::Lingering(at) => return self.connections.linger_on(at),
            Source::Connection(at) => at,
        };
        let Some(connection) = self.connections.get(at) else {
            return;
        };
        if connection.export() != self.exports.probed() {
            self.timers.note_activity();
        }
        let flags = event.flags;
        let gone = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        if flags.contains(EventFlags::IN) && connection.wants_input() {
            if !connection.inlet().is_queued() {
                self.receive(at);
            }
        } else if flags.intersects(gone) {
            self.meet_end(at);
        }
        if flags.contains(EventFlags::OUT) {
            self.unblock(at);
        }
    }

    /// Handles the end of a peer. The shard aborts the peer's zios and drops the peer's unread bytes.
    /// But if the peer has said good-bye, the shard finishes the peer's zios.
    fn meet_end(&mut self, at: usize) {
        if self.connections.lose_peer(at) {
            self.queue_send(at);
            self.end_if_only_hung(at);
        }
    }

    /// Handles messages, but no more than a pass may handle.
    fn read_messages(&mut self) {
        for _ in 0..MESSAGES_PER_PASS {
            let Some(message) = self.control.next() else {
                return;
            };
            self.read_clock();
            self.obey(message);
        }
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Connect(handover) => {
                // If the shard refuses a client, the connection is closed, so the client notices.
                let _ = self.connect(handover);
            }
            Message::Attach(export, attach, answer) => answer(self.attach(export, attach)),
            Message::FailAttachment(export, node, answer) => {
                answer(self.fail_attachment(export, &node));
            }
            Message::Command(command, answer) => self.command(command, answer),
            Message::Snapshot(device, oldest, answer) => {
                if let Some(snapshot) = self.snapshot(device, oldest) {
                    answer(snapshot);
                }
            }
            Message::SnapshotPool(pool, answer) => {
                if let Some(snapshot) = self.snapshot_pool(pool) {
                    answer(snapshot);
                }
            }
            Message::Damage(disk, answer) => answer(self.storage.damages.report(disk)),
            Message::Events(answer) => answer(self.flush_events()),
            Message::Spared(id) => self.engine.spare(id),
            Message::Done(id, finished) => self.work_done(id, finished),
            Message::Settled(disk, finished) => {
                self.settled(disk, finished);
                self.control.retry_cuts();
            }
            Message::Cut(export, cut, answer) => self.cut_and_answer(export, cut, answer),
            Message::CutPool(pool, cut, answer) => self.cut_pool_and_answer(pool, cut, answer),
            Message::Recorded(pool, outcome) => self.step(Input::Recorded(pool, outcome), None),
            Message::Shutdown(grace) => self.begin_shutdown(grace),
        }
    }
}

/// The largest number of events that one wait returns.
const EVENTS: usize = 256;
/// How many messages the shard handles before it looks at the sockets.
const MESSAGES_PER_PASS: usize = 16;
