use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::io::Comm;

use super::{
    CLONE_INTO_CGROUP, CLONE_THREAD, ENDED_MAX, Follower, INHERITED, Present, TaskEvent, mark,
};

/// The naive model: a host that knows the true cgroup of each task.
#[derive(Clone, Debug, Default)]
struct Host {
    tasks: BTreeMap<i32, (i32, Arc<str>)>,
    /// The numbers of tasks that have ended since the follower last read events. No kernel reuses a number so
    /// soon.
    used: BTreeSet<i32>,
}

impl Present for Host {
    fn cgroup(&mut self, pid: i32) -> Option<Arc<str>> {
        self.tasks.get(&pid).map(|(_, cgroup)| Arc::clone(cgroup))
    }

    fn process(&mut self, pid: i32) -> Option<i32> {
        self.tasks.get(&pid).map(|(process, _)| *process)
    }

    fn name(&mut self, _pid: i32) -> Option<Comm> {
        None
    }
}

/// A step of a history. Its numbers choose among the existing tasks.
#[derive(Clone, Debug)]
enum Step {
    Fork(usize, i32),
    Thread(usize, i32),
    Into(usize, i32, u8),
    Move(usize, u8),
    End(usize),
    Io(usize),
    /// The follower reads the events so far.
    Read,
}

/// An event, or an I/O of a task whose true cgroup the model knows.
#[derive(Clone, Debug)]
enum Told {
    Event(TaskEvent),
    Io(i32, Arc<str>),
}

impl Host {
    fn is_used(&self, pid: i32) -> bool {
        self.tasks.contains_key(&pid) || self.used.contains(&pid)
    }

    fn choose(&self, at: usize) -> (i32, i32, Arc<str>) {
        let nth = self.tasks.iter().nth(at % self.tasks.len());
        let (pid, (process, cgroup)) = nth.expect("a task");
        (*pid, *process, Arc::clone(cgroup))
    }

    /// Does a step; the first task never ends.
    fn act(&mut self, step: &Step) -> Option<Told> {
        let made = |pid, maker, flags| Some(Told::Event(made(pid, maker, flags)));
        match *step {
            Step::Fork(at, pid) | Step::Thread(at, pid) | Step::Into(at, pid, _)
                if self.is_used(pid) =>
            {
                self.act(&Step::Io(at))
            }
            Step::Fork(at, pid) => {
                let (maker, _, cgroup) = self.choose(at);
                self.tasks.insert(pid, (pid, cgroup));
                made(pid, maker, 0)
            }
            Step::Thread(at, pid) => {
                let (maker, process, cgroup) = self.choose(at);
                self.tasks.insert(pid, (process, cgroup));
                made(pid, maker, CLONE_THREAD)
            }
            Step::Into(at, pid, cgroup) => {
                let (maker, _, _) = self.choose(at);
                self.tasks.insert(pid, (pid, path(cgroup)));
                made(pid, maker, CLONE_INTO_CGROUP)
            }
            Step::Move(at, cgroup) => {
                let (_, process, _) = self.choose(at);
                let cgroup = path(cgroup);
                let threads = self.tasks.values_mut().filter(|(of, _)| *of == process);
                threads.for_each(|(_, own)| *own = Arc::clone(&cgroup));
                Some(Told::Event(TaskEvent::Moved {
                    pid: process,
                    cgroup,
                }))
            }
            Step::End(at) => {
                let (pid, process, _) = self.choose(at);
                let has_threads = self
                    .tasks
                    .iter()
                    .any(|(other, (of, _))| *of == pid && *other != pid);
                if pid == 1 || (process == pid && has_threads) {
                    return None;
                }
                self.tasks.remove(&pid);
                self.used.insert(pid);
                Some(Told::Event(TaskEvent::Ended { pid }))
            }
            Step::Io(at) => {
                let (pid, _, cgroup) = self.choose(at);
                Some(Told::Io(pid, cgroup))
            }
            Step::Read => None,
        }
    }
}

fn path(number: u8) -> Arc<str> {
    format!("/{number}").into()
}

fn step() -> impl Strategy<Value = Step> {
    let (at, pid, cgroup) = (0..20_usize, 2..20_i32, 0..4_u8);
    prop_oneof![
        2 => (at.clone(), pid.clone()).prop_map(|(at, pid)| Step::Fork(at, pid)),
        1 => (at.clone(), pid.clone()).prop_map(|(at, pid)| Step::Thread(at, pid)),
        1 => (at.clone(), pid, cgroup.clone()).prop_map(|(at, pid, to)| Step::Into(at, pid, to)),
        2 => (at.clone(), cgroup).prop_map(|(at, to)| Step::Move(at, to)),
        2 => at.clone().prop_map(Step::End),
        4 => at.prop_map(Step::Io),
        1 => Just(Step::Read),
    ]
}

/// The cgroups that a follower finds for the I/Os of a history, each with the true cgroup.
fn followed(steps: &[Step], is_unified: bool) -> Vec<(String, String)> {
    let mut host = Host::default();
    host.tasks.insert(1, (1, path(0)));
    let mut follower = Follower::new(is_unified);
    follower.know(1, 1, Some(path(0)));
    let (mut unread, mut found) = (Vec::new(), Vec::new());
    for step in steps.iter().chain([&Step::Read]) {
        unread.extend(host.act(step));
        if !matches!(step, Step::Read) {
            continue;
        }
        host.used.clear();
        for told in unread.drain(..) {
            match told {
                Told::Event(event) => follower.take(&event, &mut host),
                Told::Io(pid, truth) => {
                    let cgroup = follower.cgroup(pid, &mut host).expect("each task is known");
                    found.push((cgroup.to_string(), truth.to_string()));
                }
            }
        }
    }
    found
}

