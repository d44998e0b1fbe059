//! The last finished zios, in a memory of bounded size.

use std::collections::{HashMap, HashSet, TryReserveError, VecDeque};
use std::sync::Arc;

use dashpot_export::FinishedZio;

use super::clients::NOBODY;

/// A finished zio, and the number of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    zio: FinishedZio,
    client: u32,
}

/// The last finished zios, and the names of their clients.
///
/// A reader continues from a cursor: the number of zios that came before. It can find out how many
/// zios it has missed.
#[derive(Debug)]
pub(super) struct Recent {
    zios: VecDeque<Kept>,
    most: usize,
    /// How many zios have come.
    come: u64,
    names: HashMap<u32, Arc<str>>,
    /// At this many names, the memory looks for unused ones.
    sweep_at: usize,
}

impl Recent {
    pub(super) fn new(bytes: u64) -> Result<Recent, TryReserveError> {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Kept>();
        // The memory is not touched before it is filled, and never moved.
        let mut zios = VecDeque::new();
        zios.try_reserve_exact(most)?;
        Ok(Recent {
            zios,
            most,
            come: 0,
            names: HashMap::new(),
            sweep_at: SWEEP_AT_LEAST,
        })
    }

    #[inline]
    pub(super) fn push(&mut self, zio: &FinishedZio, client: u32) {
        self.come += 1;
        if self.most == 0 {
            return;
        }
        if self.zios.len() == self.most {
            self.zios.pop_front();
        }
        self.zios.push_back(Kept { zio: *zio, client });
    }

    /// Gives a new client a name. `present` has the numbers of the clients that may still have zios to come.
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
    pub(super) fn now(&self) -> u64 {
        self.come
    }

    /// The cursor of the oldest zio in memory.
    pub(super) fn oldest(&self) -> u64 {
        self.come - self.zios.len() as u64
    }

    /// The zios after a cursor, with their own cursors and the names of their clients.
    pub(super) fn after(&self, cursor: u64) -> impl Iterator<Item = (u64, &FinishedZio, &str)> {
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

/// With fewer names a search is not worth its cost.
const SWEEP_AT_LEAST: usize = 1_024;
