//! The last finished zios, in a memory of bounded size.

use std::collections::{HashMap, HashSet, TryReserveError, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use dashpot_export::FinishedZio;

use super::clients::NOBODY;

/// A finished zio, and the number of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) zio: FinishedZio,
    pub(crate) client: u32,
}

/// Zios that a reader has copied out of the memory, and the names of their clients.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) zios: Vec<Kept>,
    pub(crate) names: HashMap<u32, Arc<str>>,
    /// The cursor at which the copying continues.
    next: u64,
    /// The cursor at which the copying ends.
    end: u64,
}

/// A second, and the cursor of the first zio that ended in this second or later.
#[derive(Clone, Copy, Debug)]
struct Begun {
    second: u64,
    cursor: u64,
    /// The cursor after the last zio that ended in this second, or in a later one without an entry of its own. The
    /// first entry has earlier ones, too.
    end: u64,
}

/// The last finished zios, and the names of their clients.
///
/// A zio's cursor is the number of zios that were added before the zio. A reader continues from its last
/// cursor, and can find out how many zios it has missed.
#[derive(Debug)]
pub(crate) struct Recent {
    zios: VecDeque<Kept>,
    most: usize,
    /// How many zios were added since the start.
    come: u64,
    /// The seconds of the zios in memory, in order.
    begun: VecDeque<Begun>,
    /// No zio from this second on was forgotten.
    since: u64,
    names: HashMap<u32, Arc<str>>,
    /// When the memory has this many names, it looks for unused names.
    sweep_at: usize,
}

impl Copied {
    /// How many zios the copy may have at most.
    pub(crate) fn zios_max(&self) -> usize {
        self.end.saturating_sub(self.next) as usize
    }

    /// How much memory the copy may take at most.
    pub(crate) fn bytes_max(&self) -> u64 {
        (self.zios_max() * size_of::<Kept>()) as u64
    }
}

impl Recent {
    pub(super) fn new(bytes: u64) -> Result<Recent, TryReserveError> {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Kept>();
        // The memory is allocated once, touched only when it is filled, and never moved.
        let mut zios = VecDeque::new();
        zios.try_reserve_exact(most)?;
        Ok(Recent {
            zios,
            most,
            come: 0,
            begun: VecDeque::new(),
            since: 0,
            names: HashMap::new(),
            sweep_at: SWEEP_AT_LEAST,
        })
    }

    /// Adds a zio that ended in this second.
    #[inline]
    pub(super) fn push(&mut self, zio: &FinishedZio, client: u32, second: u64) {
        if self.most == 0 {
            self.since = self.since.max(second + 1);
            self.come += 1;
            return;
        }
        if self.zios.len() == self.most {
            self.forget();
        }
        if self.begun.back().is_none_or(|last| last.second < second) {
            let (cursor, end) = (self.come, self.come);
            self.begun.push_back(Begun {
                second,
                cursor,
                end,
            });
        }
        self.zios.push_back(Kept { zio: *zio, client });
        self.come += 1;
        // Most zios belong to the last second, some to the one before.
        let own = self.begun.iter().rposition(|begun| begun.second <= second);
        self.begun[own.unwrap_or(0)].end = self.come;
    }

    fn forget(&mut self) {
        if let Some(Kept { zio, .. }) = self.zios.pop_front() {
            self.since = self.since.max(zio.ended().as_nanos() / SECOND_NS + 1);
        }
        let oldest = self.oldest();
        while let Some(next) = self.begun.get(1).filter(|next| next.cursor <= oldest) {
            let end = next.end.max(self.begun[0].end);
            self.begun.pop_front();
            self.begun[0].end = end;
        }
    }

    /// No zio from this second on was forgotten.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    /// How much memory the zios take at most.
    pub(crate) fn bytes_max(&self) -> u64 {
        (self.most * size_of::<Kept>()) as u64
    }

    /// Begins a copy of the zios that ended in these seconds.
    pub(crate) fn begin_copy(&self, seconds: &Range<u64>) -> Copied {
        let next = self.cursor_of(seconds.start);
        Copied {
            next,
            end: self.end_of(seconds).max(next),
            ..Copied::default()
        }
    }

