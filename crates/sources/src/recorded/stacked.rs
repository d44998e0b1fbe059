//! The disks of a recording that are over others, so that sums leave them out. A session may have a disk over
//! others that another session has alone.

use std::collections::BTreeSet;

use anyhow::bail;
use dashpot_observe::{FinishedIo, Layer, Stacked};
use dashpot_probe::UNKNOWN_DISK;

use super::spans::Period;
use crate::devices::twice;

/// The stacked disks that sums leave out, each with the session in which it is over others.
#[derive(Clone, Debug)]
pub(super) struct LeftOut(Vec<(Period, Stacked)>);

impl LeftOut {
    /// The stacked disks of a recording, each with the time at which its recorder found it: none if the user has
    /// named disks. Two that the user has named and that would count an I/O twice are refused, as of live disks.
    pub(super) fn of(
        stacked: &[(u64, Stacked)],
        sessions: &[Period],
        names: &[String],
        known: &BTreeSet<(Layer, String)>,
    ) -> anyhow::Result<LeftOut> {
        let session_of = |at_ns: u64| {
            let begun = sessions.partition_point(|session| session.from_ns <= at_ns);
            begun.saturating_sub(1)
        };
        let mut left_out = Vec::new();
        for (at, session) in sessions.iter().enumerate() {
            let own = stacked.iter().filter(|(at_ns, _)| session_of(*at_ns) == at);
            let own: Vec<&Stacked> = own.map(|(_, one)| one).collect();
            for one in &own {
                let below = all_beneath(one, &own);
                let is_named = |name: &str| names.iter().any(|named| named == name);
                if let Some(below) = below.iter().find(|below| is_named(below))
                    && is_named(&one.device)
                {
                    bail!("{}", twice(&one.device, below));
                }
                // A part of a recording may lack the disks beneath.
                let is_known = |below: &str| known.contains(&(one.layer, below.to_owned()));
                let counts_twice = |below: &&str| *below == UNKNOWN_DISK || is_known(below);
                if names.is_empty() && below.iter().any(counts_twice) {
                    left_out.push((*session, (*one).clone()));
                }
            }
        }
        Ok(LeftOut(left_out))
    }

    /// The disks of a period's sessions, each once, with what was last beneath it.
    pub(super) fn within(&self, period: Period) -> Vec<Stacked> {
        let mut all: Vec<Stacked> = Vec::new();
        for (session, one) in &self.0 {
            if session.shared_ns(period) > 0 {
                all.retain(|known| !known.is_of(one.layer, &one.device));
                all.push(one.clone());
            }
        }
        all
    }

    /// Whether sums leave out this I/O.
    pub(super) fn has(&self, io: &FinishedIo) -> bool {
        self.0
            .iter()
            .any(|(session, one)| one.is_of(io.layer, &io.device) && session.has(io.at_ns))
    }
}

/// The names of the disks beneath a disk on all levels.
fn all_beneath<'a>(upper: &'a Stacked, all: &[&'a Stacked]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut above = vec![upper];
    while let Some(upper) = above.pop() {
        for below in &upper.over {
            if found.insert(&**below) {
                above.extend(all.iter().filter(|one| one.is_of(upper.layer, below)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use dashpot_observe::Kind;

    use super::*;

    const SESSIONS: [Period; 2] = [
        Period {
            from_ns: 10,
            to_ns: 20,
        },
        Period {
            from_ns: 30,
            to_ns: 40,
        },
    ];

    fn over(at_ns: u64, device: &str, over: &str) -> (u64, Stacked) {
        let stacked = Stacked {
            layer: Layer::Disk,
            device: device.to_owned(),
            over: vec![over.to_owned()],
        };
        (at_ns, stacked)
    }

    fn known(devices: &[&str]) -> BTreeSet<(Layer, String)> {
        let each = devices
            .iter()
            .map(|device| (Layer::Disk, (*device).to_owned()));
        each.collect()
    }

    fn names(disks: &[Stacked]) -> Vec<String> {
        disks.iter().map(|one| one.device.clone()).collect()
    }

    #[test]
    fn a_disk_is_over_others_in_its_own_session_only() {
        let marks = [over(31, "loop0", "vda"), over(5, "dm-0", "vda")];
        let left_out = LeftOut::of(&marks, &SESSIONS, &[], &known(&["vda", "loop0", "dm-0"]));
        let left_out = left_out.expect("the disks");
        let within = |from_ns, to_ns| names(&left_out.within(Period { from_ns, to_ns }));
        assert_eq!(within(0, 20), ["dm-0"]);
        assert_eq!(within(20, 40), ["loop0"]);
        assert_eq!(within(0, 40), ["dm-0", "loop0"]);
        let marks = [over(11, "loop0", "vda"), over(12, "loop0", "vdb")];
        let again = LeftOut::of(&marks, &SESSIONS, &[], &known(&["vda", "vdb", "loop0"]));
        let last = again.expect("the disks").within(SESSIONS[0]);
        assert_eq!(last, [over(0, "loop0", "vdb").1]);
        let has = |device: &str, at_ns| {
            let kind = Kind::of_word("read");
            left_out.has(&FinishedIo {
                at_ns,
                ..FinishedIo::bare(Layer::Disk, device.into(), kind)
            })
        };
        assert!(has("dm-0", 15) && has("loop0", 35));
        assert!(!has("dm-0", 35) && !has("loop0", 15) && !has("vda", 15));
    }

    #[test]
    fn a_disk_is_over_those_on_all_levels() {
        let marks = [over(12, "loop1", "loop0"), over(11, "loop0", "vda")];
        let named = ["vda", "loop1"].map(str::to_owned);
        let of = |names: &[String], devices: &[&str]| {
            LeftOut::of(&marks, &SESSIONS, names, &known(devices))
        };
        let refused = of(&named, &["vda", "loop0", "loop1"]).expect_err("two of one");
        assert_eq!(refused.to_string(), twice("loop1", "vda"));
        let within = |left_out: anyhow::Result<LeftOut>| {
            let left_out = left_out.expect("the disks");
            names(&left_out.within(SESSIONS[0]))
        };
        // A part without the disk between.
        assert_eq!(within(of(&[], &["vda", "loop1"])), ["loop1", "loop0"]);
        assert!(within(of(&named[..1], &["vda", "loop1"])).is_empty());
    }
}
