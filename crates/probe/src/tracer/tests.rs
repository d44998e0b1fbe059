//! Tests on the real kernel, with a loop device. If the kernel does not permit an instance of tracefs, a test
//! reports that it was skipped.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::OFlags;

use super::{Progress, Tracer, now_ns};
use crate::device::Device;
use crate::error::TraceError;
use crate::io::{Io, Owner, Rwbs};
use crate::options::{Options, Start};
use crate::record::{Record, What};
use crate::tracefs::ring::Item;

/// Lets only one test run at a time, because the tests read the list of all instances.
static KERNEL: Mutex<()> = Mutex::new(());

/// A loop device over a file in memory, if there is a file system in memory.
struct Loop {
    path: String,
    file: File,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

const SIZE: u64 = 8 << 20;
const BLOCK: usize = 4096;

impl Loop {
    /// Makes a loop device. If this user or machine cannot have one, reports that and returns
    /// `None`.
    fn new() -> Option<Loop> {
        let alone = KERNEL
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Err(why) = super::Instance::new() {
            skip(&why.to_string());
            return None;
        }
        let shm = Path::new("/dev/shm");
        let home = if shm.is_dir() {
            shm.to_owned()
        } else {
            std::env::temp_dir()
        };
        let directory = tempfile::tempdir_in(home).expect("a directory");
        let image = directory.path().join("image");
        // The whole file is written, so that it is not sparse and the loop device must read it for every
        // block.
        fs::write(&image, vec![7; SIZE as usize]).expect("room");
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&image)
            .output();
        let made = losetup.as_ref().is_ok_and(|made| made.status.success());
        if !made {
            skip(&format!("no loop device: {losetup:?}"));
            return None;
        }
        let path = String::from_utf8_lossy(&losetup.ok()?.stdout)
            .trim()
            .to_owned();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(&path)
            .expect("the device");
        Some(Loop {
            path,
            file,
            _directory: directory,
            _alone: alone,
        })
    }

    fn start(&self) -> Tracer {
        Tracer::start(&self.options()).expect("a tracer")
    }

    fn options(&self) -> Options {
        Options {
            devices: vec![Device::find(&self.path).expect("the device")],
            later: false,
            start: Start::Issue,
            submitters: false,
            processes: false,
            cgroups: false,
        }
    }

    /// Writes and reads each of `blocks` blocks, without the page cache.
    fn work(&self, blocks: u64) {
        let mut memory = vec![0; 2 * BLOCK];
        let aligned = memory.as_ptr().align_offset(BLOCK);
        let block = &mut memory[aligned..aligned + BLOCK];
        for number in 0..blocks {
            let offset = number * BLOCK as u64 % SIZE;
            self.file.write_all_at(block, offset).expect("a write");
            self.file.read_exact_at(block, offset).expect("a read");
        }
    }

    /// How many requests, and how many sectors, the disk has completed by the kernel's own count.
    fn stat(&self) -> (u64, u64) {
        let name = self.path.trim_start_matches("/dev/");
        let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).expect("its statistics");
        let numbers: Vec<u64> = stat.split_whitespace().flat_map(str::parse).collect();
        (numbers[0] + numbers[4], numbers[2] + numbers[6])
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.path]).status();
    }
}

#[test]
fn buffers_are_large_and_all_of_them_not_too_large() {
    assert_eq!(super::buffer_kib(2), 16 << 10);
    assert_eq!(super::buffer_kib(128), 2 << 10);
    assert_eq!(super::buffer_kib(8192), 1 << 10);
}

fn progress(tracer: &mut Tracer) -> Progress {
    tracer.read(u64::MAX, |_, _| ()).expect("a reading")
}

fn read(tracer: &mut Tracer) -> Vec<Io> {
    let mut finished = Vec::new();
    let before = now_ns();
    let progress = tracer
        .read(u64::MAX, |_, io| finished.push(io.clone()))
        .expect("a reading");
    assert!(progress.until_ns >= before);
    assert_eq!(progress.lost, 0);
    finished
}

fn count(finished: &[Io]) -> (u64, u64) {
    let bytes: u64 = finished.iter().map(|io| io.bytes).sum();
    (finished.len() as u64, bytes / 512)
}

fn instances() -> Vec<PathBuf> {
    let roots = [
        "/sys/kernel/tracing/instances",
        "/sys/kernel/debug/tracing/instances",
    ];
    let entries = roots
        .iter()
        .find_map(|root| fs::read_dir(root).ok())
        .expect("tracefs");
    entries.flatten().map(|entry| entry.path()).collect()
}

fn of_process(pid: u32) -> usize {
    let prefix = format!("dashpot-{pid}-");
    let is_its = |path: &&PathBuf| path.to_string_lossy().contains(&prefix);
    instances().iter().filter(is_its).count()
}

