//! The memory that answers take: the data for each answer, and the answer's text until the caller has
//! received it. Also the memory in which questions work.
//!
//! A caller may read slowly, or not at all, and the listener allows hundreds of connections. The memory of
//! all answers together therefore has a bound. The daemon makes only a few answers at a time. Each answer is
//! charged for its data and for its text. If the charge does not fit, the request is refused. The memory of
//! an answer is free again when the answer's last byte is in the socket, or when the connection is gone.
//!
//! A question about single I/Os copies them while it counts. Such a copy is no answer, and may be larger than
//! all answers together, so copies have a bound of their own. The bound has room for everything that the
//! daemon remembers. A copy that does not fit now waits for the other copies.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::refusal::{Refusal, RefusalKind};

/// The most bytes that all answers may take together.
const BYTES_MAX: usize = 256 << 20;

/// All working copies together may take at least this many bytes.
const COPIES_LEAST: u64 = 256 << 20;

/// The unit in which working copies are charged, so that the charge of a large copy fits into 32 bits.
const COPY_UNIT: u64 = 1 << 10;

/// Answers of at most this many bytes are free of charge, so that callers can still ask for the daemon's
/// state when other answers use all of the memory.
const FREE: usize = 64 << 10;

/// How many answers the daemon makes at a time. Each of them may hold the snapshot of a disk.
const MADE_AT_ONCE: usize = 4;

/// The most streams at a time. A stream is an answer that does not end.
const STREAMS_MAX: usize = 32;

/// How long a request may wait until the daemon begins to make its answer.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The memory that all answers share.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    bytes: Arc<Semaphore>,
    copies: Arc<Semaphore>,
    /// The most memory that working copies may use, in units.
    copies_max: u32,
    places: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// An answer that is being made.
#[derive(Debug)]
pub(crate) struct AnswerBuilder {
    memory: AnswerMemory,
    /// The charge for the data of the answer.
    parts: Option<OwnedSemaphorePermit>,
    /// The memory reserved for an answer that must not be refused.
    reserved: Option<OwnedSemaphorePermit>,
    /// The memory for the working copy.
    copy: Option<OwnedSemaphorePermit>,
    /// The place among the answers that are made at a time; `None` while the answer waits for a copy.
    place: Option<OwnedSemaphorePermit>,
}

impl Default for AnswerMemory {
    fn default() -> AnswerMemory {
        AnswerMemory::with_copies(0)
    }
}

impl AnswerMemory {
    /// A memory whose questions can copy as many bytes as the daemon remembers.
    pub(crate) fn with_copies(remembered: u64) -> AnswerMemory {
        let copies_max = remembered.max(COPIES_LEAST).div_ceil(COPY_UNIT);
        let copies_max = u32::try_from(copies_max).unwrap_or(u32::MAX);
        AnswerMemory {
            bytes: Arc::new(Semaphore::new(BYTES_MAX)),
            copies: Arc::new(Semaphore::new(copies_max as usize)),
            copies_max,
            places: Arc::new(Semaphore::new(MADE_AT_ONCE)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// The bytes that answers use now.
    pub(crate) fn used(&self) -> usize {
        BYTES_MAX - self.bytes.available_permits()
    }

    /// The most bytes that answers may use.
    pub(crate) fn max(&self) -> usize {
        BYTES_MAX
    }

    /// Waits, for at most [`WAIT_MAX`], until the daemon may make the caller's answer.
    pub(crate) async fn begin(&self) -> Result<AnswerBuilder, Refusal> {
        Ok(AnswerBuilder {
            memory: self.clone(),
            parts: None,
            reserved: None,
            copy: None,
            place: Some(self.place().await?),
        })
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.places).acquire_owned();
        match timeout(WAIT_MAX, place).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Refusal::new(
                RefusalKind::Full,
                format!("the daemon has made answers for other callers for {WAIT_MAX:?}"),
            )
            .remedy("ask again")),
        }
    }

