//! Extents: runs of blocks that a zero or trim has turned into zeroes. An extent is in memory until the pool
//! begins to write it, and is then on its way until the disks have written it.
//!
//! A separate dirty version of every block of a trim would cost as much memory and time as writing the
//! blocks. OpenZFS frees a trimmed range in the open txg (`dmu_free_long_range`, `dnode_free_range`). Here
//! the range keeps its place on the disks, so the pool writes the range to the disks as one zero or trim.
//!
//! Extents in memory do not overlap each other, and none of them contains a block with a version of its own,
//! because newer content replaces older content. Extents on their way do not overlap each other either. An
//! extent on its way is older than every other version of its blocks in memory.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::blocks::Content;
use crate::zio::ZioId;

#[derive(Debug, Default)]
pub(super) struct Extents {
    /// The extents in memory; the key is an extent's first block.
    dirty: BTreeMap<u32, Extent>,
    on_way: BTreeMap<u32, OnWay>,
}

/// An extent in memory.
#[derive(Debug)]
pub(super) struct Extent {
    pub(super) end: u32,
    pub(super) content: Content,
    pub(super) txg: u64,
    /// Requests that wait until the extent is on the disks.
    pub(super) watchers: Vec<ZioId>,
}

/// An extent that the pool has begun to write, and that the disks have not written yet.
#[derive(Debug)]
pub(super) struct OnWay {
    pub(super) end: u32,
    pub(super) content: Content,
    /// The id of the extent's write.
    pub(super) write: u32,
    pub(super) watchers: Vec<ZioId>,
    /// Whether the extent's last write failed. The pool will repeat that write.
    pub(super) failing: bool,
}

/// The result of taking a block out of an extent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Carved {
    /// The blocks that the extent had before.
    pub(super) range: Range<u32>,
    pub(super) txg: u64,
    /// How many extents remain of the old extent: none, one, or two.
    pub(super) left: u32,
    pub(super) watchers: Vec<ZioId>,
}

impl Extents {
    /// The content of a block, if an extent contains the block. The newest extent wins.
    #[inline]
    pub(super) fn content(&self, block: u32) -> Option<Content> {
        let dirty = at(&self.dirty, block).map(|(_, extent)| extent.content);
        dirty.or_else(|| at(&self.on_way, block).map(|(_, on_way)| on_way.content))
    }

    /// The write of the extent that contains a block, if such an extent is on its way.
    #[inline]
    pub(super) fn write_of(&self, block: u32) -> Option<u32> {
        at(&self.on_way, block).map(|(_, on_way)| on_way.write)
    }

    #[inline]
    pub(super) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The first block of each extent in memory that overlaps a range. The block may lie before the range.
    pub(super) fn meeting(&self, range: Range<u32>) -> impl Iterator<Item = u32> {
        meeting(&self.dirty, range).map(|(start, _)| start)
    }

    /// The first extent in memory that overlaps a range.
    pub(super) fn next_dirty(&self, range: Range<u32>) -> Option<Range<u32>> {
        next(&self.dirty, range)
    }

    /// The first extent on its way that overlaps a range.
    pub(super) fn next_on_way(&self, range: Range<u32>) -> Option<Range<u32>> {
        next(&self.on_way, range)
    }

    /// Whether no extent on its way overlaps a range.
    fn is_clear(&self, range: Range<u32>) -> bool {
        meeting(&self.on_way, range).next().is_none()
    }

    /// The extent in memory that begins at the block `start`.
    pub(super) fn get_mut(&mut self, start: u32) -> Option<&mut Extent> {
        self.dirty.get_mut(&start)
    }

