//! The processes of threads, and their names, against a naive model of a host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::follower::{CLONE_THREAD, ENDED_MAX, Follower, Present, TaskEvent};
use crate::io::Comm;

/// A host that knows each task. The first thread of a process stays until all threads have ended.
#[derive(Clone, Debug, Default)]
struct Host {
    tasks: BTreeMap<i32, Task>,
    /// The numbers of tasks that have gone since the follower last read events. No kernel reuses a number so
    /// soon.
    used: BTreeSet<i32>,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    process: i32,
    name: u8,
    is_alive: bool,
}

impl Present for Host {
    fn cgroup(&mut self, _pid: i32) -> Option<Arc<str>> {
        None
    }

    fn process(&mut self, pid: i32) -> Option<i32> {
        self.tasks.get(&pid).map(|task| task.process)
    }

    fn name(&mut self, pid: i32) -> Option<Comm> {
        self.tasks.get(&pid).map(|task| comm(task.name))
    }
}

/// A step of a history. Its first number chooses among the living threads.
#[derive(Clone, Debug)]
enum Step {
    Fork(usize, i32),
    Thread(usize, i32),
    Rename(usize, u8),
    /// A thread executes a program with this name.
    Exec(usize, u8),
    End(usize),
    Io(usize),
    /// The follower reads the events so far.
    Read,
    /// The kernel loses the events so far.
    Lose,
}

/// An event, or an I/O of a thread with the thread's process and the name of the process.
#[derive(Clone, Debug)]
enum Told {
    Event(TaskEvent),
    Io(i32, i32, Comm),
}

impl Host {
    fn new() -> Host {
        let mut host = Host::default();
        host.add(1, 1, 0);
        host
    }

    fn add(&mut self, tid: i32, process: i32, name: u8) {
        let is_alive = true;
        self.tasks.insert(
            tid,
            Task {
                process,
                name,
                is_alive,
            },
        );
    }

    fn choose(&self, at: usize) -> (i32, Task) {
        let living = self.tasks.iter().filter(|(_, task)| task.is_alive);
        let living: Vec<_> = living.collect();
        let (tid, task) = living[at % living.len()];
        (*tid, *task)
    }

    /// Does a step. The first task never ends, and executes no program from another thread.
    fn act(&mut self, step: &Step) -> Vec<Told> {
        match *step {
            Step::Fork(at, tid) | Step::Thread(at, tid) => {
                let is_thread = matches!(step, Step::Thread(..));
                self.make(at, tid, is_thread)
            }
            Step::Rename(at, name) => {
                let (tid, _) = self.choose(at);
                self.rename(tid, name)
            }
            Step::Exec(at, name) => self.execute(at, name),
            Step::End(at) => match self.choose(at) {
                (1, _) => Vec::new(),
                (tid, _) => self.end(tid),
            },
            Step::Io(at) => {
                let (tid, task) = self.choose(at);
                vec![Told::Io(
                    tid,
                    task.process,
                    comm(self.tasks[&task.process].name),
                )]
            }
            Step::Read | Step::Lose => Vec::new(),
        }
    }

    fn make(&mut self, at: usize, tid: i32, is_thread: bool) -> Vec<Told> {
        if self.tasks.contains_key(&tid) || self.used.contains(&tid) {
            return Vec::new();
        }
        let (maker, task) = self.choose(at);
        self.add(tid, if is_thread { task.process } else { tid }, task.name);
        vec![Told::Event(TaskEvent::Made {
            pid: tid,
            maker,
            flags: if is_thread { CLONE_THREAD } else { 0 },
            comm: comm(task.name),
        })]
    }

    fn rename(&mut self, tid: i32, name: u8) -> Vec<Told> {
        let (pid, comm) = (tid, comm(name));
        self.tasks.get_mut(&tid).expect("a task").name = name;
        vec![Told::Event(TaskEvent::Named { pid, comm })]
    }

    fn execute(&mut self, at: usize, name: u8) -> Vec<Told> {
        let (tid, Task { process, .. }) = self.choose(at);
        if process == 1 && tid != 1 {
            return Vec::new();
        }
        let others = self.tasks.iter();
        let others = others.filter(|(other, task)| task.process == process && **other != tid);
        let others: Vec<i32> = others
            .filter(|(_, task)| task.is_alive)
            .map(|(other, _)| *other)
            .collect();
        let mut told: Vec<Told> = others
            .into_iter()
            .flat_map(|other| self.end(other))
            .collect();
        self.tasks.remove(&tid);
        if tid != process {
            self.used.insert(tid);
        }
        self.add(process, process, name);
        told.extend(self.rename(process, name));
        told
    }

    fn end(&mut self, tid: i32) -> Vec<Told> {
        let process = self.tasks[&tid].process;
        self.tasks.get_mut(&tid).expect("a task").is_alive = false;
        let mut own = self.tasks.values().filter(|task| task.process == process);
        let is_over = !own.any(|task| task.is_alive);
        let tasks = std::mem::take(&mut self.tasks).into_iter();
        let (gone, left) = tasks.partition(|(other, task)| match *other {
            other if other == process => is_over,
            other => other == tid || (is_over && task.process == process),
        });
        self.tasks = left;
        self.used.extend(gone.into_keys());
        vec![Told::Event(TaskEvent::Ended { pid: tid })]
    }
}

fn comm(name: u8) -> Comm {
    Comm::new(format!("p{name}").as_bytes())
}

