//! The possible contents of the sectors of one disk or volume, as far as its clients can know.
//!
//! A write that has succeeded excludes the content of each earlier write that had ended before the new write
//! was submitted. A sector may hold any content that no write has excluded. A read may return any content
//! that was possible at some moment between its submission and its reply. After a loss of power, the disks
//! may hold even older contents: all that were possible when the last successful flush was submitted, except
//! those that a write with FUA has excluded.
//!
//! A write that failed or was aborted may or may not have taken effect, and the same is true of every trim.
//! Failed and aborted writes and trims therefore exclude no other content.

use std::collections::BTreeSet;

use super::sectors::{Content, Sparse};

/// A moment: the number of a submission or of a reply. Submissions and replies are numbered in one sequence,
/// in the order in which they happen.
pub(crate) type Moment = u64;

/// The history of one disk or volume, as its clients know it.
#[derive(Debug, Default)]
pub(crate) struct History {
    sectors: Sparse<Vec<Version>>,
    now: Moment,
    /// When the last successful flush was submitted.
    flushed: Moment,
    /// When the reads in flight were submitted.
    reads: BTreeSet<Moment>,
}

/// A possible content of a sector.
#[derive(Clone, Copy, Debug)]
struct Version {
    content: Content,
    write: u64,
    replied: Option<Moment>,
    /// Whether a reply to the write proves that this version replaced the old content.
    sure: bool,
    /// A read that is submitted after this moment cannot return this version.
    over: Option<Moment>,
    /// Whether this version can never come back, because the write that replaced it was durable when it was
    /// acknowledged.
    over_for_good: bool,
}

/// A write, zero or trim in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) write: u64,
    pub(crate) first: u64,
    pub(crate) sectors: u64,
    pub(crate) submitted: Moment,
    pub(crate) durable: bool,
}

impl Version {
    /// The initial content of every sector.
    const FIRST: Version = Version {
        content: Content::ZERO,
        write: 0,
        replied: Some(0),
        sure: true,
        over: None,
        over_for_good: false,
    };

    fn readable_since(&self, moment: Moment) -> bool {
        self.over.is_none_or(|over| over > moment)
    }

    fn survives(&self, flushed: Moment) -> bool {
        !self.over_for_good && self.readable_since(flushed)
    }
}

impl History {
    /// The next moment.
    pub(crate) fn moment(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// Notes that a write with these contents was submitted. A write that is not `sure` may leave
    /// the old contents.
    pub(crate) fn write_submitted(
        &mut self,
        writing: &Writing,
        sure: bool,
        content: impl Fn(u64) -> Content,
    ) {
        for place in 0..writing.sectors {
            let versions = self.sectors.get_mut(writing.first + place);
            if versions.is_empty() {
                versions.push(Version::FIRST);
            }
            versions.push(Version {
                content: content(place),
                write: writing.write,
                replied: None,
                sure,
                over: None,
                over_for_good: false,
            });
        }
    }

    /// Notes that a write got its reply, or that the engine dropped it.
    pub(crate) fn write_replied(&mut self, writing: &Writing, succeeded: bool) {
        let now = self.moment();
        let oldest_read = self.reads.first().copied().unwrap_or(Moment::MAX);
        for sector in writing.first..writing.first + writing.sectors {
            let versions = self.sectors.get_mut(sector);
            let own = versions
                .iter_mut()
                .find(|version| version.write == writing.write);
            let Some(own) = own else {
                continue;
            };
            own.replied = Some(now);
            own.sure &= succeeded;
            if own.sure {
                let before = |replied: Moment| replied < writing.submitted;
                for version in versions.iter_mut() {
                    if version.replied.is_some_and(before) {
                        version.over.get_or_insert(now);
                        version.over_for_good |= writing.durable;
                    }
                }
            }
            let flushed = self.flushed;
            versions
                .retain(|version| version.survives(flushed) || version.readable_since(oldest_read));
        }
    }

    /// Notes that a read was submitted.
    pub(crate) fn read_submitted(&mut self) -> Moment {
        let now = self.moment();
        self.reads.insert(now);
        now
    }

    /// Checks the contents that a read has returned, if it did not fail.
    pub(crate) fn read_replied(
        &mut self,
        first: u64,
        submitted: Moment,
        contents: Option<&[Content]>,
    ) -> Result<(), String> {
        self.reads.remove(&submitted);
        let now = self.moment();
        for (sector, content) in (first..).zip(contents.unwrap_or_default()) {
            let touched = !self.sectors.get(sector).is_empty();
            if !touched && *content == Content::ZERO {
                continue;
            }
            let versions = self.sectors.get_mut(sector);
            if !may_return(versions, *content, submitted) {
                return Err(format!(
                    "a read of sector {sector} has returned {content}; it may hold {}",
                    listed(versions.iter().filter(|v| v.readable_since(submitted)))
                ));
            }
            settle(versions, *content, submitted, now);
        }
        Ok(())
    }

    /// Notes that the flush submitted at the moment `submitted` has succeeded.
    pub(crate) fn flushed(&mut self, submitted: Moment) {
        self.flushed = self.flushed.max(submitted);
    }

    /// Checks that a sector may hold this content after a loss of power.
    pub(crate) fn may_survive(&self, sector: u64, content: Content) -> Result<(), String> {
        let versions = self.sectors.get(sector);
        let survivor = |version: &&Version| version.survives(self.flushed);
        let fits = |version: &Version| version.content == content;
        let untouched = versions.is_empty() && content == Content::ZERO;
        if untouched || versions.iter().filter(survivor).any(fits) {
            return Ok(());
        }
        Err(format!(
            "after a loss of power sector {sector} holds {content}; it may hold {}",
            listed(versions.iter().filter(survivor))
        ))
    }

    /// The sectors that were ever written.
    pub(crate) fn written(&self) -> impl Iterator<Item = u64> {
        let sectors = self.sectors.iter();
        let written = sectors.filter(|(_, versions)| !versions.is_empty());
        written.map(|(sector, _)| sector)
    }
}

fn may_return(versions: &[Version], content: Content, submitted: Moment) -> bool {
    let readable = versions.iter().filter(|v| v.readable_since(submitted));
    readable
        .map(|version| version.content)
        .any(|c| c == content)
}

/// Notes the content that a read has returned, if the writes of all versions had succeeded before the read
/// was submitted. The read shows which of several concurrent writes came last, so the sector cannot hold any
/// other content.
fn settle(versions: &mut [Version], content: Content, submitted: Moment, now: Moment) {
    let quiet = |version: &Version| {
        version.sure && version.replied.is_some_and(|replied| replied < submitted)
    };
    if !versions.iter().all(quiet) {
        return;
    }
    for version in versions {
        if version.content != content {
            version.over.get_or_insert(now);
        }
    }
}

fn listed<'a>(versions: impl Iterator<Item = &'a Version>) -> String {
    let contents: BTreeSet<String> = versions.map(|v| v.content.to_string()).collect();
    if contents.is_empty() {
        Content::ZERO.to_string()
    } else {
        contents.into_iter().collect::<Vec<_>>().join(" or ")
    }
}
