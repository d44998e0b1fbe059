//! Tests of the recorder, with clocks that the test controls.

mod kept;

use std::collections::BTreeMap;
use std::fs::{DirEntry, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashpot_observe::FinishedIo;
use rustix::fs::{FlockOperation, flock};

use crate::clock::{Clock, Moment};
use crate::directory::files;
use crate::ios::{IOS, Recorded, column};
use crate::marks::{Event, MARKS};
use crate::query::Query;
use crate::reader::Recording;
use crate::recorder::{Options, Recorder, Summary};
use crate::seconds::{Count, SECONDS};
use crate::server::{AHEAD_NS, Server};
use crate::table::GROUP_ROWS;

const SECOND_NS: u64 = 1_000_000_000;

/// Clocks that the test moves.
#[derive(Default)]
struct TestClock {
    monotonic_ns: AtomicU64,
    suspended_ns: AtomicU64,
    stepped_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        let monotonic_ns = self.monotonic_ns.load(Ordering::Relaxed);
        let boottime_ns = monotonic_ns + self.suspended_ns.load(Ordering::Relaxed);
        Moment {
            monotonic_ns,
            boottime_ns,
            unix_ns: boottime_ns + self.stepped_ns.load(Ordering::Relaxed) + AHEAD_NS,
        }
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed)
    }
}

impl TestClock {
    fn at(start_ns: u64) -> Arc<TestClock> {
        let clock = TestClock::default();
        clock.monotonic_ns.store(start_ns, Ordering::Relaxed);
        Arc::new(clock)
    }