fn step() -> impl Strategy<Value = Step> {
    let (at, tid, name) = (0..20_usize, 2..20_i32, 1..5_u8);
    prop_oneof![
        2 => (at.clone(), tid.clone()).prop_map(|(at, tid)| Step::Fork(at, tid)),
        3 => (at.clone(), tid).prop_map(|(at, tid)| Step::Thread(at, tid)),
        1 => (at.clone(), name.clone()).prop_map(|(at, name)| Step::Rename(at, name)),
        1 => (at.clone(), name).prop_map(|(at, name)| Step::Exec(at, name)),
        2 => at.clone().prop_map(Step::End),
        4 => at.prop_map(Step::Io),
        2 => Just(Step::Read),
        1 => Just(Step::Lose),
    ]
}

/// A thread's process and its name, as far as they are known.
type Process = (Option<i32>, Option<Comm>);

/// The processes that a follower finds for the I/Os of a history, each with the true process.
fn followed(steps: &[Step]) -> Vec<(Process, Process)> {
    let mut host = Host::new();
    let mut follower = Follower::new(true);
    follower.know(1, 1, None);
    follower.name(1, &mut host);
    let (mut unread, mut found) = (Vec::new(), Vec::new());
    for step in steps.iter().chain([&Step::Read]) {
        unread.extend(host.act(step));
        match step {
            Step::Read => {}
            Step::Lose => {
                unread.clear();
                follower.forget();
                continue;
            }
            _ => continue,
        }
        host.used.clear();
        for told in unread.drain(..) {
            match told {
                Told::Event(event) => follower.take(&event, &mut host),
                Told::Io(tid, pid, name) => {
                    let own = follower.process(tid, &mut host);
                    let known = own.and_then(|pid| follower.name(pid, &mut host));
                    found.push(((own, known), (Some(pid), Some(name))));
                }
            }
        }
    }
    found
}

proptest! {
    /// If no event is lost, the follower looks up nothing, and every answer is that of the I/O's own moment,
    /// even if the thread has meanwhile ended or its process executes another program.
    #[test]
    fn each_io_has_the_process_of_its_moment(steps in prop::collection::vec(step(), 0..80)) {
        let steps: Vec<Step> = steps.into_iter().filter(|step| !matches!(step, Step::Lose)).collect();
        for (found, truth) in followed(&steps) {
            prop_assert_eq!(found, truth);
        }
    }

    /// After a loss, an answer is true or unknown. Only the name can be a later one.
    #[test]
    fn after_a_loss_a_process_is_true_or_unknown(steps in prop::collection::vec(step(), 0..80)) {
        for ((pid, name), (truth, _)) in followed(&steps) {
            prop_assert!(pid.is_none() || pid == truth, "{:?} is not {:?}", pid, truth);
            prop_assert!(pid.is_some() || name.is_none());
        }
    }

    /// After a loss, an answer that is read at once is true.
    #[test]
    fn after_a_loss_what_is_read_at_once_is_true(steps in prop::collection::vec(step(), 0..80)) {
        let steps: Vec<Step> = steps.into_iter().flat_map(|step| [step, Step::Read]).collect();
        for (found, truth) in followed(&steps) {
            prop_assert_eq!(found, truth);
        }
    }
}

#[test]
fn a_thread_that_was_never_seen_and_has_ended_has_no_process() {
    let mut host = Host::default();
    let mut follower = Follower::new(true);
    let made = |pid, maker| TaskEvent::Made {
        pid,
        maker,
        flags: CLONE_THREAD,
        comm: comm(3),
    };
    // Not even its maker is known.
    follower.take(&made(8, 7), &mut host);
    let told = [7, 8].map(|tid| {
        (
            follower.process(tid, &mut host),
            follower.name(tid, &mut host),
        )
    });
    assert_eq!(told, [(None, None), (None, Some(comm(3)))]);
    // A process found later is that of the thread, never the thread's own number.
    host.add(8, 5, 3);
    assert_eq!(follower.process(8, &mut host), Some(5));
}

/// A follower that has read the events of these steps and then, of more tasks than it remembers, the ends.
fn long_after(steps: &[Step]) -> (Follower, Host) {
    let mut host = Host::new();
    let mut follower = Follower::new(true);
    for told in steps
        .iter()
        .flat_map(|step| host.act(step))
        .collect::<Vec<_>>()
    {
        if let Told::Event(event) = told {
            follower.take(&event, &mut host);
        }
    }
    for pid in 10..i32::try_from(ENDED_MAX).expect("few") + 12 {
        follower.take(&TaskEvent::Named { pid, comm: comm(1) }, &mut host);
        follower.take(&TaskEvent::Ended { pid }, &mut host);
    }
    (follower, host)
}

#[test]
fn a_program_that_another_thread_executes_has_the_number_of_the_first() {
    let steps = [Step::Fork(0, 2), Step::Thread(1, 3), Step::Exec(2, 4)];
    let (mut follower, _) = long_after(&steps);
    let mut nothing = Host::default();
    assert_eq!(follower.process(2, &mut nothing), Some(2), "it lives on");
    assert_eq!(follower.name(2, &mut nothing), Some(comm(4)));
}

#[test]
fn the_first_thread_may_end_long_before_its_process() {
    let steps = [
        Step::Fork(0, 2),
        Step::Thread(1, 3),
        Step::Rename(1, 4),
        Step::End(1),
    ];
    let (mut follower, mut host) = long_after(&steps);
    assert!(!follower.tasks.contains_key(&2), "it is forgotten");
    assert_eq!(follower.process(3, &mut host), Some(2));
    assert_eq!(follower.name(2, &mut host), Some(comm(4)));
}