    /// Takes one of the places for streams, if a place is free.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| {
            let error = format!("{STREAMS_MAX} streams of statistics are open, which is the most");
            Refusal::new(RefusalKind::Full, error).remedy("close a page or another reader first")
        })
    }

    /// Encodes a value. The charge ends when the text's last holder drops it.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<Bytes, Refusal> {
        self.written(value, None)
    }

    /// Charges for a finished text. The charge ends when the text's last holder drops it.
    pub(crate) fn text(&self, text: String) -> Result<Bytes, Refusal> {
        let charge = match text.len() {
            0..=FREE => None,
            bytes => Some(self.take(bytes)?),
        };
        Ok(kept(text.into_bytes(), charge))
    }

    fn written(
        &self,
        value: &impl Serialize,
        reserved: Option<OwnedSemaphorePermit>,
    ) -> Result<Bytes, Refusal> {
        let mut text = Text {
            memory: self,
            bytes: Vec::new(),
            room: FREE,
            charge: None,
            reserved,
            refusal: None,
        };
        match serde_json::to_writer(&mut text, value) {
            Ok(()) => Ok(text.finish()),
            Err(error) => Err(text
                .refusal
                .unwrap_or_else(|| Refusal::new(RefusalKind::Failed, error.to_string()))),
        }
    }

    /// Takes bytes from the memory that this answer has reserved or, if that is too little, from the free
    /// memory.
    fn take_of(
        &self,
        reserved: &mut Option<OwnedSemaphorePermit>,
        bytes: usize,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        let of_reserved = reserved.as_mut().and_then(|reserved| reserved.split(bytes));
        of_reserved.map_or_else(|| self.take(bytes), Ok)
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let permits = u32::try_from(bytes).ok();
        let taken = permits
            .and_then(|permits| Arc::clone(&self.bytes).try_acquire_many_owned(permits).ok());
        taken.ok_or_else(|| {
            let error = format!(
                "answers take {} of {} MiB, and this answer needs {} more",
                self.used() >> 20,
                BYTES_MAX >> 20,
                (bytes >> 20) + 1
            );
            let remedy = "ask again when other callers have read their answers, or ask for less";
            Refusal::new(RefusalKind::Full, error).remedy(remedy)
        })
    }
}

impl AnswerBuilder {
    /// Charges for this many bytes of the answer's data.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Refusal> {
        let charge = self.memory.take_of(&mut self.reserved, bytes)?;
        add(&mut self.parts, charge);
        Ok(())
    }

    /// Waits, for at most [`WAIT_MAX`], for the memory of a working copy of at most this many bytes. The
    /// memory is free again when the answer is made. An answer has at most one copy: two answers that each
    /// waited for a second copy would wait for each other. Meanwhile the answer has no place, so that answers
    /// without a copy go on.
    pub(crate) async fn copy(&mut self, bytes: u64) -> Result<(), Refusal> {
        let units = u32::try_from(bytes.div_ceil(COPY_UNIT)).unwrap_or(u32::MAX);
        let units = units.min(self.memory.copies_max);
        (self.copy, self.place) = (None, None);
        let copies = Arc::clone(&self.memory.copies).acquire_many_owned(units);
        match timeout(WAIT_MAX, copies).await {
            Ok(Ok(copy)) => self.copy = Some(copy),
            _ => {
                let error = format!("the daemon has counted for other callers for {WAIT_MAX:?}");
                return Err(Refusal::new(RefusalKind::Full, error)
                    .remedy("ask again, or about a shorter time"));
            }
        }
        self.place = Some(self.memory.place().await?);
        Ok(())
    }

    /// Reserves memory for an answer that must not be refused, because it reports a change that was
    /// made.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.reserved = Some(self.memory.take(bytes)?);
        Ok(())
    }

    /// Encodes the answer. The text is charged until its last holder drops it.
    pub(crate) fn json(mut self, value: &impl Serialize) -> Result<Bytes, Refusal> {
        let reserved = self.reserved.take();
        self.memory.written(value, reserved)
    }
}

/// A text that reserves memory while it grows.
struct Text<'a> {
    memory: &'a AnswerMemory,
    bytes: Vec<u8>,
    /// How long the text may become before it must reserve more memory.
    room: usize,
    charge: Option<OwnedSemaphorePermit>,
    reserved: Option<OwnedSemaphorePermit>,
    refusal: Option<Refusal>,
}

impl Text<'_> {
    /// Makes room for at least a quarter more text. Doubling the room could ask for far more memory than the
    /// text needs, and that memory could be refused.
    fn grow(&mut self, least: usize) -> Result<(), Refusal> {
        let more = least.max(self.bytes.len() / 4).max(FREE);
        let charge = self.memory.take_of(&mut self.reserved, more)?;
        add(&mut self.charge, charge);
        self.room += more;
        self.bytes.reserve_exact(self.room - self.bytes.len());
        Ok(())
    }

    fn finish(mut self) -> Bytes {
        self.bytes.shrink_to_fit();
        if let Some(charge) = &mut self.charge {
            // Only the first `FREE` bytes of the room have no charge. A charged text is longer than that, so
            // all of its unused room is charged. Give that charge back.
            drop(charge.split(self.room - self.bytes.len()));
        }
        kept(self.bytes, self.charge)
    }
}

