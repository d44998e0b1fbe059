//! Kills recorders, and checks that readers find whole files afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::clock::{Clock, MachineClock};
use crate::directory::Directory;
use crate::query::Query;
use crate::reader::Recording;
use crate::recorder::{Options, Recorder};
use crate::server::Server;

/// If this environment variable is set, [`records_until_it_is_killed`] is the recorder that another test
/// kills. The variable's value is the directory of the recording.
const ROOT: &str = "DASHPOT_TEST_RECORDS";

/// Records endlessly, seals after every thousand I/Os, and prints a line after each seal. It does so only in
/// the process that the test below starts; otherwise, this test does nothing.
#[test]
fn records_until_it_is_killed() {
    let Some(root) = std::env::var_os(ROOT) else {
        return;
    };
    let options = Options {
        keep_bytes: 1 << 20,
        host: "host".to_owned(),
        cpu_percent: 100,
    };
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let mut recorder = Recorder::create(Path::new(&root), options, clock).expect("a recorder");
    for ios in Server::new(false).ios(1 << 16).chunks(1_000).cycle() {
        ios.iter().for_each(|io| recorder.add(io));
        recorder.seal(&ios[..1]);
        println!("{}", recorder.summary().seals);
    }
}

#[test]
fn a_recorder_that_is_killed_at_any_moment_leaves_whole_files() {
    let scratch = tempfile::tempdir().expect("a directory");
    let mut seen = 0;
    for round in 0..12 {
        killed_after(scratch.path(), 37 * (round + 1));
        let recording = Recording::open(scratch.path()).expect("a recording");
        let ios = recording.ios(Query::default());
        seen += ios.expect("its I/Os").len();
        let mut damaged = Vec::new();
        recording.marks(&mut damaged).expect("marks");
        let seconds = recording.each_second(0, u64::MAX, &mut damaged, |_| {});
        seconds.expect("seconds");
        assert!(damaged.is_empty(), "{damaged:?}");
        Directory::create(scratch.path()).expect("the lock is free");
    }
    assert!(seen > 0);
}

/// Starts the recorder and kills it when it has printed this many lines. The time that a line takes varies,
/// so the recorder is killed at a random point of its work.
fn killed_after(root: &Path, lines: usize) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["records_until_it_is_killed", "--nocapture"])
        .env(ROOT, root)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let has_sealed = |line: &String| line.parse().is_ok_and(|seals: u64| seals > 0);
    let mut sealed = output.lines().map_while(Result::ok).filter(has_sealed);
    sealed.nth(lines);
    child.kill().expect("a kill");
    child.wait().expect("its end");
}