/// Reports a skip directly to standard error, because the test harness hides the output of a test that
/// passes. `make test` counts these lines.
fn skip(why: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

#[test]
fn two_tracers_see_what_the_kernel_counts() {
    let Some(device) = Loop::new() else { return };
    let (mut one, mut two) = (device.start(), device.start());
    let before = device.stat();
    device.work(100);
    let first = read(&mut one);
    device.work(50);
    let after = device.stat();
    let expected = (after.0 - before.0, after.1 - before.1);
    assert!(expected.0 >= 300, "{expected:?}");

    let both = read(&mut two);
    assert_eq!(count(&both), expected);
    let rest = read(&mut one);
    assert_eq!(count(&[first, rest].concat()), expected);
    assert!(both.is_sorted_by_key(|io| io.completed_ns));
    assert!(both.iter().all(|io| io.issued_ns < io.completed_ns));
    assert_eq!(one.in_flight().count(), 0);
}

#[test]
fn what_ends_after_the_moment_is_in_flight_and_comes_next() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = device.start();
    device.work(10);
    let between_ns = now_ns();
    device.work(10);
    let mut finished = Vec::new();
    for end_ns in [between_ns, u64::MAX] {
        let mut count = 0;
        let progress = tracer.read(end_ns, |_, io| {
            assert_eq!(io.completed_ns <= between_ns, end_ns == between_ns);
            count += 1;
        });
        assert!(progress.expect("a reading").until_ns <= end_ns);
        finished.push(count);
    }
    assert_eq!(finished, [20, 20]);
}

#[test]
fn every_io_was_queued_by_someone() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = Tracer::start(&Options {
        start: Start::Queue,
        submitters: true,
        processes: false,
        cgroups: false,
        ..device.options()
    })
    .expect("a tracer");
    let before = device.stat();
    device.work(100);
    let after = device.stat();
    let finished = read(&mut tracer);
    assert_eq!(count(&finished), (after.0 - before.0, after.1 - before.1));
    for io in &finished {
        assert!(io.queued_ns.is_some_and(|ns| ns <= io.issued_ns), "{io:?}");
        assert!(io.submitter.is_some());
    }
    assert_eq!(tracer.in_flight().count(), 0);
}

#[test]
fn of_a_disk_only_a_partition_s_sectors_are_its_own() {
    let Some(device) = Loop::new() else { return };
    let mut options = device.options();
    options.devices[0].part = Some(64..128);
    let mut tracer = Tracer::start(&options).expect("a tracer");
    device.work(100);
    let finished = read(&mut tracer);
    assert_eq!(count(&finished), (2 * 8, 2 * 64), "8 blocks, both ways");
    assert!(finished.iter().all(|io| (64..128).contains(&io.sector)));

    for sector in [56, 64, 120, 128] {
        tracer
            .pairing
            .take(&issue(&device, sector, b"R"), Owner::default());
    }
    let mut sectors: Vec<_> = tracer.in_flight().map(|(_, io)| io.sector).collect();
    sectors.sort_unstable();
    assert_eq!(sectors, [64, 120]);
}

#[test]
fn a_flush_is_of_the_disk_and_of_no_partition() {
    let Some(device) = Loop::new() else { return };
    let mut options = device.options();
    options.devices[0].part = Some(0..128);
    let mut part = Tracer::start(&options).expect("a tracer");
    let mut whole = device.start();
    for tracer in [&mut part, &mut whole] {
        tracer
            .pairing
            .take(&issue(&device, 0, b"FF"), Owner::default());
    }
    assert_eq!(
        (part.in_flight().count(), whole.in_flight().count()),
        (0, 1)
    );
    // The loop device has a cache, so the kernel sends it a flush for this call of fsync.
    device.file.sync_all().expect("a flush");
    let is_flush = |io: &&Io| io.rwbs.operation() == b'F';
    assert_eq!(read(&mut part).iter().filter(is_flush).count(), 0);
    assert_eq!(read(&mut whole).iter().filter(is_flush).count(), 1);
}

/// The kernel's record of a request that the driver receives.
fn issue(device: &Loop, sector: u64, rwbs: &[u8]) -> Record {
    Record {
        at_ns: now_ns(),
        device: Device::find(&device.path).expect("the device").number,
        sector,
        sectors: if rwbs == b"FF" { 0 } else { 8 },
        rwbs: Rwbs::new(rwbs),
        pid: 0,
        what: What::Issue(4096),
    }
}

