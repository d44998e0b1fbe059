//! Extents: runs of a disk's bytes that either have data or are a hole. Clients can ask for the extents of a
//! disk.

/// A run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The length of the run in bytes.
    pub(crate) length: u64,
    /// Whether the run is a hole: it takes no space, and reads as zeroes.
    pub(crate) hole: bool,
}

/// Collects extents in the order of their offsets, up to a limit.
pub(crate) struct Found<'a> {
    extents: &'a mut Vec<Extent>,
    limit: usize,
}

impl<'a> Found<'a> {
    /// Clears `extents`, and collects at most `limit` extents into it. `limit` must not be zero.
    pub(crate) fn new(extents: &'a mut Vec<Extent>, limit: usize) -> Found<'a> {
        extents.clear();
        Found { extents, limit }
    }

    /// Adds a run. If the last run is of the same kind, lengthens it instead. Returns false if there is no
    /// room for the run.
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

    /// Adds the only run of a range, which covers all of it.
    pub(crate) fn only(mut self, length: u64, hole: bool) {
        self.push(length, hole);
    }
}
