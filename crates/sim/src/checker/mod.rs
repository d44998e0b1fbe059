//! Checks rules about contents and order, which must hold at every step.
//!
//! - A read returns, for each of its sectors, a content that the sector may hold ([`history`]).
//! - Every zio ends once: it gets a reply, or it is dropped because its connection is lost.
//! - A buffer does not change while a disk works on it, and no undefined content is written to a
//!   disk.
//! - At most one write to a block of a pool's disk is in flight. Under the static layout, each place on a
//!   disk belongs forever to one sector of one volume.
//! - After a loss of power, the disks hold all data that was flushed or written with FUA, on every side of a
//!   mirror.
//! - In the end, the sides of each mirror hold the same contents.
//! - The figures of a pool are consistent ([`views`]).

mod history;
mod layout;
mod media;
mod memory;
mod sectors;
#[cfg(test)]
mod tests;
mod views;

use std::collections::{BTreeMap, BTreeSet};

use dashpot_engine::{Buf, DiskId, Engine, Move, Op, Outcome, Random, Segment, Span, Zio, ZioId};

use crate::calls::Request;
use crate::scenario::{Scenario, Target};
use history::{History, Moment, Writing};
use layout::Layout;
use media::Media;
use memory::Memory;
use sectors::Content;
use views::Views;

/// Everything that the checker knows about contents.
#[derive(Debug)]
pub(crate) struct Checker {
    histories: BTreeMap<Target, History>,
    media: Vec<Media>,
    memory: Memory,
    layout: Layout,
    views: Views,
    /// For each zio's id, the work for which a client waits.
    clients: Vec<Option<ClientWork>>,
    /// The work that disks have begun and not ended, by zio.
    disks: BTreeMap<ZioId, DiskWork>,
    /// The zios at the disks that carry no bytes.
    overhead: BTreeSet<ZioId>,
    /// The block size of each volume.
    block_sizes: Vec<u32>,
}

#[derive(Debug)]
struct ClientWork {
    request: Request,
    submitted: Moment,
    /// The write, if the work is a write, zero or trim.
    writing: Option<Writing>,
    /// The part of a read's reply that is known so far.
    reply: Vec<Content>,
    /// The part of a buffer that is lent to the read. It holds all data of the read's reply.
    lent: Option<Span>,
    /// Whether a disk outside of pools works on the zio.
    at_disk: bool,
}

#[derive(Debug)]
struct DiskWork {
    disk: usize,
    op: Op,
    fua: bool,
    first: u64,
    sectors: u64,
    segments: Vec<Segment>,
    /// How many writes the flush will make durable, if the work is a flush.
    written: u64,
}

type Checked = Result<(), String>;

/// Checks the actions of clients.
impl Checker {
    pub(crate) fn new(scenario: &Scenario) -> Checker {
        Checker {
            histories: BTreeMap::new(),
            media: vec![Media::default(); scenario.disks.len()],
            memory: Memory::default(),
            layout: Layout::new(scenario),
            views: Views::new(scenario),
            clients: Vec::new(),
            disks: BTreeMap::new(),
            overhead: BTreeSet::new(),
            block_sizes: scenario.volumes.iter().map(|v| v.block_size).collect(),
        }
    }

    /// Notes that a client's zio was submitted.
    pub(crate) fn submitted(&mut self, zio: ZioId, request: &Request) -> Checked {
        let history = self.histories.entry(request.target).or_default();
        let (first, sectors) = sectors_of(request.offset, request.length);
        let mut work = ClientWork {
            request: *request,
            submitted: 0,
            writing: None,
            reply: Vec::new(),
            lent: None,
            at_disk: false,
        };
        match request.op {
            Op::Read => {
                work.submitted = history.read_submitted();
                work.reply = vec![Content::UNKNOWN; sectors as usize];
            }
            Op::Write | Op::Zero | Op::Trim => {
                work.submitted = history.moment();
                let writing = Writing {
                    write: self.layout.new_write(request.target, first),
                    first,
                    sectors,
                    submitted: work.submitted,
                    durable: request.fua,
                };
                let content = |place| match request.op {
                    Op::Write => Content::of(writing.write, place),
                    _ => Content::ZERO,
                };
                history.write_submitted(&writing, request.op != Op::Trim, content);
                work.writing = Some(writing);
            }
            _ => work.submitted = history.moment(),
        }
        self.views.submitted(request);
        let at = zio.0 as usize;
        if self.clients.len() <= at {
            self.clients.resize_with(at + 1, || None);
        }
        match self.clients[at].replace(work) {
            None => Ok(()),
            Some(_) => Err(format!("zio {at} is submitted twice")),
        }
    }