    /// Lets an extent grow into the range if the extent ends where the range begins, has this content and
    /// txg, and no request waits for it. The extent grows up to the next extent. Returns the rest of the
    /// range.
    pub(super) fn grow(&mut self, range: Range<u32>, content: Content, txg: u64) -> Range<u32> {
        let end = self
            .next_dirty(range.clone())
            .map_or(range.end, |next| next.start);
        let before = self.dirty.range_mut(..range.start).next_back();
        let alike = before.map(|(_, extent)| extent).filter(|extent| {
            let is_like = extent.content == content && extent.txg == txg;
            is_like && extent.end == range.start && extent.watchers.is_empty()
        });
        match alike {
            Some(extent) if end > range.start => {
                extent.end = end;
                end..range.end
            }
            _ => range,
        }
    }

    /// Fills the gaps between the extents of a range with new extents. If the new content is zeroes, the
    /// trimmed extents of the range become zeroes, too. Returns how many extents were added.
    pub(super) fn fill(&mut self, range: Range<u32>, content: Content, txg: u64) -> u32 {
        let (mut gaps, mut from) = (Vec::new(), range.start);
        for start in self.meeting(range.clone()).collect::<Vec<u32>>() {
            let Some(extent) = self.dirty.get_mut(&start) else {
                continue;
            };
            if content == Content::Zero {
                extent.content = Content::Zero;
            }
            gaps.push(from..start);
            from = extent.end;
        }
        gaps.push(from..range.end);
        gaps.retain(|gap| gap.start < gap.end);
        for gap in &gaps {
            let extent = Extent {
                end: gap.end,
                content,
                txg,
                watchers: Vec::new(),
            };
            self.dirty.insert(gap.start, extent);
        }
        gaps.len() as u32
    }

    /// Takes a block out of the extent in memory that contains it, if there is such an extent.
    pub(super) fn carve(&mut self, block: u32) -> Option<Carved> {
        let start = at(&self.dirty, block)?.0;
        let extent = self.dirty.remove(&start)?;
        let parts = [start..block, block + 1..extent.end];
        let mut left = 0;
        for part in parts.into_iter().filter(|part| part.start < part.end) {
            left += 1;
            let rest = Extent {
                end: part.end,
                watchers: extent.watchers.clone(),
                ..extent
            };
            self.dirty.insert(part.start, rest);
        }
        Some(Carved {
            range: start..extent.end,
            txg: extent.txg,
            left,
            watchers: extent.watchers,
        })
    }

    /// Takes an extent out of memory to send it, unless an extent that overlaps it is on its way.
    pub(super) fn take(&mut self, start: u32) -> Option<Extent> {
        let end = self.dirty.get(&start)?.end;
        if self.is_clear(start..end) {
            self.dirty.remove(&start)
        } else {
            None
        }
    }

    pub(super) fn sent(&mut self, start: u32, extent: Extent, write: u32) {
        let on_way = OnWay {
            end: extent.end,
            content: extent.content,
            write,
            watchers: extent.watchers,
            failing: false,
        };
        self.on_way.insert(start, on_way);
    }

    /// The extent on its way that begins at the block `start`.
    pub(super) fn on_way(&mut self, start: u32) -> Option<&mut OnWay> {
        self.on_way.get_mut(&start)
    }

    /// The request that has waited longest for an extent on its way.
    pub(super) fn first_watcher(&self, start: u32) -> Option<ZioId> {
        self.on_way.get(&start)?.watchers.first().copied()
    }

    /// Makes an extent on its way begin at the block `to`.
    pub(super) fn shrink(&mut self, start: u32, to: u32) {
        if let Some(extent) = self.on_way.remove(&start) {
            self.on_way.insert(to, extent);
        }
    }

    /// Forgets one of the extents. False if there is none.
    pub(super) fn lose_one(&mut self) -> bool {
        self.dirty.pop_first().is_some() || self.on_way.pop_first().is_some()
    }

    /// Forgets an extent that has been written to the disks.
    pub(super) fn home(&mut self, start: u32) -> Option<OnWay> {
        self.on_way.remove(&start)
    }
}

trait Run {
    fn end(&self) -> u32;
}

