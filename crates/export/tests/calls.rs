//! Tests disks whose zios are the calls that a program makes on the files of a directory. A thread with a
//! seccomp filter plays the program.

use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use dashpot_engine::inject::{Count, Delay, Effect, GroupId, Mode, RuleId, RuleSpec, Service};
use dashpot_engine::{Answer, Command, Duration, Errno, Op, OpSet};
use dashpot_export::store::OpenDevices;
use dashpot_export::{
    DiskSnapshot, Follower, Server, ServerConfig, Spin, StartError, Unheld, Uring, notified_calls,
};
use dashpot_rules::{CallFiles, DiskConfig, StoreConfig};
use dashpot_sys::seccomp::{Call, CallId, Listener};
use tempfile::TempDir;

/// A server with two disks, each of which follows the files of a directory, and another directory that
/// belongs to no disk.
struct Served {
    directories: [TempDir; 2],
    outside: TempDir,
    server: Server,
}

#[derive(Debug)]
struct Quiet;

const SYNC: OpSet = OpSet::of(Op::Sync);

impl Follower for Quiet {
    fn received(&self, _: &Call) -> bool {
        true
    }

    fn answered(&self, _: CallId) {}

    fn say(&self, sentence: &str) {
        panic!("{sentence}");
    }

    fn ended(&self) {}
}

fn start(directories: &[PathBuf]) -> Result<Server, StartError> {
    let disk = |(name, path): (&str, &PathBuf)| DiskConfig {
        name: name.to_owned(),
        store: StoreConfig::Path(CallFiles {
            path: path.clone(),
            glob: None,
            types: SYNC,
        }),
        size: None,
        offset: 0,
        block: 1,
        read_only: false,
        rotational: false,
    };
    let config = ServerConfig {
        shards: 2,
        seed: 1,
        disks: ["a", "b"].into_iter().zip(directories).map(disk).collect(),
        pools: Vec::new(),
        volumes: Vec::new(),
        listen: Vec::new(),
        handed: Vec::new(),
        overcommit: false,
        spin: Spin::Auto,
    };
    Server::start(&config, &OpenDevices::default())
}

impl Served {
    fn start() -> Served {
        let directory = || tempfile::tempdir().unwrap();
        let directories = [directory(), directory()];
        let paths = directories.each_ref().map(|it| it.path().to_owned());
        Served {
            directories,
            outside: directory(),
            server: start(&paths).unwrap(),
        }
    }

    fn file(&self, disk: usize) -> File {
        File::create(self.directories[disk].path().join("f")).unwrap()
    }

    /// Runs `calls` as the program, in a thread with a seccomp filter.
    fn run<T: Send>(&self, calls: impl FnOnce() -> T + Send) -> T {
        let (result, unheld) = self.run_for(Box::new(Quiet), calls);
        assert_eq!(unheld, []);
        result
    }

    /// As [`Served::run`], and tells a follower. Also returns what was not held.
    fn run_for<T: Send>(
        &self,
        follower: Box<dyn Follower>,
        calls: impl FnOnce() -> T + Send,
    ) -> (T, Vec<(Unheld, u64)>) {
        let (give, take) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        thread::scope(|scope| {
            let program = scope.spawn(move || {
                give.send(Listener::install(&notified_calls(SYNC))).unwrap();
                wait.recv().unwrap();
                calls()
            });
            let listener = take.recv().unwrap().unwrap();
            let followed = self
                .server
                .handle()
                .follow(listener, Uring::Count, follower)
                .unwrap();
            go.send(()).unwrap();
            let result = program.join().unwrap();
            (result, followed.counts().unheld.counted())
        })
    }

    fn inject(&self, disk: usize, rule: RuleSpec) {
        let (sender, receiver) = mpsc::channel();
        let send = move |answer| sender.send(answer).unwrap();
        let inject = |disk| Command::Inject {
            disk,
            group: GroupId(1),
            rules: vec![(RuleId(1), rule)],
        };
        self.server.handle().command(disk, inject, send).unwrap();
        assert!(matches!(receiver.recv().unwrap(), Ok(Answer::Done)));
    }

    fn snapshot(&self, disk: usize) -> DiskSnapshot {
        let (sender, receiver) = mpsc::channel();
        let send = move |snapshot| sender.send(snapshot).unwrap();
        self.server.handle().snapshot(disk, 8, send).unwrap();
        receiver.recv().unwrap()
    }

    /// Takes snapshots until this many syncs of a disk have ended.
    fn until_synced(&self, disk: usize, count: u64) {
        while self.snapshot(disk).stats.op(Op::Sync).completed != count {
            thread::yield_now();
        }
    }
}

fn sync_rule(effect: Effect) -> RuleSpec {
    RuleSpec {
        ops: OpSet::of(Op::Sync),
        mode: Mode::Add,
        ..RuleSpec::new(effect)
    }
}

fn delay(service: Duration) -> RuleSpec {
    let service = Service::Constant(service);
    sync_rule(Effect::Delay(Delay::new(service, None)))
}

#[test]
fn calls_on_files_of_a_disk_are_held_and_others_are_not() {
    let served = Served::start();
    let held = Duration::from_millis(20);
    served.inject(0, delay(held));
    let (mine, others) = (served.file(0), served.file(1));
    let outside = File::create(served.outside.path().join("f")).unwrap();
    served.run(|| {
        let begin = Instant::now();
        for _ in 0..3 {
            mine.sync_data().unwrap();
        }
        let lasted = begin.elapsed();
        assert!(
            lasted.as_nanos() as u64 >= 3 * held.as_nanos(),
            "{lasted:?}"
        );
        for _ in 0..5 {
            others.sync_all().unwrap();
            outside.sync_all().unwrap();
        }
    });
    served.until_synced(0, 3);
    served.until_synced(1, 5);
}