    /// Checks the reply to a client's zio.
    pub(crate) fn completed(&mut self, zio: ZioId, outcome: Outcome) -> Checked {
        let work = self.take_client(zio)?;
        let target = work.request.target;
        let history = self.histories.entry(target).or_default();
        let checked = match (work.request.op, work.writing) {
            (_, Some(writing)) => {
                history.write_replied(&writing, outcome.is_ok());
                Ok(())
            }
            (Op::Read, _) => {
                let (first, _) = sectors_of(work.request.offset, work.request.length);
                let contents = outcome.is_ok().then_some(work.reply.as_slice());
                history.read_replied(first, work.submitted, contents)
            }
            (Op::Flush, _) if outcome.is_ok() => {
                history.flushed(work.submitted);
                Ok(())
            }
            _ => Ok(()),
        };
        checked.map_err(|what| format!("{target:?}: {what}"))
    }

    /// Notes that the engine has dropped a client's zio, whose connection is lost.
    pub(crate) fn dropped(&mut self, zio: ZioId) -> Checked {
        let work = self.take_client(zio)?;
        let history = self.histories.entry(work.request.target).or_default();
        match work.writing {
            Some(writing) => history.write_replied(&writing, false),
            None if work.request.op == Op::Read => {
                let (first, _) = sectors_of(work.request.offset, work.request.length);
                history.read_replied(first, work.submitted, None)?;
            }
            None => {}
        }
        Ok(())
    }

    fn take_client(&mut self, zio: ZioId) -> Result<ClientWork, String> {
        let work = self.clients.get_mut(zio.0 as usize);
        let work = work.and_then(Option::take);
        let mut work = work.ok_or_else(|| format!("zio {} ends twice, or never began", zio.0))?;
        if work.at_disk {
            return Err(format!("zio {} ends while its disk works on it", zio.0));
        }
        self.views.ended(&work.request);
        if let Some(lent) = work.lent {
            work.reply = self.memory.read(lent).collect();
            self.memory.take_back(lent.buf);
        }
        Ok(work)
    }

    fn client(&mut self, zio: ZioId) -> Result<&mut ClientWork, String> {
        let work = self.clients.get_mut(zio.0 as usize);
        let work = work.and_then(Option::as_mut);
        work.ok_or_else(|| format!("bytes move for zio {}, but no client waits for it", zio.0))
    }
}

/// Carries out the moves in memory.
impl Checker {
    pub(crate) fn moved(&mut self, action: Move) -> Checked {
        match action {
            Move::CopyIn { zio, from, to } => {
                self.learn_size(zio, to)?;
                let write = self.client(zio)?.writing.map_or(0, |writing| writing.write);
                let (place, sectors) = sectors_of(u64::from(from), to.length);
                let contents = (place..place + sectors).map(|place| Content::of(write, place));
                self.memory.write(to, contents)
            }
            Move::CopyOut { zio, to, from } => {
                self.learn_size(zio, from)?;
                let contents: Vec<Content> = self.memory.read(from).collect();
                self.reply(zio, to, &contents)
            }
            Move::Lend { zio, from } => {
                self.learn_size(zio, from)?;
                self.client(zio)?.lent = Some(from);
                self.memory.lend(from.buf);
                Ok(())
            }
            Move::ZeroOut { zio, to, length } => {
                let (_, sectors) = sectors_of(0, length);
                self.reply(zio, to, &vec![Content::ZERO; sectors as usize])
            }
            Move::Zero(span) => {
                let (_, sectors) = sectors_of(0, span.length);
                let zeroes = (0..sectors).map(|_| Content::ZERO);
                self.memory.write(span, zeroes)
            }
            Move::Clone { from, to } => self.memory.clone_buf(from, to),
            Move::Free(buf) => self.memory.free(buf),
        }
    }