    fn pass(&self, ns: u64) {
        self.monotonic_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

fn recorder(root: &Path, keep_bytes: u64, clock: &Arc<TestClock>) -> Recorder {
    let options = Options {
        keep_bytes,
        host: "host".to_owned(),
        cpu_percent: 10,
    };
    Recorder::create(root, options, Arc::clone(clock) as Arc<dyn Clock>).expect("a recorder")
}

/// Records I/Os as they end, and seals whenever a seal is due. After each seal, this function waits for the
/// writer, so that nothing is lost.
fn record(recorder: &mut Recorder, clock: &TestClock, ios: &[FinishedIo]) {
    record_while(recorder, clock, ios, || ());
}

/// Like [`record`]. While the writer works, the function calls `look` again and again.
fn record_while(
    recorder: &mut Recorder,
    clock: &TestClock,
    ios: &[FinishedIo],
    mut look: impl FnMut(),
) {
    for io in ios {
        clock.monotonic_ns.store(io.ended_ns, Ordering::Relaxed);
        recorder.add(io);
        if recorder.is_due() {
            let seals = recorder.summary().seals;
            recorder.seal(&[]);
            settle(recorder, |summary| {
                look();
                summary.seals > seals
            });
        }
    }
}

/// The total size of all files of a recording, including the files that are being written.
fn bytes_on_disk(root: &Path) -> u64 {
    let folders = [&IOS, &SECONDS, &MARKS].map(|table| root.join(table.name));
    let size = |file: DirEntry| Some((file.path(), file.metadata().ok()?.len()));
    let entries = || folders.iter().filter_map(|folder| folder.read_dir().ok());
    let files = || -> BTreeMap<_, _> { entries().flatten().flatten().filter_map(size).collect() };
    // If a file came or went meanwhile, the sum could count a deleted file and its replacement.
    loop {
        let first = files();
        if first.keys().eq(files().keys()) {
            return first.values().sum();
        }
    }
}

/// Waits until the summary shows that the writer has done its jobs.
fn settle(recorder: &Recorder, mut is_done: impl FnMut(&Summary) -> bool) {
    while recorder.summary().stopped.is_none() && !is_done(&recorder.summary()) {
        std::thread::yield_now();
    }
}

fn recorded(root: &Path) -> Vec<Recorded> {
    let recording = Recording::open(root).expect("a recording");
    recording.ios(Query::default()).expect("its I/Os")
}

fn marks(root: &Path) -> Vec<(Event, Option<i64>)> {
    let recording = Recording::open(root).expect("a recording");
    let marks = recording.marks(&mut Vec::new()).expect("marks");
    marks.into_iter().map(|mark| (mark.event, mark.n)).collect()
}

fn has(root: &Path, event: Event) -> bool {
    marks(root).iter().any(|(one, _)| *one == event)
}

#[test]
fn all_ios_of_a_minute_are_read_back_and_counted_in_their_seconds() {
    let scratch = tempfile::tempdir().expect("a directory");
    let root = scratch.path().join("rec");
    let ios = Server::new(false).ios(4_950 * 30);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(&root, 1 << 30, &clock);
    record(&mut recorder, &clock, &ios);
    let summary = recorder.finish(&[]);
    assert_eq!((summary.ios, summary.lost), (ios.len() as u64, 0));
    let all: Vec<FinishedIo> = recorded(&root).into_iter().map(|one| one.io).collect();
    assert!(all == ios);

    let recording = Recording::open(&root).expect("a recording");
    let (from_s, to_s) = (ios[0].at_ns / SECOND_NS + 5, ios[0].at_ns / SECOND_NS + 9);
    let in_period = |io: &&FinishedIo| (from_s..to_s).contains(&(io.at_ns / SECOND_NS));
    let expected: Vec<&FinishedIo> = ios.iter().filter(in_period).collect();
    let (mut counted, mut sums) = (0, [0; 3]);
    for second in recording.seconds(from_s, to_s).expect("seconds") {
        match second.count {
            Count::Bucket { n, .. } => counted += n,
            Count::Sums {
                sum_ns,
                bytes,
                errors,
                ..
            } => {
                sums = [sums[0] + sum_ns, sums[1] + bytes, sums[2] + errors];
            }
        }
    }
    let sum = |of: fn(&FinishedIo) -> u64| expected.iter().map(|io| of(io)).sum::<u64>();
    assert_eq!(counted, expected.len() as u64);
    assert_eq!(
        sums,
        [sum(FinishedIo::at_device_ns), sum(|io| io.length_bytes), 0]
    );

    for latency_ns in [
        0..=u64::MAX,
        5_000_000..=u64::MAX,
        100_000..=200_000,
        u64::MAX..=u64::MAX,
    ] {
        let query = Query {
            from_ns: from_s * SECOND_NS,
            to_ns: to_s * SECOND_NS,
            latency_ns: latency_ns.clone(),
            ..Query::default()
        };
        let found = recording.ios(query).expect("its I/Os");
        let found: Vec<_> = found.into_iter().map(|one| one.io).collect();
        let slow = expected
            .iter()
            .filter(|io| latency_ns.contains(&io.at_device_ns()));
        assert!(found.iter().eq(slow.copied()), "{latency_ns:?}");
    }
}

#[test]
fn blocks_that_are_asked_again_answer_as_new_ones() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(3 * GROUP_ROWS);
    let clock = TestClock::at(ios[0].begun_ns);
    let mut recorder = recorder(scratch.path(), 1 << 40, &clock);
    record(&mut recorder, &clock, &ios);
    recorder.finish(&[]);
    let recording = Recording::open(scratch.path()).expect("a recording");
    let mut again = recording.blocks(Query::default());
    let (first_ns, last_ns) = (ios[0].at_ns, ios[ios.len() - 1].at_ns);
    let step_ns = (last_ns - first_ns) / 40;
    for (at, columns) in (0..40).zip(
        [vec![column::AT], vec![column::AT, column::BYTES]]
            .iter()
            .cycle(),
    ) {
        let query = Query {
            from_ns: first_ns + at * step_ns,
            to_ns: first_ns + (at + 1) * step_ns,
            columns: columns.clone(),
            ..Query::default()
        };
        recording.ask(query.clone(), &mut again);
        let mut found = Vec::new();
        while let Some(block) = again.next_block().expect("a block") {
            found.extend(block.ios());
        }
        let new = recording.ios(query).expect("its I/Os");
        assert!(!new.is_empty());
        assert_eq!(new.len(), found.len());
        let key = |one: &Recorded| {
            (
                one.io.at_ns,
                one.io.length_bytes * u64::from(columns.len() == 2),
            )
        };
        assert!(new.iter().map(key).eq(found.iter().map(key)), "{at}");
    }
}

#[test]
fn an_io_in_flight_leaves_a_trace_in_each_file() {
    let scratch = tempfile::tempdir().expect("a directory");
    let hung = Server::new(false).ios(1).remove(0);
    let clock = TestClock::at(hung.begun_ns);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    for _ in 0..2 {
        clock.pass(10 * SECOND_NS);
        assert!(recorder.is_due());
        recorder.seal(std::slice::from_ref(&hung));
    }
    recorder.finish(&[]);
    let all = recorded(scratch.path());
    let ages: Vec<_> = all
        .iter()
        .map(|one| (one.is_in_flight, one.io.total_ns()))
        .collect();
    assert_eq!(ages, [(true, 10 * SECOND_NS), (true, 20 * SECOND_NS)]);
    let names = files(scratch.path(), &IOS).expect("files");
    assert!(
        names.iter().all(|(name, _)| name.contains("-slow")),
        "{names:?}"
    );
    let recording = Recording::open(scratch.path()).expect("a recording");
    let marks = recording.marks(&mut Vec::new()).expect("marks");
    let slow = marks.iter().find(|mark| mark.event == Event::Slow);
    let slow = slow.map(|mark| (mark.device.as_deref(), mark.text.as_deref()));
    let why = "disk: an I/O has been in flight for more than 1 s";
    assert_eq!(slow, Some((Some(&*hung.device), Some(why))));
}

#[test]
fn any_number_in_flight_can_be_read_back_and_none_counts_as_recorded() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(2 * GROUP_ROWS);
    let clock = TestClock::at(ios[0].begun_ns);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    ios[..100].iter().for_each(|io| recorder.add(io));
    assert_eq!(recorder.finish(&ios).ios, 100);
    let all = recorded(scratch.path());
    let in_flight = all.iter().filter(|one| one.is_in_flight).count();
    assert_eq!((all.len(), in_flight), (ios.len() + 100, ios.len()));
}

