//! A shard: the one thread that owns a set of disks, with their engine, stores and connections.
//!
//! It waits in one place, an epoll of its sockets and its mailbox, until something arrives or the
//! engine's next deadline comes. Nothing on the way of an I/O takes a lock, allocates or changes
//! thread, except what a store cannot do without waiting: that goes to the [`Pool`].
//!
//! A pass is bounded: so many requests from each connection, so many replies to each, and then
//! round again. A large batch is throughput bought with lateness, and the same bound is what keeps
//! one flooding client from the others.

pub(crate) mod abort;
pub(crate) mod budget;
pub(crate) mod buffers;
pub(crate) mod chunk;
pub(crate) mod clients;
pub(crate) mod connection;
pub(crate) mod load_meter;
mod prefetch;
mod receive;
mod send;
pub(crate) mod shutdown;
pub(crate) mod sleeper;
pub(crate) mod slots;
mod snapshot;
pub(crate) mod stops;
pub(crate) mod store_work;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dashpot_engine::{
    Action, Answer, Command, CommandId, DiskId, Engine, Input, Instant, Outcome, ZioId,
};
use rustix::event::epoll::{self, EventFlags};

use crate::clock;
use crate::events::Recorder;
use crate::export::ExportInfo;
use crate::mailbox::Mailbox;
use crate::message::{CommandAnswer, Handover, Message};
use crate::prober::Prompt;
use crate::shard::abort::Leaving;
use crate::shard::budget::Taken;
use crate::shard::buffers::Buffers;
use crate::shard::chunk::Chunk;
use crate::shard::clients::ClientTable;
use crate::shard::connection::{Conn, Reply};
use crate::shard::load_meter::LoadMeter;
use crate::shard::prefetch::fetch_next;
use crate::shard::shutdown::Shutdown;
use crate::shard::sleeper::Sleeper;
use crate::shard::slots::{Slot, Slots};
use crate::shard::stops::StopDetector;
use crate::shard::store_work::Copy;
use crate::store::{Pool, Store};

/// One disk of a shard.
pub(crate) struct Disk {
    pub(crate) export: ExportInfo,
    pub(crate) store: Store,
    pub(crate) clients: ClientTable,
    /// Times that a connection was kept from being read.
    pub(crate) stalls: u64,
    /// What its zios have taken of the shard's room.
    pub(crate) taken: Taken,
}

pub(crate) struct Shard {
    pub(crate) now: Instant,
    pub(crate) engine: Engine,
    pub(crate) disks: Vec<Disk>,
    pub(crate) slots: Slots,
    pub(crate) conns: Vec<Option<Conn>>,
    pub(crate) free_conns: Vec<usize>,
    /// Connections that are gone, and have zios that are yet to be aborted.
    pub(crate) leaving: VecDeque<Leaving>,
    /// Messages that are yet to be looked at.
    messages: VecDeque<Message>,
    pub(crate) buffers: Buffers,
    pub(crate) receive_buffers: Vec<Vec<u8>>,
    /// The space of the last chunk, for the next one.
    pub(crate) spare_chunk: Chunk,
    /// Writes of this pass that are yet to be copied to their disks.
    pub(crate) copies: Vec<Copy>,
    epoll: OwnedFd,
    sleeper: Sleeper,
    pub(crate) mailbox: Arc<Mailbox<Message>>,
    pub(crate) pool: Arc<Pool>,
    actions: Vec<Action>,
    answers: HashMap<CommandId, CommandAnswer>,
    commands: u64,
    /// Connections with received requests that have yet to be looked at.
    pub(crate) to_read: VecDeque<usize>,
    /// Connections with replies that have yet to be offered.
    pub(crate) to_send: VecDeque<usize>,
    /// Work in memory that takes long: zios, and how many bytes of each are done.
    pub(crate) pieces: VecDeque<(ZioId, u64)>,
    pub(crate) taken: Taken,
    /// Whether any of it was given back since the stalled were last looked at.
    pub(crate) gave_back: bool,
    /// Connections that are not read because there is no room.
    pub(crate) stalled: Vec<usize>,
    pub(crate) meter: LoadMeter,
    pub(crate) stop_detector: StopDetector,
    /// When a client last asked for something, or took it.
    pub(crate) active: Instant,
    pub(crate) recorder: Recorder,
    /// Asks for a look at the shard from outside.
    prompt: Prompt,
    /// Since when one of them or another has been waiting.
    pub(crate) waiting_since: Instant,
    /// What connections [keep](Conn::keeps).
    pub(crate) kept: u64,
    /// When payloads that do not come were last looked for.
    pub(crate) evicted: Instant,
    pub(crate) shutdown: Option<Shutdown>,
}