    /// Copies the zios that ended in these seconds and that the caller wants. One call examines at most
    /// `part` zios. Returns true when the last zio has been copied.
    pub(crate) fn copy(
        &self,
        copied: &mut Copied,
        seconds: &Range<u64>,
        part: usize,
        wants: impl Fn(&FinishedZio) -> bool,
    ) -> bool {
        let from = copied.next.max(self.oldest());
        let end = copied.end.min(from.saturating_add(part as u64)).max(from);
        let places = (from - self.oldest()) as usize..(end - self.oldest()) as usize;
        let is_wanted = |kept: &&Kept| {
            seconds.contains(&(kept.zio.ended().as_nanos() / SECOND_NS)) && wants(&kept.zio)
        };
        let before = copied.zios.len();
        copied
            .zios
            .extend(self.zios.range(places).filter(is_wanted));
        // Consecutive zios often come from the same client, whose name is then looked up only once.
        let of_one = copied.zios[before..].chunk_by(|one, next| one.client == next.client);
        for client in of_one
            .filter_map(|zios| zios.first())
            .map(|kept| kept.client)
        {
            if let Some(name) = self.names.get(&client) {
                let name = || Arc::clone(name);
                copied.names.entry(client).or_insert_with(name);
            }
        }
        copied.next = end;
        end >= copied.end
    }

    /// The cursor at which to begin a search for zios of this second. All zios before it ended earlier.
    fn cursor_of(&self, second: u64) -> u64 {
        let at = self.begun.partition_point(|begun| begun.second < second);
        let first = self.begun.get(at).map_or(self.come, |begun| begun.cursor);
        first.max(self.oldest())
    }

    /// The cursor after the last zio of these seconds.
    fn end_of(&self, seconds: &Range<u64>) -> u64 {
        let begun = self
            .begun
            .partition_point(|begun| begun.second <= seconds.start);
        // What ended before the first entry was added to that entry.
        let own = self.begun.range(begun.saturating_sub(1)..).enumerate();
        let own = own.take_while(|(at, begun)| *at == 0 || begun.second < seconds.end);
        own.map(|(_, begun)| begun.end).max().unwrap_or(0)
    }

    /// Notes the name of a new client. `present` has the numbers of the clients that may still send zios.
    pub(super) fn name(&mut self, client: u32, name: Arc<str>, present: impl Iterator<Item = u32>) {
        if self.names.len() >= self.sweep_at {
            let kept = self.zios.iter().map(|kept| kept.client);
            let needed: HashSet<u32> = kept.chain(present).collect();
            self.names.retain(|number, _| needed.contains(number));
            self.sweep_at = (2 * self.names.len()).max(SWEEP_AT_LEAST);
        }
        self.names.insert(client, name);
    }

    /// The cursor after the last zio.
    pub(crate) fn now(&self) -> u64 {
        self.come
    }

    /// The cursor of the oldest zio in memory.
    fn oldest(&self) -> u64 {
        self.come - self.zios.len() as u64
    }

    /// How many of the zios after a cursor the memory has forgotten.
    pub(crate) fn forgotten(&self, cursor: u64) -> u64 {
        self.oldest().saturating_sub(cursor)
    }

    /// The zios after a cursor, with their own cursors and the names of their clients.
    pub(crate) fn after(&self, cursor: u64) -> impl Iterator<Item = (u64, &FinishedZio, &str)> {
        let first = cursor.max(self.oldest()).min(self.come);
        let skipped = (first - self.oldest()) as usize;
        let zios = self.zios.range(skipped..).zip(first..);
        zios.map(|(kept, at)| (at, &kept.zio, self.name_of(kept.client)))
    }

    fn name_of(&self, client: u32) -> &str {
        match self.names.get(&client) {
            Some(name) if client != NOBODY => name,
            _ => "other",
        }
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> usize {
        self.names.len()
    }
}

impl Copied {
    /// The name of a client.
    pub(crate) fn name_of(&self, client: u32) -> Option<&Arc<str>> {
        self.names.get(&client).filter(|_| client != NOBODY)
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// With fewer names, a search for unused names is not worth its cost.
const SWEEP_AT_LEAST: usize = 1_024;
