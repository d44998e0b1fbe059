//! The choice of the class to serve next (OpenZFS: `vdev_queue_class_to_issue`).

use super::io::Limits;
use crate::pool::stats::{Class, ClassStats};

/// Classes that have less I/O at the disk than their minimum take turns. If there is no such class, the
/// queue serves the class with the highest priority that has less I/O at the disk than its maximum.
#[derive(Debug)]
pub(super) struct Rule {
    /// The class that has the next turn, as an index into [`Class::ALL`].
    turn: usize,
}

impl Rule {
    /// The class to serve, or `None` if no class may be served.
    pub(super) fn class_to_issue(
        &mut self,
        classes: &[ClassStats; Class::ALL.len()],
        limits: &Limits,
        async_write_max: u32,
    ) -> Option<Class> {
        let active: u32 = classes.iter().map(|class| class.active).sum();
        let idle = classes.iter().all(|class| class.pending == 0);
        if idle || active >= limits.max_active {
            return None;
        }
        let below = |class: Class, limit: u32| {
            let stats = &classes[class as usize];
            stats.pending > 0 && stats.active < limit
        };
        let max = |class: Class| match class {
            Class::AsyncWrite => async_write_max,
            _ => limits.max[class as usize],
        };
        let (before, from_turn) = Class::ALL.split_at(self.turn);
        let mut in_turn = from_turn.iter().chain(before).copied();
        let found = in_turn
            .find(|class| below(*class, limits.min[*class as usize]))
            .or_else(|| {
                Class::ALL
                    .into_iter()
                    .find(|class| below(*class, max(*class)))
            });
        // As in ZFS, the turns start again when no class may be served.
        self.turn = found.map_or(0, |class| (class as usize + 1) % Class::ALL.len());
        found
    }
}

impl Default for Rule {
    /// As in ZFS, the queue starts as if it had just served a sync read.
    fn default() -> Self {
        Rule { turn: 1 }
    }
}