impl Run for Extent {
    fn end(&self) -> u32 {
        self.end
    }
}

impl Run for OnWay {
    fn end(&self) -> u32 {
        self.end
    }
}

/// The run that contains a block.
#[inline]
fn at<R: Run>(runs: &BTreeMap<u32, R>, block: u32) -> Option<(u32, &R)> {
    let (start, run) = runs.range(..=block).next_back()?;
    (run.end() > block).then_some((*start, run))
}

/// The runs that overlap a range, in order.
fn meeting<R: Run>(runs: &BTreeMap<u32, R>, range: Range<u32>) -> impl Iterator<Item = (u32, &R)> {
    let first = at(runs, range.start).map_or(range.start, |(start, _)| start);
    runs.range(first..range.end)
        .map(|(start, run)| (*start, run))
}

/// The first run that overlaps a range.
fn next<R: Run>(runs: &BTreeMap<u32, R>, range: Range<u32>) -> Option<Range<u32>> {
    if range.is_empty() {
        return None;
    }
    let (start, run) = meeting(runs, range).next()?;
    Some(start..run.end())
}

#[cfg(test)]
mod tests {
    use super::{Content, Extents};
    use alloc::vec::Vec;

    fn dirty(extents: &Extents) -> Vec<(u32, u32)> {
        let dirty = extents.dirty.iter();
        dirty.map(|(start, extent)| (*start, extent.end)).collect()
    }

    #[test]
    fn new_extents_fill_the_gaps_between_old_ones() {
        let mut extents = Extents::default();
        assert_eq!(extents.fill(10..20, Content::Trim, 4), 1);
        assert_eq!(extents.fill(30..40, Content::Trim, 4), 1);
        assert_eq!(extents.fill(15..35, Content::Zero, 5), 1);
        assert_eq!(dirty(&extents), [(10, 20), (20, 30), (30, 40)]);
        assert_eq!(extents.fill(10..40, Content::Trim, 6), 0);
        assert_eq!(extents.content(10), Some(Content::Zero));
        assert_eq!(extents.content(9), None);
        assert_eq!(extents.content(40), None);
    }

    #[test]
    fn an_extent_grows_into_the_next_part_of_its_run() {
        let mut extents = Extents::default();
        extents.fill(10..20, Content::Trim, 4);
        extents.fill(30..40, Content::Trim, 4);
        assert_eq!(extents.grow(20..50, Content::Zero, 4), 20..50);
        assert_eq!(extents.grow(20..50, Content::Trim, 5), 20..50);
        assert_eq!(extents.grow(21..50, Content::Trim, 4), 21..50);
        assert_eq!(extents.grow(20..50, Content::Trim, 4), 30..50);
        assert_eq!(dirty(&extents), [(10, 30), (30, 40)]);
        assert_eq!(extents.grow(30..50, Content::Trim, 4), 30..50);
    }

    #[test]
    fn a_carved_block_leaves_the_rest() {
        let mut extents = Extents::default();
        extents.fill(10..14, Content::Trim, 4);
        let mut left = |block| extents.carve(block).map(|carved| carved.left);
        assert_eq!(left(9), None);
        assert_eq!(left(11), Some(2));
        assert_eq!(left(10), Some(0));
        assert_eq!(left(10), None);
        assert_eq!(left(13), Some(1));
        assert_eq!(dirty(&extents), [(12, 13)]);
    }

    #[test]
    fn an_extent_waits_for_one_on_its_way() {
        let mut extents = Extents::default();
        extents.fill(10..20, Content::Trim, 4);
        let extent = extents.take(10).unwrap();
        extents.sent(10, extent, 7);
        assert_eq!(extents.write_of(19), Some(7));
        extents.fill(19..22, Content::Zero, 4);
        assert_eq!(extents.content(19), Some(Content::Zero));
        assert!(extents.take(19).is_none());
        assert!(extents.home(10).is_some());
        assert!(extents.take(19).is_some());
    }
}
