//! The start of a mirror: decides which sides are current, and in which ranges the sides may differ.
//!
//! The rules are those of Linux's md, which counts events in the superblocks of its disks.

use std::iter;
use std::ops::Range;

use dashpot_engine::pool::MirrorStart;

use super::{Label, Side};

/// The state in which a mirror starts, and the mirror's sides.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) known: MirrorStart,
    /// The name that the labels give the mirror; `None` if the mirror has no name yet.
    pub(super) mirror: Option<String>,
    pub(super) events: u64,
    pub(crate) sides: Vec<Side>,
    /// A sentence for the user, if the mirror has to be repaired.
    pub(crate) note: Option<String>,
}

/// A side, its label, and the ranges in which it may have data.
pub(crate) type Found = (Side, Option<Label>, Vec<Range<u64>>);

/// Decides how a mirror starts. `size` is the size of the smallest side. An error says why the sides do
/// not belong together.
pub(crate) fn assemble(found: Vec<Found>, size: u64) -> Result<Start, String> {
    let labels = || found.iter().filter_map(|(_, label, _)| label.as_ref());
    check_one_mirror(&found)?;
    let events = labels().map(|label| label.events).max();
    let is_fresh = |(side, label, _): &Found| match (label, events) {
        // The last stop may have come when one side's label was already written and another's was not, so the
        // event counts of current labels may differ by one.
        (Some(label), Some(events)) => label.events + 1 >= events,
        (None, Some(_)) => false,
        (_, None) => side.has_place(),
    };
    // If no side has a label, the first side is as good as any other.
    let first = found.iter().position(is_fresh).unwrap_or(0);
    let is_believed =
        |(at, side): (usize, &Found)| at == first || (events.is_some() && is_fresh(side));
    let sides = || found.iter().enumerate();
    let stale = sides().filter(|side| !is_believed(*side));
    let stale: u64 = stale.map(|(at, _)| 1 << at).sum();
    let differ = match stale {
        0 => joined(labels().flat_map(|label| label.ranges(size))),
        _ => iter::once(0..size).collect(),
    };
    let data = joined(found.iter().flat_map(|(.., data)| data.iter().cloned()));
    let differ = common(&differ, &data);
    let mirror = labels().next().map(|label| label.mirror.clone());
    let note = note(&found, stale, &differ);
    Ok(Start {
        known: MirrorStart { stale, differ },
        mirror,
        events: events.unwrap_or(0),
        sides: found.into_iter().map(|(side, ..)| side).collect(),
        note,
    })
}

/// Refuses sides whose labels name two different mirrors, because it is not clear which side to overwrite.
fn check_one_mirror(found: &[Found]) -> Result<(), String> {
    let mut labelled = found
        .iter()
        .filter_map(|(side, label, _)| Some((&side.disk, label.as_ref()?)));
    let Some((first, label)) = labelled.next() else {
        return Ok(());
    };
    match labelled.find(|(_, other)| other.mirror != label.mirror) {
        None => Ok(()),
        Some((other, _)) => Err(format!(
            "`{first}` and `{other}` are sides of two different mirrors, by their labels: put the right files \
             together, or remove the label of the side to overwrite: `setfattr -x user.dashpot.mirror FILE`, \
             or delete the side's line in the pool's bitmap"
        )),
    }
}

fn note(found: &[Found], stale: u64, differ: &[Range<u64>]) -> Option<String> {
    let bytes: u64 = differ.iter().map(|range| range.end - range.start).sum();
    if bytes == 0 {
        return None;
    }
    let names = |keep: &dyn Fn(usize) -> bool| {
        let names = found.iter().enumerate().filter(|(at, _)| keep(*at));
        let names = names.map(|(_, (side, ..))| format!("`{}`", side.disk));
        names.collect::<Vec<_>>().join(", ")
    };
    let mib = bytes.div_ceil(1 << 20);
    if stale == 0 {
        let all = names(&|_| true);
        return Some(format!(
            "the last stop was not clean: up to {mib} MiB are copied from one side of {all} to the others"
        ));
    }
    let (to, from) = (
        names(&|at| stale >> at & 1 == 1),
        names(&|at| stale >> at & 1 == 0),
    );
    let why = if found
        .iter()
        .enumerate()
        .any(|(at, (side, ..))| stale >> at & 1 == 1 && !side.has_place())
    {
        "no label says where it differs; if it is a block device, give the pool bitmap = \"FILE\""
    } else {
        "it has no label of this mirror, or an old one"
    };
    Some(format!(
        "up to {mib} MiB are copied from {from} to {to}: {why}"
    ))
}

/// The union of ranges, in order.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The ranges that are in both lists.
fn common(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut common = Vec::new();
    let mut rest = other;
    for range in one {
        while rest.first().is_some_and(|first| first.end <= range.start) {
            rest = &rest[1..];
        }
        for next in rest.iter().take_while(|next| next.start < range.end) {
            let both = next.start.max(range.start)..next.end.min(range.end);
            if both.start < both.end {
                common.push(both);
            }
        }
    }
    common
}

#[cfg(test)]
mod tests;