impl Shard {
    pub(crate) fn new(
        engine: Engine,
        disks: Vec<Disk>,
        mailbox: Arc<Mailbox<Message>>,
        pool: Arc<Pool>,
        sleeper: Sleeper,
        recorder: Recorder,
        prompt: Prompt,
    ) -> io::Result<Shard> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(MAILBOX);
        epoll::add(&epoll, &*mailbox, data, EventFlags::IN)?;
        Ok(Shard {
            now: clock::now(),
            engine,
            disks,
            slots: Slots::default(),
            conns: Vec::new(),
            free_conns: Vec::new(),
            leaving: VecDeque::new(),
            messages: VecDeque::new(),
            buffers: Buffers::default(),
            receive_buffers: Vec::new(),
            spare_chunk: Chunk::default(),
            copies: Vec::new(),
            epoll,
            sleeper,
            mailbox,
            pool,
            actions: Vec::new(),
            answers: HashMap::new(),
            commands: 0,
            to_read: VecDeque::new(),
            to_send: VecDeque::new(),
            pieces: VecDeque::new(),
            taken: Taken::default(),
            gave_back: false,
            stalled: Vec::new(),
            meter: LoadMeter::default(),
            stop_detector: StopDetector::default(),
            active: Instant::ZERO,
            recorder,
            prompt,
            waiting_since: Instant::ZERO,
            kept: 0,
            evicted: Instant::ZERO,
            shutdown: None,
        })
    }

    /// Serves until it is told to stop and has nothing left to say.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.is_over() {
            let (deadline, beat) = (self.deadline(), self.beat());
            let (engine, slots, disks) = (&self.engine, &self.slots, &self.disks);
            let prepare = |until| fetch_next(engine, slots, disks, until);
            let meant = self
                .sleeper
                .wait(&self.epoll, &mut events, deadline, beat, prepare)?;
            self.wake(meant);
            let woke = self.now;
            self.step(Input::Tick, None);
            // Those that are read for an event are not read once more in the same pass.
            let waiting = self.to_read.len();
            for event in events.drain(..) {
                self.meet(event);
            }
            self.read_messages();
            self.leave_on();
            self.read_on(waiting);
            self.work_on();
            self.send_on();
            self.record();
            self.evict();
            self.end_stalls();
            self.advance_shutdown();
            self.end_pass();
            if self.active >= woke {
                self.prompt.note_activity(self.active);
            }
        }
        self.sync_stores();
        Ok(())
    }

    /// Whether anybody is connected but the probe.
    pub(crate) fn has_clients(&self) -> bool {
        self.conns.len() - self.free_conns.len() > 1
    }

    /// When to stop waiting. `None` if nothing but a descriptor can wake it: an idle shard does
    /// not wake up.
    fn deadline(&self) -> Option<Instant> {
        let to_do = [&self.to_read, &self.to_send];
        if to_do.iter().any(|queue| !queue.is_empty())
            || !self.pieces.is_empty()
            || !self.messages.is_empty()
            || !self.leaving.is_empty()
        {
            return Some(self.now);
        }
        let shutdown = self.shutdown.map(Shutdown::until);
        let deadlines = [self.engine.next_deadline(), shutdown, self.evicts_at()];
        deadlines.into_iter().flatten().min()
    }

    fn meet(&mut self, event: epoll::Event) {
        if event.data.u64() == MAILBOX {
            self.messages.extend(self.mailbox.take());
            return;
        }
        let at = event.data.u64() as usize;
        let Some(conn) = self.conns.get(at).and_then(Option::as_ref) else {
            return;
        };
        if conn.disk != self.probed() {
            self.active = self.now;
        }
        let flags = event.flags;
        let gone = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        if flags.contains(EventFlags::IN) && conn.wants_input() {
            if !conn.read_queued {
                self.receive(at);
            }
        } else if flags.intersects(gone) {
            self.meet_end(at);
        }
        if flags.contains(EventFlags::OUT) {
            self.unblock(at);
        }
    }

    /// The peer is gone. What it had sent is not read any more, and what it had asked for is
    /// aborted, unless it had said good-bye: then that must be finished all the same.
    fn meet_end(&mut self, at: usize) {
        let Some(conn) = self.conns[at].as_mut() else {
            return;
        };
        if !conn.closing || epoll::delete(&self.epoll, &conn.session).is_err() {
            return self.hang_up(at);
        }
        conn.deaf = true;
        conn.blocked = false;
        self.queue_send(at);
        self.end_if_only_hung(at);
    }

    /// Nothing but a command could finish what is left of a deaf connection.
    pub(crate) fn end_if_only_hung(&mut self, at: usize) {
        let Some(conn) = self.conns[at].as_ref().filter(|conn| conn.deaf) else {
            return;
        };
        let left = self.slots.list(conn.zios);
        if left.iter().all(|zio| self.engine.never_ends(*zio)) {
            self.hang_up(at);
        }
    }

    /// Looks at as many messages as one pass may.
    fn read_messages(&mut self) {
        for _ in 0..MESSAGES_PER_PASS {
            let Some(message) = self.messages.pop_front() else {
                return;
            };
            self.read_clock();
            self.receive_message(message);
        }
    }

    fn receive_message(&mut self, message: Message) {
        match message {
            Message::Connect(handover) => self.connect(handover),
            Message::Command(command, answer) => self.command(command, answer),
            Message::Snapshot(disk, oldest, answer) => {
                if let Some(snapshot) = self.snapshot(disk, oldest) {
                    answer(snapshot);
                }
            }
            Message::Events(answer) => answer(self.flush_events()),
            Message::Done(id, finished) => self.work_done(id, finished),
            Message::Cut(disk, cut, answer) => answer(self.cut(disk, &cut)),
            Message::Shutdown(grace) => self.begin_shutdown(grace),
        }
    }

    /// Tells the engine, and does what it asks for. `incoming` is the payload of a write that is
    /// being submitted, still in the receive buffer.
    pub(crate) fn step(&mut self, input: Input<'_>, incoming: Option<(ZioId, &[u8])>) {
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.step(self.now, input, &mut actions);
        let mut at = 0;
        while let Some(action) = actions.get_mut(at) {
            at += 1;
            match action {
                Action::Start(id) => {
                    let id = *id;
                    if let Some(outcome) = self.work(id, incoming) {
                        self.engine
                            .step(self.now, Input::Done(id, outcome), &mut actions);
                    }
                }
                // Only volumes keep bytes in memory, and none is served so far.
                Action::Move(_) => {}
                Action::Complete(id, outcome) => self.reply(*id, *outcome),
                Action::Drop(id) => {
                    self.forget(*id);
                }
                Action::Answer(id, answer) => {
                    let answer = std::mem::replace(answer, Ok(Answer::Done));
                    if let Some(to) = self.answers.remove(id) {
                        to(answer);
                    }
                }
            }
        }
        actions.clear();
        self.actions = actions;
    }

    /// The engine wants a zio to be replied to.
    fn reply(&mut self, id: ZioId, outcome: Outcome) {
        let Some(slot) = self.slots.get_mut(id) else {
            return;
        };
        slot.outcome = outcome;
        self.disks[slot.disk.0 as usize].store.acknowledge(id);
        let Some(at) = slot.conn else {
            return;
        };
        let Some(conn) = self.conns.get_mut(at).and_then(Option::as_mut) else {
            return;
        };
        if conn.blocked {
            // From here on it is the client that keeps the reply waiting.
            slot.offered = Some(self.now);
        }
        conn.ready.push_back(Reply::Zio { id, sent: 0 });
        self.queue_send(at);
    }

    /// The engine has let go of a zio.
    pub(crate) fn forget(&mut self, id: ZioId) -> Option<Slot> {
        let mut slot = self.slots.remove(id)?;
        self.buffers.give(std::mem::take(&mut slot.payload));
        self.disks[slot.disk.0 as usize].store.forget(id);
        self.give_back(slot.disk, 1, slot.charged);
        Some(slot)
    }

    fn connect(&mut self, handover: Handover) {
        if self.shutdown.is_some() {
            return;
        }
        let Some(disk) = self.disks.get_mut(handover.disk.0 as usize) else {
            return;
        };
        if disk.export.power.is_off() {
            return;
        }
        let (client, is_new) = disk.clients.connect(&handover.peer);
        if is_new {
            let join = Input::Join {
                disk: handover.disk,
                client,
                name: &handover.peer,
            };
            self.step(join, None);
            // Who had this id before is the client of the events until now.
            self.record();
            self.recorder.join(handover.disk, client, &handover.peer);
        }
        let (session, disk) = (handover.session, handover.disk);
        let mut conn = Conn::new(session, disk, client, handover.permit);
        conn.received.bytes = handover.left_over;
        let at = self.free_conns.pop().unwrap_or_else(|| {
            self.conns.push(None);
            self.conns.len() - 1
        });
        let data = epoll::EventData::new_u64(at as u64);
        let flags = EventFlags::IN | EventFlags::RDHUP;
        let added = epoll::add(&self.epoll, &conn.session, data, flags);
        self.conns[at] = Some(conn);
        self.reckon(at);
        if added.is_err() {
            self.hang_up(at);
        } else {
            self.queue_read(at);
        }
    }

    /// Has epoll watch for what a connection can go on with.
    pub(crate) fn watch(&mut self, at: usize) {
        let Some(conn) = self.conns.get(at).and_then(Option::as_ref) else {
            return;
        };
        if conn.deaf {
            return;
        }
        let mut flags = EventFlags::RDHUP;
        flags.set(EventFlags::IN, conn.wants_input());
        flags.set(EventFlags::OUT, conn.blocked);
        let data = epoll::EventData::new_u64(at as u64);
        if epoll::modify(&self.epoll, &conn.session, data, flags).is_err() {
            self.hang_up(at);
        }
    }

    pub(crate) fn command(&mut self, command: Command, answer: CommandAnswer) {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.answers.insert(id, answer);
        match &command {
            Command::Inject { disk, rules, .. } => {
                let rules = rules.iter().map(|(rule, _)| *rule);
                self.meter.arm(*disk, rules, self.now);
            }
            Command::Update(rule, _) => self.meter.arm_again(*rule, self.now),
            _ => {}
        }
        self.step(Input::Command(id, command), None);
        let engine = &self.engine;
        self.meter
            .keep_rules(|disk, rule| engine.has_rule(disk, rule));
        self.meter.set_armed(self.has_rules());
    }

    /// The disk of the probe, which is the last.
    fn probed(&self) -> DiskId {
        DiskId(self.disks.len() as u32 - 1)
    }

    /// Whether any disk has a rule but that of the probe.
    fn has_rules(&self) -> bool {
        let mut disks = 0..self.probed().0;
        disks.any(|disk| self.engine.has_rules(DiskId(disk)))
    }

    pub(crate) fn conn(&mut self, at: usize) -> Option<&mut Conn> {
        self.conns.get_mut(at)?.as_mut()
    }
}

/// The token of the mailbox among those of connections.
const MAILBOX: u64 = u64::MAX;
/// Messages looked at before the sockets have their turn.
const MESSAGES_PER_PASS: usize = 16;
/// How many events are taken per wait.
const EVENTS: usize = 256;