impl Write for Text<'_> {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let length = self.bytes.len() + more.len();
        if length > self.room
            && let Err(refusal) = self.grow(length - self.room)
        {
            self.refusal = Some(refusal);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn add(sum: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match sum {
        Some(sum) => sum.merge(more),
        None => *sum = Some(more),
    }
}

/// Bytes whose charge ends when they are dropped.
struct Kept {
    bytes: Vec<u8>,
    _charge: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn kept(bytes: Vec<u8>, charge: Option<OwnedSemaphorePermit>) -> Bytes {
    Bytes::from_owner(Kept {
        bytes,
        _charge: charge,
    })
}

#[cfg(test)]
mod tests {
    use super::{AnswerMemory, BYTES_MAX, FREE, MADE_AT_ONCE, WAIT_MAX};
    use crate::RefusalKind;
    use tokio::time::Instant;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_text_takes_its_room_until_nobody_has_it() {
        let memory = AnswerMemory::default();
        let long = "x".repeat(3 * MIB);
        let text = memory.json(&long).unwrap();
        assert_eq!(text.len(), long.len() + 2);
        let used = memory.used();
        assert!(used.abs_diff(text.len()) <= FREE, "{used}");
        let copy = text.clone();
        drop(text);
        assert_eq!(memory.used(), used);
        drop(copy);
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused_and_takes_nothing() {
        let memory = AnswerMemory::default();
        let mut making = memory.begin().await.unwrap();
        making.charge(BYTES_MAX - 2 * MIB).unwrap();
        let used = memory.used();
        let refusal = memory.json(&"x".repeat(3 * MIB)).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Full);
        assert_eq!(
            memory.text("x".repeat(3 * MIB)).unwrap_err().kind,
            RefusalKind::Full
        );
        assert_eq!(making.charge(3 * MIB).unwrap_err().kind, RefusalKind::Full);
        assert_eq!(memory.used(), used);
        memory.json(&"x".repeat(MIB)).unwrap();
        drop(making);
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn a_small_answer_and_one_with_a_reservation_are_not_refused() {
        let memory = AnswerMemory::default();
        let mut change = memory.begin().await.unwrap();
        change.reserve(2 * MIB).unwrap();
        let mut greedy = memory.begin().await.unwrap();
        greedy.charge(BYTES_MAX - 2 * MIB).unwrap();
        assert_eq!(memory.used(), BYTES_MAX);
        memory.json(&"x".repeat(FREE - 2)).unwrap();
        memory.json(&"x".repeat(FREE - 1)).unwrap_err();
        let text = change.json(&"x".repeat(MIB)).unwrap();
        assert!(
            memory.used() < BYTES_MAX,
            "the rest of the reservation is free"
        );
        drop((greedy, text));
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn a_copy_of_everything_remembered_takes_no_answers_memory_and_waits_for_others() {
        let memory = AnswerMemory::with_copies(1 << 30);
        let mut first = memory.begin().await.unwrap();
        first.copy(1 << 30).await.unwrap();
        assert_eq!(memory.used(), 0);
        let mut second = memory.begin().await.unwrap();
        let waiting = tokio::spawn(async move { second.copy(2 << 30).await.map(|()| second) });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        drop(waiting.await.unwrap().unwrap());
        assert_eq!(
            memory.copies.available_permits(),
            memory.copies_max as usize
        );
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_wait_for_a_copy_keep_no_other_answer_out() {
        let memory = AnswerMemory::with_copies(1 << 30);
        let mut first = memory.begin().await.unwrap();
        first.copy(1 << 30).await.unwrap();
        for _ in 0..MADE_AT_ONCE {
            let mut waits = memory.begin().await.unwrap();
            tokio::spawn(async move { waits.copy(1 << 30).await });
            tokio::task::yield_now().await;
        }
        memory.begin().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_does_not_wait_for_ever_for_its_turn() {
        let memory = AnswerMemory::default();
        let mut makings = Vec::new();
        for _ in 0..MADE_AT_ONCE {
            makings.push(memory.begin().await.unwrap());
        }
        let asked = Instant::now();
        let refusal = memory.begin().await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Full);
        assert!(asked.elapsed() >= WAIT_MAX);
        drop(makings.pop());
        memory.begin().await.unwrap();
    }
}