    fn reply(&mut self, zio: ZioId, to: u32, contents: &[Content]) -> Checked {
        let (first, _) = sectors_of(u64::from(to), 0);
        let reply = &mut self.client(zio)?.reply;
        let place = reply.get_mut(first as usize..first as usize + contents.len());
        let place = place.ok_or_else(|| format!("more is moved to zio {} than it reads", zio.0))?;
        place.copy_from_slice(contents);
        Ok(())
    }

    /// Learns the size of a buffer that a volume's client fills or reads: it is the volume's block size.
    fn learn_size(&mut self, zio: ZioId, span: Span) -> Checked {
        if let Target::Volume(volume) = self.client(zio)?.request.target {
            self.memory.learn_size(span.buf, self.block_sizes[volume]);
        }
        Ok(())
    }
}

/// Carries out and checks the work of disks.
impl Checker {
    /// Notes that a disk begins to work on a zio.
    pub(crate) fn started(&mut self, zio: &Zio, segments: Vec<Segment>) -> Checked {
        let DiskId(disk) = zio.device;
        let (first, sectors) = sectors_of(zio.offset, zio.length);
        let work = DiskWork {
            disk: disk as usize,
            op: zio.op,
            fua: zio.fua,
            first,
            sectors,
            segments,
            written: self.media[disk as usize].written(),
        };
        if zio.id.is_child() {
            self.check_overlap(&work)?;
            for buf in buffers(&work.segments) {
                self.memory.disk_begins(buf);
            }
        } else {
            self.client(zio.id)?.at_disk = true;
        }
        match self.disks.insert(zio.id, work) {
            None => Ok(()),
            Some(_) => Err(format!("zio {} is started twice", zio.id.0)),
        }
    }

    /// Notes that a disk begins to work on a zio without bytes, which changes no content.
    pub(crate) fn overhead(&mut self, zio: ZioId) {
        self.overhead.insert(zio);
    }

    /// Checks that at most one write to a block is in flight.
    fn check_overlap(&self, work: &DiskWork) -> Checked {
        let writes = |work: &DiskWork| matches!(work.op, Op::Write | Op::Zero | Op::Trim);
        if !writes(work) {
            return Ok(());
        }
        let end = work.first + work.sectors;
        let meets = |other: &DiskWork| {
            other.disk == work.disk && other.first < end && work.first < other.first + other.sectors
        };
        match self
            .disks
            .values()
            .find(|other| writes(other) && meets(other))
        {
            None => Ok(()),
            Some(other) => Err(format!(
                "two writes to disk {} are in flight: sectors {}..{} and {}..{}",
                work.disk,
                other.first,
                other.first + other.sectors,
                work.first,
                end
            )),
        }
    }

