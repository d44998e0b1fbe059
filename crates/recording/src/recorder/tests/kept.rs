//! Tests of what stays of marks and seconds when a recording is small.

use std::collections::BTreeSet;

use super::*;

const KEEP: u64 = 1 << 20;

/// Seals, and waits for the writer.
fn seal(recorder: &mut Recorder, look: impl FnMut()) {
    let seals = recorder.summary().seals;
    recorder.seal(&[]);
    let mut look = look;
    settle(recorder, |summary| {
        look();
        summary.seals > seals
    });
}

#[test]
fn the_end_of_a_daemon_is_known_for_as_long_as_what_was_recorded_after_it() {
    let scratch = tempfile::tempdir().expect("a directory");
    let ios = Server::new(false).ios(4_000);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(scratch.path(), KEEP, &clock);
    recorder.mark(Event::Watched, Some("d"), None, Some("disk"));
    recorder.mark(Event::WatchEnded, None, None, Some("daemon: it went away"));
    for (at, io) in ios.iter().enumerate() {
        clock.pass(SECOND_NS);
        let text = format!("trigger {at} of a long day, with a text that no other mark has");
        recorder.mark(Event::Trigger, Some("d"), Some(1), Some(&text));
        if at % 10 == 0 {
            recorder.add(io);
            seal(&mut recorder, || ());
        }
    }
    let summary = recorder.finish(&[]);
    assert_eq!(summary.stopped, None);
    let marks = files(scratch.path(), &MARKS).expect("files of marks");
    let bytes: u64 = marks.iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes <= KEEP / 32, "{bytes} bytes of marks in {marks:?}");
    let recording = Recording::open(scratch.path()).expect("a recording");
    let marks = recording.marks(&mut Vec::new()).expect("marks");
    let triggers = marks.iter().filter(|mark| mark.event == Event::Trigger);
    assert!((10..3_000).contains(&triggers.count()), "old ones are gone");
    let lasting: Vec<Event> = marks
        .iter()
        .map(|mark| mark.event)
        .filter(|event| !matches!(event, Event::Trigger | Event::Slow))
        .collect();
    let expected = [
        Event::Began,
        Event::Watched,
        Event::WatchEnded,
        Event::Ended,
    ];
    assert_eq!(lasting, expected);
    // If a crash leaves the same marks in two files, each mark counts once.
    let folder = scratch.path().join("marks");
    let (oldest, _) = &files(scratch.path(), &MARKS).expect("files of marks")[0];
    std::fs::copy(folder.join(oldest), folder.join("0000000000.parquet")).expect("a copy");
    let again = Recording::open(scratch.path()).expect("a recording");
    let again = again.marks(&mut Vec::new()).expect("marks");
    let ends = again.iter().filter(|mark| mark.event == Event::WatchEnded);
    assert_eq!(ends.count(), 1);
}

#[test]
fn seconds_of_many_devices_never_take_more_than_the_recording_may() {
    let scratch = tempfile::tempdir().expect("a directory");
    let devices: Vec<Arc<str>> = (0..100).map(|at| format!("disk{at}").into()).collect();
    let ios = Server::new(false).ios(60_000);
    let clock = TestClock::at(ios[0].ended_ns);
    let mut recorder = recorder(scratch.path(), KEEP, &clock);
    let mut most = 0;
    // The table of seconds gets two rows for each I/O: one for its bucket, and one for the sums.
    for (at, io) in ios.iter().enumerate() {
        clock.pass(SECOND_NS / 100);
        recorder.add(&FinishedIo {
            device: Arc::clone(&devices[at % devices.len()]),
            ended_ns: clock.now().monotonic_ns,
            at_ns: clock.now().unix_ns,
            ..io.clone()
        });
        if at % 1_000 == 999 {
            seal(&mut recorder, || {
                most = most.max(bytes_on_disk(scratch.path()));
            });
        }
    }
    let summary = recorder.finish(&[]);
    let most = most.max(bytes_on_disk(scratch.path()));
    assert!(summary.stopped.is_none() && most <= KEEP, "{most} bytes");
    let sealed = files(scratch.path(), &IOS).expect("files of I/Os");
    let seconds = files(scratch.path(), &SECONDS).expect("files of seconds");
    let bytes: u64 = seconds.iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes <= KEEP / 4, "{bytes} bytes in {seconds:?}");
    assert!(bytes > KEEP / 8 && !sealed.is_empty());
    let newest: BTreeSet<u64> = seconds.iter().map(|(_, bytes)| *bytes).collect();
    assert!(newest.last() < Some(&(KEEP / 16)), "{seconds:?}");
}