#[test]
fn calls_fail_as_ruled() {
    let served = Served::start();
    let fail = sync_rule(Effect::Fail {
        errno: Errno::NoSpc,
        work: false,
        delay: None,
    });
    let count = Count::first(2);
    served.inject(0, RuleSpec { count, ..fail });
    let file = served.file(0);
    let results = served.run(|| [(); 3].map(|()| file.sync_all().map_err(|e| e.kind())));
    let full = Err(std::io::ErrorKind::StorageFull);
    assert_eq!(results, [full, full, Ok(())]);
}

#[test]
fn a_sync_of_everything_is_held_by_every_disk() {
    let served = Served::start();
    let held = Duration::from_millis(30);
    served.inject(1, delay(held));
    let lasted = served.run(|| {
        let begin = Instant::now();
        rustix::fs::sync();
        begin.elapsed()
    });
    assert!(lasted.as_nanos() as u64 >= held.as_nanos(), "{lasted:?}");
    served.until_synced(0, 1);
    served.until_synced(1, 1);
}

#[test]
fn a_file_is_where_it_is_now() {
    let served = Served::start();
    let [a, b] = served.directories.each_ref().map(|it| it.path().to_owned());
    let file = served.file(0);
    served.run(|| {
        file.sync_all().unwrap();
        std::fs::rename(a.join("f"), b.join("g")).unwrap();
        file.sync_all().unwrap();
        std::fs::remove_file(b.join("g")).unwrap();
        let copy = file.try_clone().unwrap();
        drop(file);
        copy.sync_all().unwrap();
        File::open(&b).unwrap().sync_all().unwrap();
        std::fs::create_dir(a.join("below")).unwrap();
        File::create(a.join("below/f")).unwrap().sync_all().unwrap();
    });
    served.until_synced(0, 2);
    served.until_synced(1, 3);
}

/// A call that a rule has hung ends with an error when the server shuts down, because it must not succeed
/// before its rule lets it go.
#[test]
fn a_call_that_hangs_ends_with_the_server() {
    let served = Served::start();
    served.inject(0, sync_rule(Effect::Hang));
    let file = served.file(0);
    let (give, take) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let program = thread::spawn(move || {
        give.send(Listener::install(&notified_calls(SYNC))).unwrap();
        wait.recv().unwrap();
        file.sync_all()
    });
    let listener = take.recv().unwrap().unwrap();
    let _followed = served
        .server
        .handle()
        .follow(listener, Uring::Count, Box::new(Quiet))
        .unwrap();
    go.send(()).unwrap();
    while served.snapshot(0).in_flight.is_empty() {
        thread::yield_now();
    }
    served.server.shutdown(Duration::ZERO).unwrap();
    let error = program.join().unwrap().unwrap_err();
    assert_eq!(
        error.raw_os_error(),
        Some(rustix::io::Errno::IO.raw_os_error())
    );
}

#[test]
fn a_directory_must_exist() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let missing = PathBuf::from("/nowhere/at/all");
    for (path, why) in [
        (missing, "name a directory that exists"),
        (file.path().to_owned(), "it is no directory"),
    ] {
        let error = start(std::slice::from_ref(&path))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(why) && error.contains("path:/"), "{error}");
    }
}

/// A follower that sends to a channel each sentence that it gets, and then that no more calls come.
#[derive(Debug)]
struct Told(mpsc::Sender<Option<String>>);

impl Follower for Told {
    fn received(&self, call: &Call) -> bool {
        panic!("{call:?}");
    }

    fn answered(&self, call: CallId) {
        panic!("{call:?}");
    }

    fn say(&self, sentence: &str) {
        self.0.send(Some(sentence.to_owned())).unwrap();
    }

    fn ended(&self) {
        self.0.send(None).unwrap();
    }
}

#[test]
fn the_follower_hears_that_no_calls_can_be_received() {
    let served = Served::start();
    let no_listener = Listener::from_fd(File::open("/dev/null").unwrap().into(), true);
    let (sender, told) = mpsc::channel();
    let handle = served.server.handle();
    let follower = Box::new(Told(sender));
    let _followed = handle.follow(no_listener, Uring::Count, follower).unwrap();
    let said = told.recv().unwrap().unwrap();
    assert!(said.contains("no calls can be received"));
    assert_eq!(told.recv().unwrap(), None);
}

/// A follower without room for notes, which keeps the sentences that it gets.
#[derive(Debug)]
struct Full(mpsc::Sender<String>);

impl Follower for Full {
    fn received(&self, _: &Call) -> bool {
        false
    }

    fn answered(&self, _: CallId) {}

    fn say(&self, sentence: &str) {
        self.0.send(sentence.to_owned()).unwrap();
    }

    fn ended(&self) {}
}

#[test]
fn a_call_without_room_for_its_note_goes_on_and_is_counted() {
    let served = Served::start();
    served.inject(0, sync_rule(Effect::Hang));
    let file = served.file(0);
    let (sender, said) = mpsc::channel();
    let (_, unheld) = served.run_for(Box::new(Full(sender)), || file.sync_all().unwrap());
    assert_eq!(unheld, [(Unheld::UnknownFile, 1)]);
    assert!(said.recv().unwrap().contains("too many calls"));
}