#[test]
fn nothing_is_left_of_a_recording_that_did_not_begin() {
    let scratch = tempfile::tempdir().expect("a directory");
    let clock = TestClock::at(SECOND_NS);
    let empty = scratch.path().join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    let left = |root: &Path| {
        recorder(root, 1 << 30, &clock).abandon();
        let entries = scratch.path().read_dir().expect("a directory");
        entries.count() + empty.read_dir().expect("it stays").count()
    };
    assert_eq!(left(&scratch.path().join("a/b/rec")), 1);
    assert_eq!(left(&empty), 1);
    recorder(&empty, 1 << 30, &clock).finish(&[]);
    let (marks, used) = (marks(&empty), left(&empty));
    assert_eq!((self::marks(&empty), left(&empty)), (marks, used));
}

#[test]
fn jumps_of_the_clocks_have_marks() {
    let scratch = tempfile::tempdir().expect("a directory");
    let clock = TestClock::at(SECOND_NS);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    clock.pass(SECOND_NS);
    recorder.is_due();
    clock.stepped_ns.fetch_add(3 * SECOND_NS, Ordering::Relaxed);
    recorder.is_due();
    clock
        .suspended_ns
        .fetch_add(60 * SECOND_NS, Ordering::Relaxed);
    recorder.is_due();
    recorder.mark(Event::Vanished, Some("vda"), None, None);
    recorder.lost(7, None);
    recorder.finish(&[]);
    let marks = marks(scratch.path());
    let expected = [
        (Event::ClockStep, Some(3_000_000_000)),
        (Event::Suspend, Some(60_000_000_000)),
        (Event::Vanished, None),
        (Event::Lost, Some(7)),
        (Event::Ended, None),
    ];
    assert_eq!((marks[0].0, &marks[1..]), (Event::Began, &expected[..]));
}

#[test]
fn a_writer_that_takes_too_much_time_leaves_single_ios_out_for_a_minute() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(4_950 * 100);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    let seconds = |from: u64, to: u64| {
        let start_ns = ios[0].ended_ns;
        let after = |s: u64| ios.partition_point(|io| io.ended_ns < start_ns + s * SECOND_NS);
        &ios[after(from)..after(to)]
    };
    record(&mut recorder, &clock, seconds(0, 15));
    clock.cpu_ns.fetch_add(5 * SECOND_NS, Ordering::Relaxed);
    record(&mut recorder, &clock, seconds(15, 98));
    recorder.finish(&[]);
    let words: Vec<Event> = marks(scratch.path())
        .into_iter()
        .map(|(event, _)| event)
        .collect();
    let at = |event| words.iter().position(|one| *one == event);
    assert!(at(Event::SecondsOnly) < at(Event::SingleIos), "{words:?}");
    assert!(recorded(scratch.path()).len() < ios.len() / 2);
    let recording = Recording::open(scratch.path()).expect("a recording");
    let counted = recording.seconds(0, u64::MAX).expect("seconds");
    let counted: u64 = counted
        .iter()
        .map(|second| match second.count {
            Count::Bucket { n, .. } => n,
            Count::Sums { .. } => 0,
        })
        .sum();
    assert_eq!(counted as usize, seconds(0, 98).len());
}