    /// Moves the bytes of a finished zio to where they belong.
    pub(crate) fn finished(&mut self, zio: ZioId) -> Checked {
        if self.overhead.remove(&zio) {
            return Ok(());
        }
        let work = self.disks.remove(&zio);
        let work = work.ok_or_else(|| format!("zio {} is done, but never began", zio.0))?;
        if zio.is_child() {
            let buffers: Vec<_> = buffers(&work.segments).collect();
            buffers.iter().for_each(|buf| self.memory.disk_ends(*buf));
        } else {
            self.client(zio)?.at_disk = false;
        }
        match work.op {
            Op::Read => self.disk_read(zio, &work),
            Op::Write => self.disk_write(zio, &work),
            Op::Zero | Op::Trim => {
                let for_good =
                    work.op == Op::Trim && self.layout.trimmed(work.disk, work.first, work.sectors);
                let zeroes = vec![Content::ZERO; work.sectors as usize];
                self.media[work.disk].write(work.first, zeroes, work.fua || for_good);
                Ok(())
            }
            Op::Flush => {
                self.media[work.disk].flushed(work.written);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn disk_read(&mut self, zio: ZioId, work: &DiskWork) -> Checked {
        let media = &self.media[work.disk];
        let sectors = work.first..work.first + work.sectors;
        let mut contents = sectors.map(|sector| media.read(sector));
        if !zio.is_child() {
            let contents: Vec<Content> = contents.collect();
            return self.reply(zio, 0, &contents);
        }
        check_lengths(work)?;
        for segment in &work.segments {
            match *segment {
                Segment::Buf(buf, length) => {
                    let part = contents.by_ref().take(length as usize / 512);
                    self.memory.write(Span { buf, at: 0, length }, part)?;
                }
                Segment::Gap(length) => {
                    contents.by_ref().take(length as usize / 512).for_each(drop);
                }
            }
        }
        Ok(())
    }

    fn disk_write(&mut self, zio: ZioId, work: &DiskWork) -> Checked {
        let contents = match self.clients.get(zio.0 as usize) {
            Some(Some(client)) if !zio.is_child() => {
                let write = client.writing.map_or(0, |writing| writing.write);
                let contents = (0..work.sectors).map(|place| Content::of(write, place));
                contents.collect()
            }
            _ => self.gather(work)?,
        };
        if zio.is_child() {
            self.layout.check(work.disk, work.first, &contents)?;
        }
        self.media[work.disk].write(work.first, contents, work.fua);
        Ok(())
    }

    /// The contents of a write's buffers.
    fn gather(&self, work: &DiskWork) -> Result<Vec<Content>, String> {
        let mut contents = Vec::new();
        check_lengths(work)?;
        for segment in &work.segments {
            match *segment {
                Segment::Buf(buf, length) => {
                    contents.extend(self.memory.read(Span { buf, at: 0, length }));
                }
                Segment::Gap(_) => return Err("a write has a gap".into()),
            }
        }
        if contents.contains(&Content::UNKNOWN) {
            Err(format!(
                "memory that was never filled is written to disk {}, sectors {}..{}",
                work.disk,
                work.first,
                work.first + work.sectors
            ))
        } else {
            Ok(contents)
        }
    }
}

/// Carries out the checks for which the simulation asks between events.
impl Checker {
    /// Checks that the figures of the pools are consistent.
    pub(crate) fn check_views(&mut self, engine: &Engine) -> Checked {
        self.views.check(engine)
    }

    /// Checks that the sides of each mirror hold the same contents.
    pub(crate) fn check_mirrors(&self) -> Checked {
        for (disk, first) in self.layout.mirrored() {
            let (media, other) = (&self.media[disk], &self.media[first]);
            if let Some(sector) = media.difference(other) {
                return Err(format!(
                    "sector {sector} holds {} on disk {disk}, but {} on disk {first}",
                    media.read(sector),
                    other.read(sector)
                ));
            }
        }
        Ok(())
    }

    /// Checks that flushed data would survive if the power were lost now.
    pub(crate) fn check_power_loss(&self, seed: u64) -> Checked {
        let mut random = Random::new(seed);
        let left = self.media.iter();
        let left: Vec<_> = left
            .map(|media| media.after_power_loss(&mut random))
            .collect();
        for (target, history) in &self.histories {
            for sector in history.written() {
                for (disk, at) in self.layout.places(*target, sector) {
                    let content = at.map_or(Content::ZERO, |at| *left[disk].get(at));
                    history
                        .may_survive(sector, content)
                        .map_err(|what| format!("{target:?} on disk {disk}: {what}"))?;
                }
            }
        }
        Ok(())
    }
}

fn buffers(segments: &[Segment]) -> impl Iterator<Item = Buf> {
    segments.iter().filter_map(|segment| match segment {
        Segment::Buf(buf, _) => Some(*buf),
        Segment::Gap(_) => None,
    })
}

/// Checks that the segments of a zio add up to its length.
fn check_lengths(work: &DiskWork) -> Checked {
    let length = |segment: &Segment| match segment {
        Segment::Buf(_, length) | Segment::Gap(length) => u64::from(*length),
    };
    let sum: u64 = work.segments.iter().map(length).sum();
    if sum == work.sectors * 512 {
        return Ok(());
    }
    Err(format!(
        "the segments of {} sectors at sector {} of disk {} do not add up: {:?}",
        work.sectors, work.first, work.disk, work.segments
    ))
}

/// Turns a range in bytes into its first sector and its number of sectors.
fn sectors_of(offset: u64, length: u32) -> (u64, u64) {
    (offset / 512, u64::from(length) / 512)
}
