//! Extents: runs of bytes of a disk, each with data or without data. Clients can ask for the extents.

/// A run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The length of the run in bytes.
    pub(crate) length: u64,
    /// Whether the run takes no space. A hole reads as zeroes.
    pub(crate) hole: bool,
}

/// Collects extents in the order of their offsets, up to a limit.
pub(crate) struct Found<'a> {
    extents: &'a mut Vec<Extent>,
    limit: usize,
}

impl<'a> Found<'a> {
    /// Clears `extents` and collects into it. `limit` is not zero.
    pub(crate) fn new(extents: &'a mut Vec<Extent>, limit: usize) -> Found<'a> {
        extents.clear();
        Found { extents, limit }
    }

    /// Adds a run, or lengthens the last run if both are holes or both are data. Returns false if there
    /// is no room for the run.
    pub(crate) fn push(&mut self, length: u64, hole: bool) -> bool {
        if let Some(last) = self.extents.last_mut()
            && last.hole == hole
        {
            last.length += length;
        } else if self.extents.len() < self.limit {
            self.extents.push(Extent { length, hole });
        } else {
            return false;
        }
        true
    }

    /// Adds the whole range as one run.
    pub(crate) fn only(mut self, length: u64, hole: bool) {
        self.push(length, hole);
    }
}