#[test]
fn what_the_kernel_has_no_longer_is_given_up() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = device.start();
    tracer
        .pairing
        .take(&issue(&device, 64, b"R"), Owner::default());
    tracer.pairing.lost(now_ns());
    assert!(tracer.in_flight().all(|(_, io)| io.doubtful));
    tracer.tend(now_ns()).expect("a look");
    assert_eq!(tracer.in_flight().count(), 1, "its end may be on its way");
    tracer.tend(now_ns()).expect("a look");
    assert_eq!(tracer.in_flight().count(), 0);
    assert_eq!(progress(&mut tracer).dropped, 1);
    assert_eq!(progress(&mut tracer).dropped, 0);

    let late = Record {
        what: What::Complete(0),
        ..issue(&device, 64, b"R")
    };
    assert_eq!(tracer.pairing.take(&late, Owner::default()), None);
    assert_eq!(progress(&mut tracer).unmatched, 1);
    assert_eq!(progress(&mut tracer).unmatched, 0);
}

#[test]
fn what_is_not_doubtful_stays() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = device.start();
    tracer
        .pairing
        .take(&issue(&device, 64, b"R"), Owner::default());
    for _ in 0..3 {
        tracer.tend(now_ns()).expect("a look");
    }
    assert_eq!(tracer.in_flight().count(), 1);
}

#[test]
fn a_recording_that_was_switched_off_is_an_error() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = device.start();
    tracer.tend(now_ns()).expect("a look");
    tracer.instance.write(super::SWITCH, "0").expect("a switch");
    tracer.tended_ns = 0;
    let error = tracer
        .read(u64::MAX, |_, _| ())
        .expect_err("nothing is seen");
    assert!(matches!(error, TraceError::SwitchedOff { .. }), "{error}");
    assert!(error.to_string().contains("tracing_on to 0"));
}

#[test]
fn events_without_room_are_counted() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = Tracer::start_with(&device.options(), |_| 8).expect("a tracer");
    let before = device.stat().0;
    device.work(2000);
    let happened = 2 * (device.stat().0 - before);
    let (mut seen, mut losses) = (0, 0);
    let take = |item: Item<'_>| match item {
        Item::Entry(_) => seen += 1,
        Item::Lost(_) => losses += 1,
    };
    tracer.ring.drain(now_ns(), take).expect("a reading");
    let lost = tracer.ring.lost().expect("the kernel's count");
    assert!(losses > 0 && lost > 0, "{seen} seen of {happened}");
    assert_eq!(seen + lost, happened);
    assert_eq!(tracer.ring.lost().expect("the kernel's count"), 0);
}

#[test]
fn nothing_is_left_behind() {
    let Some(device) = Loop::new() else { return };
    let mine = std::process::id();
    let tracer = device.start();
    assert_eq!(of_process(mine), 1);
    drop(tracer);
    assert_eq!(of_process(mine), 0);

    let refused = Tracer::start_with(&device.options(), |_| 0).err();
    assert!(
        matches!(refused, Some(TraceError::Io { .. })),
        "{refused:?}"
    );
    assert_eq!(of_process(mine), 0, "a start that fails half-way");

    let panicked = std::panic::catch_unwind(|| {
        let _tracer = device.start();
        panic!("as a caller might");
    });
    assert!(panicked.is_err());
    assert_eq!(of_process(mine), 0, "a panic");
}

#[test]
fn what_a_killed_one_left_is_removed_by_the_next() {
    let Some(device) = Loop::new() else { return };
    let mut killed = watcher(&device.path);
    let pid = killed.id();
    assert_eq!(of_process(pid), 1);
    drop(device.start());
    assert_eq!(of_process(pid), 1, "while it lives it is left alone");

    killed.kill().expect("SIGKILL");
    killed.wait().expect("its end");
    assert_eq!(of_process(pid), 1);
    drop(device.start());
    assert_eq!(of_process(pid), 0);
}

/// Starts another process that watches a device until it is killed.
fn watcher(path: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "tracer::tests::watches_until_killed",
            "--nocapture",
        ])
        .env(WATCHED, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.ends_with(WATCHED))));
    child
}

const WATCHED: &str = "DASHPOT_TEST_WATCHED";

/// The body of the process that [`watcher`] starts. As an ordinary test, it does nothing.
#[test]
fn watches_until_killed() {
    let Ok(path) = std::env::var(WATCHED) else {
        return;
    };
    let options = Options {
        devices: vec![Device::find(&path).expect("the device")],
        later: false,
        start: Start::Issue,
        submitters: false,
        processes: false,
        cgroups: false,
    };
    let _tracer = Tracer::start(&options).expect("a tracer");
    println!("\n{WATCHED}");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_device_that_vanishes_is_no_error() {
    let Some(device) = Loop::new() else { return };
    let mut tracer = device.start();
    device.work(1);
    let name = device.path.trim_start_matches("/dev/").to_owned();
    drop(device);
    assert_eq!(read(&mut tracer).len(), 2);
    let gone: Vec<String> = tracer
        .roster()
        .gone()
        .map(|gone| gone.name.to_string())
        .collect();
    assert_eq!(gone, [name]);
}
