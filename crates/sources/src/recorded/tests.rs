//! A recording may have a disk of the kernel and a disk of a daemon with the same name. An answer about one
//! of them has nothing of the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dashpot_engine::Duration;
use dashpot_observe::{
    FinishedIo, InFlight, IoWaits, Kind, Layer, Question, Schedule, Seen, Thread, Who,
};
use dashpot_recording::{Event, MachineClock, Options, Recorder};
use proptest::prelude::*;

use super::period::Recorded;
use super::spans::SECOND_NS;
use super::watch_recorded;
use crate::owner::Owner;

/// An I/O in a few numbers: layer, device, operation, length, time at the device, and second.
type Draft = (usize, usize, usize, u64, u64, u64);

const LAYERS: [Layer; 3] = [Layer::Disk, Layer::Kernel, Layer::Fs];
const DEVICES: [&str; 2] = ["vda", "vdb"];
const OPS: [&str; 2] = ["read", "write"];
const START_S: u64 = 1_700_000_000;

fn io(draft: &Draft, begin_s: u64) -> FinishedIo {
    let (layer, device, op, length_bytes, device_ns, second) = *draft;
    let layer = LAYERS[layer];
    let at_ns = (START_S + begin_s + second) * SECOND_NS + device_ns;
    let who = match Owner::of(layer) {
        Owner::Daemon => Who::Client("client".into()),
        Owner::Kernel => Who::Thread(Thread {
            process: Some("dd".into()),
            pid: Some(1),
            thread: Some("dd".into()),
            tid: Some(1),
            cgroup: None,
        }),
    };
    FinishedIo {
        length_bytes,
        begun_ns: at_ns - device_ns,
        ended_ns: at_ns,
        at_ns,
        waits: IoWaits::Kernel {
            queue_ns: None,
            device_ns,
        },
        who: Some(who),
        ..FinishedIo::bare(layer, DEVICES[device].into(), Kind::of_word(OPS[op]))
    }
}

fn recorder(root: &Path) -> Recorder {
    let options = Options {
        keep_bytes: 1 << 30,
        host: "host".to_owned(),
        cpu_percent: 1_000,
    };
    Recorder::create(root, options, Arc::new(MachineClock)).expect("a recorder")
}

/// Records two files of I/Os, with losses of each owner.
fn record(root: &Path, files: &[Vec<FinishedIo>; 2], lost: (u64, u64)) {
    let mut recorder = recorder(root);
    for device in DEVICES {
        for kind in ["kernel", "disk", "kernel fs"] {
            recorder.mark(Event::Watched, Some(device), None, Some(kind));
        }
    }
    for file in files {
        file.iter().for_each(|io| recorder.add(io));
        recorder.seal(&[]);
    }
    recorder.lost(lost.0, Some(Owner::Kernel.word()));
    recorder.lost(lost.1, Some(Owner::Daemon.word()));
    recorder.finish(&[]);
}

/// The I/Os and bytes of each device and operation, as a report gets them.
fn answer(part: &Recorded, layer: Layer) -> (Counts, u64) {
    let question = Question::latencies(&[layer]);
    let parts = [part.on(layer).expect("the layer")];
    let schedule = Schedule::once(Duration::MAX);
    let mut source = watch_recorded(&parts, &question, &schedule).expect("a source");
    let (mut counts, mut lost) = (Counts::new(), 0);
    while let Some(seen) = source.next().expect("an interval") {
        lost += seen.lost;
        add(&mut counts, &seen, layer);
    }
    (counts, lost)
}

type Counts = BTreeMap<(String, String), (u64, u64)>;

fn add(counts: &mut Counts, seen: &Seen, layer: Layer) {
    for device in seen.at(layer) {
        for op in &device.ops {
            let key = (device.device.clone(), op.kind.word().to_owned());
            let sums = counts.entry(key).or_default();
            *sums = (sums.0 + op.counts.completed, sums.1 + op.counts.bytes);
        }
    }
}

fn naive(ios: &[&FinishedIo], layer: Layer) -> Counts {
    let mut counts = Counts::new();
    for io in ios.iter().filter(|io| io.layer == layer) {
        let key = (io.device.to_string(), io.kind.word().to_owned());
        let sums = counts.entry(key).or_default();
        *sums = (sums.0 + 1, sums.1 + io.length_bytes);
    }
    counts
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let draft = (
        0..3_usize,
        0..2_usize,
        0..2_usize,
        1..9_u64,
        1..9_000_u64,
        0..4_u64,
    );
    prop::collection::vec(draft, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_layer_has_anything_of_another(
        drafts in (drafts(), drafts()),
        lost in (0..9_u64, 0..9_u64),
        is_deleted in any::<bool>(),
    ) {
        let scratch = tempfile::tempdir().expect("a directory");
        let early: Vec<FinishedIo> = drafts.0.iter().map(|draft| io(draft, 0)).collect();
        let late: Vec<FinishedIo> = drafts.1.iter().map(|draft| io(draft, 10)).collect();
        let files = [early, late];
        record(scratch.path(), &files, lost);
        if is_deleted {
            // Of the first file, only the per-second counts are left.
            let folder = std::fs::read_dir(scratch.path().join("ios")).expect("the files");
            let first = folder.map(|file| file.expect("a file").path()).min();
            std::fs::remove_file(first.expect("a first file")).expect("a removal");
        }
        let whole = Recorded::open(scratch.path(), &[]).expect("a recording");
        let all: Vec<&FinishedIo> = files.iter().flatten().collect();
        for layer in LAYERS {
            let lost = match Owner::of(layer) {
                Owner::Kernel => lost.0,
                Owner::Daemon => lost.1,
            };
            let (counts, told) = answer(&whole, layer);
            let counts: Counts = counts.into_iter().filter(|(_, sums)| sums.0 > 0).collect();
            prop_assert_eq!((counts, told), (naive(&all, layer), lost), "{:?}", layer);
        }
    }
}

/// What a report over a whole recording says is in flight, if its marks count these I/Os from before the watch.
fn in_flight_after(numbers: &[Option<i64>]) -> InFlight {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut recorder = recorder(scratch.path());
    recorder.mark(Event::Watched, Some(DEVICES[0]), None, Some("kernel disk"));
    for number in numbers {
        recorder.add(&io(&(0, 0, 0, 512, 1_000, 0), 0));
        recorder.mark(
            Event::Earlier,
            Some(DEVICES[0]),
            *number,
            Some("disk: 7000000000"),
        );
        recorder.mark(Event::Earlier, Some(DEVICES[0]), Some(9), Some("kernel: 1"));
        recorder.seal(&[]);
    }
    recorder.finish(&[]);
    let whole = Recorded::open(scratch.path(), &[]).expect("a recording");
    let parts = [whole.on(Layer::Disk).expect("the layer")];
    let question = Question::latencies(&[Layer::Disk]);
    let schedule = Schedule::once(Duration::MAX);
    let mut source = watch_recorded(&parts, &question, &schedule).expect("a source");
    let seen = source.next().expect("an interval").expect("an interval");
    seen.disks[0].in_flight.clone()
}

#[test]
fn an_io_from_before_the_recorders_watch_is_in_flight_until_a_mark_says_that_it_has_ended() {
    let still = in_flight_after(&[Some(3), Some(2)]);
    assert_eq!(still.zios, Some(2));
    assert!(
        still.oldest_ns.is_some_and(|ns| ns >= 7_000_000_000),
        "{still:?}"
    );
    assert_eq!(in_flight_after(&[Some(3), Some(0)]), InFlight::default());
    assert_eq!(in_flight_after(&[None]).zios, None);
}