proptest! {
    /// Without threads and without tasks made directly into cgroups, the follower needs only events, and
    /// looks up nothing. Every answer must then be true, even for tasks that had ended before their events
    /// were read.
    #[test]
    fn each_io_has_the_cgroup_of_its_moment(steps in prop::collection::vec(step(), 0..80)) {
        let is_sure = |step: &&Step| !matches!(step, Step::Into(..) | Step::Thread(..));
        let steps: Vec<Step> = steps.iter().filter(is_sure).cloned().collect();
        for (found, truth) in followed(&steps, true) {
            prop_assert_eq!(found, truth);
        }
    }

    /// If each event is read at once, every answer is true, even with threads and with tasks made directly
    /// into cgroups.
    #[test]
    fn what_is_read_at_once_is_true(steps in prop::collection::vec(step(), 0..80)) {
        let steps: Vec<Step> = steps.into_iter().flat_map(|step| [step, Step::Read]).collect();
        for (found, truth) in followed(&steps, true) {
            prop_assert_eq!(found, truth);
        }
    }

    /// If no process is moved while events wait to be read, every answer is true or marked.
    #[test]
    fn an_answer_is_true_or_marked(steps in prop::collection::vec(step(), 0..80)) {
        let settled = |step: Step| match step {
            Step::Move(..) => vec![Step::Read, step, Step::Read],
            step => vec![step],
        };
        let steps: Vec<Step> = steps.into_iter().flat_map(settled).collect();
        for (found, truth) in followed(&steps, true) {
            prop_assert!(found == truth || found.ends_with(INHERITED), "{} is not {}", found, truth);
        }
    }
}

fn made(pid: i32, maker: i32, flags: u64) -> TaskEvent {
    let comm = Comm::default();
    TaskEvent::Made {
        pid,
        maker,
        flags,
        comm,
    }
}

mod processes;

#[test]
fn a_child_made_into_a_cgroup_that_is_gone_counts_in_its_makers_and_is_marked() {
    let mut host = Host::default();
    let of = |is_unified| {
        let mut follower = Follower::new(is_unified);
        follower.know(1, 1, Some(path(1)));
        follower.take(&made(2, 1, CLONE_INTO_CGROUP), &mut Host::default());
        follower.take(&made(3, 2, 0), &mut Host::default());
        let paths = [2, 3].map(|pid| follower.cgroup(pid, &mut Host::default()));
        paths.map(|path| path.expect("known").to_string())
    };
    assert_eq!(of(true), ["/1 (inherited)", "/1 (inherited)"]);
    // In a hierarchy of cgroup v1, `CLONE_INTO_CGROUP` has no meaning.
    assert_eq!(of(false), ["/1", "/1"]);
    assert_eq!(&*mark(&mark("/1")), "/1 (inherited)");
    assert_eq!(Follower::new(true).cgroup(7, &mut host), None);
}

#[test]
fn a_move_of_a_process_moves_its_threads_and_a_move_of_a_thread_moves_no_other() {
    let mut host = Host::default();
    let mut follower = Follower::new(false);
    follower.know(1, 1, Some(path(1)));
    follower.know(2, 1, Some(path(1)));
    let moved = |pid, cgroup| TaskEvent::Moved {
        pid,
        cgroup: path(cgroup),
    };
    follower.take(&moved(2, 3), &mut host);
    let of = |follower: &mut Follower, pid| {
        follower
            .cgroup(pid, &mut Host::default())
            .expect("known")
            .to_string()
    };
    assert_eq!([of(&mut follower, 1), of(&mut follower, 2)], ["/1", "/3"]);
    // The second thread has ended, so the follower cannot know whether it was moved.
    follower.take(&moved(1, 4), &mut host);
    assert_eq!(
        [of(&mut follower, 1), of(&mut follower, 2)],
        ["/4", "/4 (inherited)"]
    );
    // The thread still exists, and was not moved.
    host.tasks.insert(2, (1, path(3)));
    follower.take(&moved(1, 5), &mut host);
    assert_eq!([of(&mut follower, 1), of(&mut follower, 2)], ["/5", "/3"]);
}

#[test]
fn tasks_that_have_ended_are_remembered_for_their_last_ios_but_not_for_ever() {
    let mut follower = Follower::new(true);
    follower.know(1, 1, Some(path(1)));
    let many = 2..i32::try_from(ENDED_MAX).expect("few") + 3;
    for pid in many.clone() {
        follower.take(&made(pid, 1, 0), &mut Host::default());
        follower.take(&TaskEvent::Ended { pid }, &mut Host::default());
    }
    let known = many.filter(|pid| follower.cgroup(*pid, &mut Host::default()).is_some());
    assert_eq!(known.count(), ENDED_MAX);
    assert_eq!(follower.tasks.len(), ENDED_MAX + 1);
    follower.forget();
    assert_eq!(follower.cgroup(1, &mut Host::default()), None);
}
