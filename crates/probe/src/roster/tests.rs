use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::io::Rwbs;

/// A sysfs that a test changes.
struct Sys(tempfile::TempDir);

impl Sys {
    fn new() -> Sys {
        let sys = Sys(tempfile::tempdir().expect("a directory"));
        for path in ["class/block", "dev/block", "kernel"] {
            fs::create_dir_all(sys.0.path().join(path)).expect("a directory");
        }
        sys.count(1);
        sys
    }

    fn count(&self, events: u64) {
        let path = self.0.path().join("kernel/uevent_seqnum");
        fs::write(path, format!("{events}\n")).expect("a file");
    }

    fn make(&self, name: &str, minor: u32, sequence: u64) {
        let home = self.0.path().join("devices").join(name);
        fs::create_dir_all(home.join("mq")).expect("a directory");
        for (file, text) in [
            ("dev", format!("7:{minor}")),
            ("size", "64".to_owned()),
            ("diskseq", sequence.to_string()),
        ] {
            fs::write(home.join(file), text + "\n").expect("a file");
        }
        for link in [
            format!("class/block/{name}"),
            format!("dev/block/7:{minor}"),
        ] {
            let link = self.0.path().join(link);
            let _ = fs::remove_file(&link);
            symlink(&home, link).expect("a link");
        }
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.path().join("class/block").join(name)).expect("a link");
        fs::remove_dir_all(self.0.path().join("devices").join(name)).expect("a directory");
    }

    /// Puts the upper disk over the lower one, as the device mapper does.
    fn stack(&self, upper: &str, lower: &str) {
        let slaves = self.0.path().join("devices").join(upper).join("slaves");
        fs::create_dir_all(&slaves).expect("a directory");
        symlink(
            self.0.path().join("devices").join(lower),
            slaves.join(lower),
        )
        .expect("a link");
    }

    fn roster(&self, takes_later: bool) -> Roster {
        let there = list(self.0.path()).expect("devices");
        Roster::new_in(self.0.path(), &there, takes_later)
    }
}

fn io(minor: u32, begun_ns: u64, ended_ns: u64) -> Io {
    Io {
        device: Number { major: 7, minor },
        rwbs: Rwbs::new(b"R"),
        sector: 8,
        bytes: 512,
        queued_ns: None,
        issued_ns: begun_ns,
        completed_ns: ended_ns,
        error: 0,
        merged: 0,
        requeued: 0,
        submitter: None,
    }
}

fn of(name: &str) -> Belongs {
    Belongs::Of(name.into())
}

fn names<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> Vec<String> {
    names.into_iter().map(ToString::to_string).collect()
}

fn gone_names(roster: &Roster) -> Vec<String> {
    roster.gone().map(|gone| gone.name.to_string()).collect()
}

#[test]
fn a_disk_that_appears_later_is_watched_and_named() {
    let sys = Sys::new();
    sys.make("loop0", 0, 1);
    let mut roster = sys.roster(true);
    assert!(!roster.look_in(sys.0.path(), 10));
    sys.make("loop1", 1, 2);
    assert!(
        !roster.look_in(sys.0.path(), 20),
        "the kernel's count is the same"
    );
    sys.count(2);
    assert!(roster.look_in(sys.0.path(), 30));
    assert_eq!(names(&roster.take_changes().appeared), ["loop1"]);
    assert_eq!(
        roster.place(&io(1, 25, 27)),
        of("loop1"),
        "no earlier disk had this number"
    );
    assert_eq!(roster.place(&io(2, 25, 27)), Belongs::Elsewhere);
    sys.remove("loop1");
    assert!(
        roster.look_in(sys.0.path(), 40 + LOOK_NS),
        "without the count, once a second"
    );
    let gone = Gone {
        name: "loop1".into(),
        replaced: None,
    };
    assert_eq!(roster.take_changes().vanished, [gone]);
    assert_eq!(
        roster.place(&io(1, 35, 37)),
        of("loop1"),
        "its last I/Os may be read later"
    );
    assert_eq!(gone_names(&roster), ["loop1"]);
}