#[test]
fn a_recording_keeps_within_its_bytes_and_keeps_what_is_slow() {
    let scratch = tempfile::tempdir().expect("a directory");
    // The server runs at a tenth of its rate for 900 s, and its I/Os are slow for one second, 300 s after the
    // start.
    let mut ios = Server::new(false).ios(445_500);
    let start_ns = ios[0].ended_ns;
    for (at, io) in ios.iter_mut().enumerate() {
        let later_ns = at as u64 * 1_818_182;
        io.begun_ns += later_ns;
        io.ended_ns += later_ns;
        io.at_ns += later_ns;
        if io.ended_ns / SECOND_NS == start_ns / SECOND_NS + 300 {
            io.begun_ns -= 2 * SECOND_NS;
        }
    }
    let clock = TestClock::at(start_ns);
    let mut recorder = recorder(scratch.path(), 3_600_000, &clock);
    let mut most = 0;
    record_while(&mut recorder, &clock, &ios, || {
        most = bytes_on_disk(scratch.path()).max(most);
    });
    let summary = recorder.finish(&[]);
    assert!(
        summary.bytes <= 3_600_000 && summary.stopped.is_none(),
        "{summary:?}"
    );
    let most = bytes_on_disk(scratch.path()).max(most);
    assert!(
        (3_000_000..=3_600_000).contains(&most),
        "{most} bytes at once"
    );
    let recording = Recording::open(scratch.path()).expect("a recording");
    let found = |from_s: u64, to_s: u64| {
        let base_ns = ios[0].at_ns;
        let query = Query {
            from_ns: base_ns + from_s * SECOND_NS,
            to_ns: base_ns + to_s * SECOND_NS,
            ..Query::default()
        };
        recording.ios(query).expect("its I/Os").len()
    };
    let found = [(0, 200), (241, 360), (400, 420), (880, 899)].map(|(from, to)| found(from, to));
    let all = [119, 19].map(|seconds| seconds * 495 / 100 * 95);
    assert!(found[0] == 0 && found[2] == 0, "{found:?}");
    assert!(found[1] > all[0] && found[3] > all[1], "{found:?}");
}

#[test]
fn a_disk_that_refuses_stops_the_recording_and_not_the_caller() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(4_950 * 30);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    // Without the folder of I/Os, even root cannot write a file of I/Os.
    std::fs::remove_dir(scratch.path().join("ios")).expect("an empty folder");
    recorder.mark(Event::Watched, Some("d"), None, Some("disk"));
    ios[..100].iter().for_each(|io| recorder.add(io));
    recorder.seal(&[]);
    settle(&recorder, |_| false);
    record(&mut recorder, &clock, &ios[100..]);
    let summary = recorder.finish(&[]);
    assert!(summary.stopped.is_some_and(|why| why.contains("ios")));
    std::fs::create_dir(scratch.path().join("ios")).expect("a folder");
    // The I/Os that it could not write are lost, and their time must not look idle.
    let expected = [
        (Event::Watched, None),
        (Event::Lost, Some(100)),
        (Event::Stopped, None),
    ];
    assert_eq!(marks(scratch.path())[1..], expected);
}

#[test]
fn any_damage_of_the_seconds_is_told_with_their_devices() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(4_950);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    record(&mut recorder, &clock, &ios);
    recorder.finish(&[]);
    let recording = Recording::open(scratch.path()).expect("a recording");
    let (name, _) = &files(scratch.path(), &SECONDS).expect("files of seconds")[0];
    let path = scratch.path().join("seconds").join(name);
    let whole = std::fs::read(&path).expect("a file");
    let mut told = 0;
    for at in (0..whole.len()).step_by(11) {
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        std::fs::write(&path, &changed).expect("a changed file");
        let (mut of_all, mut of_devices) = (Vec::new(), Vec::new());
        recording
            .each_second(0, u64::MAX, &mut of_all, |_| {})
            .expect("seconds");
        recording.counted(&mut of_devices).expect("devices");
        let are_told = [of_all.len(), of_devices.len()];
        assert_eq!(are_told[0], are_told[1], "byte {at} has changed");
        told += are_told[1];
    }
    assert!(told > whole.len() / 20, "{told} changes are told");
}

/// A recorder that cannot begin removes what it has made. If the lock were free before that, the next recorder
/// could begin meanwhile and lose its lock and folders.
#[test]
fn a_recorder_that_gives_up_removes_its_files_before_the_next_recorder_can_begin() {
    let scratch = tempfile::tempdir().expect("a directory");
    let root = &scratch.path().join("rec");
    let clock = TestClock::at(SECOND_NS);
    for round in 0..20 {
        let recorder = recorder(root, 1 << 30, &clock);
        let lock = File::open(root.join("dashpot.recording")).expect("the lock");
        let is_left = std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                    std::hint::spin_loop();
                }
                root.exists()
            });
            recorder.abandon();
            next.join().expect("an answer")
        });
        assert!(!is_left, "in round {round}");
    }
}

#[test]
fn a_writer_that_is_behind_makes_the_recorder_lose_whole_row_groups_and_count_them() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(20 * GROUP_ROWS);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(scratch.path(), 1 << 30, &clock);
    for io in &ios {
        recorder.add(io);
    }
    let summary = recorder.finish(&[]);
    let recorded = recorded(scratch.path()).len();
    assert_eq!(summary.lost as usize + recorded, ios.len());
    assert_eq!(summary.lost as usize % GROUP_ROWS, 0);
    assert_eq!(has(scratch.path(), Event::Lost), summary.lost > 0);
}
