//! What every source is.

use dashpot_observe::Seen;

/// Sees what devices do, one interval after another. Each knows its question and its schedule from its
/// beginning.
pub(crate) trait Source {
    /// What the devices did from their start until the first interval; `None` if the source has not
    /// seen that.
    fn since_start(&mut self) -> anyhow::Result<Option<Seen>> {
        Ok(None)
    }

    /// Waits until the next interval has ended. `None` if the last one has, or if Ctrl-C has ended it.
    fn next(&mut self) -> anyhow::Result<Option<Seen>>;
}
