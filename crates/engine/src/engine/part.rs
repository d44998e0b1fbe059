//! The rest of a command that takes more than one step.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::inject::RuleId;
use crate::zio::{DiskId, Errno, ZioId};

/// Some zios, each with its place in the order of issue, because its id may be used again.
pub(super) type Listed = VecDeque<(u64, ZioId)>;

/// The rest of a command.
#[derive(Debug)]
pub(super) enum Part {
    /// Rules have been cleared, and what they hold is released; none named: what any rule holds.
    Release {
        disk: DiskId,
        rules: Option<Vec<RuleId>>,
        held: Listed,
    },
    /// A disk is resumed, and what has waited is issued.
    Resume(DiskId),
    /// The disks are closed, and what waits or is held fails.
    Fail {
        disk: DiskId,
        errno: Errno,
        held: Listed,
    },
}

/// How many zios whose time has come a step wakes up, releases, issues or fails. Each may end, and its reply take as
/// long as all the rest.
pub(super) const ZIOS_PER_STEP: usize = 256;