#[test]
fn a_disk_with_the_number_of_another_is_another() {
    let sys = Sys::new();
    sys.make("loop0", 0, 1);
    let mut all = sys.roster(true);
    let mut named = sys.roster(false);
    for roster in [&mut all, &mut named] {
        roster.look_in(sys.0.path(), 10);
    }
    sys.make("loop0", 0, 5);
    sys.count(2);
    for (roster, is_watched) in [(&mut all, true), (&mut named, false)] {
        assert!(roster.look_in(sys.0.path(), 50));
        let changes = roster.take_changes();
        let replaced = Some(("loop0#5".into(), is_watched));
        assert_eq!(
            changes.vanished,
            [Gone {
                name: "loop0".into(),
                replaced
            }]
        );
        assert_eq!(changes.appeared.len(), usize::from(is_watched));
        assert_eq!(roster.place(&io(0, 5, 9)), of("loop0"));
        assert_eq!(roster.place(&io(0, 20, 30)), Belongs::Undecided);
        let later = if is_watched {
            of("loop0#5")
        } else {
            Belongs::Elsewhere
        };
        assert_eq!(roster.place(&io(0, 60, 70)), later);
        assert_eq!(roster.is_over(), !is_watched);
    }
    // Between the two looks, the longest time without I/O was from 22 to 40.
    let ios = vec![io(0, 42, 44), io(0, 12, 22), io(0, 40, 41)];
    let decided = |roster: &Roster| -> Vec<(String, u64)> {
        let decided = roster.decide(ios.clone()).into_iter();
        decided
            .map(|(name, io)| (name.to_string(), io.issued_ns))
            .collect()
    };
    let own = |name: &str, begun_ns| (name.to_owned(), begun_ns);
    assert_eq!(
        decided(&all),
        [own("loop0", 12), own("loop0#5", 40), own("loop0#5", 42)]
    );
    assert_eq!(decided(&named), [own("loop0", 12)]);
}

#[test]
fn a_disk_that_is_gone_for_a_while_is_another_when_it_is_back() {
    let sys = Sys::new();
    sys.make("loop0", 0, 1);
    let mut named = sys.roster(false);
    sys.remove("loop0");
    named.look_in(sys.0.path(), 10);
    sys.make("loop0", 0, 2);
    sys.count(2);
    named.look_in(sys.0.path(), 20);
    assert_eq!(named.place(&io(0, 30, 40)), Belongs::Elsewhere);
    assert_eq!(gone_names(&named), ["loop0"]);
}

#[test]
fn a_disk_that_was_seen_to_be_gone_has_no_later_io() {
    let sys = Sys::new();
    sys.make("loop0", 0, 1);
    let mut roster = sys.roster(true);
    sys.remove("loop0");
    roster.look_in(sys.0.path(), 10);
    sys.make("loop0", 0, 2);
    sys.count(2);
    roster.look_in(sys.0.path(), 50);
    assert_eq!(roster.place(&io(0, 5, 9)), of("loop0"));
    assert_eq!(
        roster.place(&io(0, 12, 14)),
        of("loop0#2"),
        "long before the look that found it"
    );
}

#[test]
fn a_host_that_makes_disks_all_day_fills_no_memory() {
    let sys = Sys::new();
    let mut roster = sys.roster(true);
    for round in 0..500 {
        sys.make("loop0", 0, round);
        roster.look_in(sys.0.path(), (2 * round + 1) * LOOK_NS);
        sys.remove("loop0");
        roster.look_in(sys.0.path(), (2 * round + 2) * LOOK_NS);
    }
    assert_eq!(roster.known.len(), GONE_MAX);
    assert_eq!(roster.take_changes().appeared.len(), 500);
}

proptest! {
    /// The I/Os of the old disk end before it is removed, and those of the new one begin after it is made. If
    /// that takes longer than either disk is ever idle, each I/O goes to its own disk.
    #[test]
    fn the_longest_pause_divides_two_disks(
        old in prop::collection::vec((0..10_u64, 1..10_u64), 0..8),
        new in prop::collection::vec((0..10_u64, 1..10_u64), 0..8),
    ) {
        let mut now_ns = 1_000;
        let mut ios = Vec::new();
        let mut run = |now_ns: &mut u64, own: &[(u64, u64)]| {
            for (pause_ns, takes_ns) in own {
                let begun_ns = *now_ns + pause_ns;
                *now_ns = begun_ns + takes_ns;
                ios.push(io(0, begun_ns, *now_ns));
            }
        };
        run(&mut now_ns, &old);
        now_ns += 100;
        run(&mut now_ns, &new);
        prop_assert_eq!(before_longest_gap(&ios, 1_000, now_ns), old.len());
    }
}

#[test]
fn a_disk_over_others_is_known_as_such_unless_the_user_named_it() {
    let sys = Sys::new();
    for (name, minor) in [("a", 1), ("b", 2), ("md0", 3)] {
        sys.make(name, minor, minor.into());
    }
    sys.stack("md0", "b");
    sys.stack("md0", "a");
    let over = |roster: &Roster| -> Vec<Vec<String>> {
        roster.watched().map(|one| one.over.clone()).collect()
    };
    let none: Vec<String> = Vec::new();
    let mut roster = sys.roster(true);
    let both = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(over(&roster), [none.clone(), none.clone(), both]);
    sys.make("dm-0", 4, 4);
    sys.stack("dm-0", "md0");
    sys.count(2);
    roster.look_in(sys.0.path(), 1);
    assert_eq!(over(&roster).last(), Some(&vec!["md0".to_owned()]));
    assert_eq!(over(&sys.roster(false)), vec![none; 4]);
}
