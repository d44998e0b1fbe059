//! Follows tasks through the kernel's events, so that each I/O has the process, the names and the cgroup that
//! its task had when the task asked for the I/O.
//!
//! A task is a thread. A new task with the flag `CLONE_THREAD` is a thread of its maker's process; any other
//! new task is the first thread of a new process. A task has its maker's name until the event `task_rename`
//! shows another one, such as that of a program that the task executes. When a thread other than the first
//! executes a program, all other threads end, and the thread gets the number of the first: only the event of
//! its new name shows that the task with that number lives on.
//!
//! A new task is in the cgroup of the task that made it, and stays in that cgroup until it is moved. The
//! events `task_newtask`, `cgroup_attach_task` and `sched_process_exit` therefore suffice.
//! (`sched_process_fork` has no flags, and the kernel does not raise it for the workers of io_uring.) In two
//! cases, these events do not show a task's cgroup:
//!
//! - A task that was made directly into a cgroup (`CLONE_INTO_CGROUP`, of the unified hierarchy only) causes
//!   no event of a move. The follower looks up the task's cgroup when it reads the event of its creation. If
//!   the new task has ended by then, the follower counts it in the cgroup of its maker, and marks the new
//!   task and all tasks that it made ([`INHERITED`]).
//! - When a process is moved, the kernel raises one event, for the first thread, as if only that thread were
//!   moved. The follower therefore also looks up the cgroups of the other threads. If threads have ended by
//!   then, the follower assumes that they were moved, and marks them.
//!
//! A task may ask for I/O after its exit has begun, while its files are closed. The follower therefore
//! remembers each task until its number is used again or until many other tasks have ended.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::io::Comm;

/// Marks a cgroup that may not be the task's own: the cgroup of the task's maker or process.
pub const INHERITED: &str = " (inherited)";

/// An event in the life of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskEvent {
    Made {
        /// The number of the task.
        pid: i32,
        /// The number of the task that made the new task.
        maker: i32,
        /// The flags of `clone`.
        flags: u64,
        /// The task's name, which is still the name of its maker.
        comm: Comm,
    },
    /// A task was given another name.
    Named {
        /// The number of the task.
        pid: i32,
        /// The name.
        comm: Comm,
    },
    /// A task was moved to this cgroup. If it is the first task of its process, perhaps the whole process was
    /// moved.
    Moved {
        /// The number of the task.
        pid: i32,
        /// The path of the cgroup.
        cgroup: Arc<str>,
    },
    /// A task began to exit.
    Ended {
        /// The number of the task.
        pid: i32,
    },
}

/// The present state of tasks, where the follower looks up the facts that no event showed.
pub(crate) trait Present {
    /// The path of the cgroup that governs a task's I/O now; `None` if the task has ended.
    fn cgroup(&mut self, pid: i32) -> Option<Arc<str>>;

    /// The number of the first thread of a task's process; `None` if the task has ended.
    fn process(&mut self, pid: i32) -> Option<i32>;

    /// The name that a task has now; `None` if the task has ended.
    fn name(&mut self, pid: i32) -> Option<Comm>;
}

/// The tasks, at the moment of the last event.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    tasks: HashMap<i32, Task, RandomState>,
    /// Tasks that have begun to exit, with their serial numbers, in the order in which they exited.
    ended: VecDeque<(i32, u64)>,
    serial: u64,
    /// Whether tasks can be made directly into cgroups, which only the unified hierarchy allows.
    is_unified: bool,
}

/// A task, with the facts that are known so far.
#[derive(Clone, Debug, Default)]
struct Task {
    /// The number of the first thread of the task's process.
    process: Option<i32>,
    name: Option<Comm>,
    cgroup: Option<Arc<str>>,
    /// Distinguishes the task from other tasks with the same number.
    serial: u64,
    has_ended: bool,
}

impl Follower {
    pub(crate) fn new(is_unified: bool) -> Follower {
        Follower {
            is_unified,
            ..Follower::default()
        }
    }

    /// Notes an existing task, unless an event has already shown it.
    pub(crate) fn know(&mut self, pid: i32, process: i32, cgroup: Option<Arc<str>>) {
        if !self.tasks.contains_key(&pid) {
            self.put(pid, Some(process), None, cgroup);
        }
    }

    /// Takes the next event, in order of time.
    pub(crate) fn take(&mut self, event: &TaskEvent, present: &mut impl Present) {
        match event {
            TaskEvent::Made {
                pid,
                maker,
                flags,
                comm,
            } => {
                let cgroup = self.inherited(*pid, *maker, *flags, present);
                let process = match flags & CLONE_THREAD {
                    0 => Some(*pid),
                    _ => self.process(*maker, present),
                };
                self.put(*pid, process, Some(*comm), cgroup);
            }
            TaskEvent::Named { pid, comm } => self.rename(*pid, *comm),
            TaskEvent::Moved { pid, cgroup } => self.go(*pid, cgroup, present),
            TaskEvent::Ended { pid } => self.end(*pid),
        }
    }

    /// The cgroup of a task at the moment of the last event; `None` if no event has shown it and the task has
    /// ended.
    pub(crate) fn cgroup(&mut self, pid: i32, present: &mut impl Present) -> Option<Arc<str>> {
        let known = self.tasks.get(&pid).and_then(|task| task.cgroup.clone());
        if known.is_some() {
            return known;
        }
        let cgroup = present.cgroup(pid)?;
        self.task(pid).cgroup = Some(Arc::clone(&cgroup));
        Some(cgroup)
    }

    /// The number of the first thread of a task's process; `None` as for [`Follower::cgroup`].
    pub(crate) fn process(&mut self, pid: i32, present: &mut impl Present) -> Option<i32> {
        let known = self.tasks.get(&pid).and_then(|task| task.process);
        if known.is_some() {
            return known;
        }
        let process = present.process(pid)?;
        self.task(pid).process = Some(process);
        Some(process)
    }

    /// The name of a task at the moment of the last event; `None` as for [`Follower::cgroup`].
    pub(crate) fn name(&mut self, pid: i32, present: &mut impl Present) -> Option<Comm> {
        let known = self.tasks.get(&pid).and_then(|task| task.name);
        if known.is_some() {
            return known;
        }
        let name = present.name(pid)?;
        self.task(pid).name = Some(name);
        Some(name)
    }

    /// Forgets all tasks, because events were lost. The follower then looks up each fact about a task again
    /// when it needs the fact.
    pub(crate) fn forget(&mut self) {
        self.tasks.clear();
        self.ended.clear();
    }

    fn put(
        &mut self,
        pid: i32,
        process: Option<i32>,
        name: Option<Comm>,
        cgroup: Option<Arc<str>>,
    ) {
        self.serial += 1;
        let task = Task {
            process,
            name,
            cgroup,
            serial: self.serial,
            has_ended: false,
        };
        self.tasks.insert(pid, task);
    }

    fn task(&mut self, pid: i32) -> &mut Task {
        self.tasks.entry(pid).or_insert_with(|| {
            self.serial += 1;
            Task {
                serial: self.serial,
                ..Task::default()
            }
        })
    }

    /// The cgroup in which a new task begins.
    fn inherited(
        &mut self,
        pid: i32,
        maker: i32,
        flags: u64,
        present: &mut impl Present,
    ) -> Option<Arc<str>> {
        let inherited = self.cgroup(maker, present);
        if self.is_unified && flags & CLONE_INTO_CGROUP != 0 {
            present.cgroup(pid).or(inherited.map(|path| mark(&path)))
        } else {
            inherited
        }
    }

    fn rename(&mut self, pid: i32, name: Comm) {
        self.serial += 1;
        let serial = self.serial;
        let task = self.task(pid);
        task.name = Some(name);
        if std::mem::take(&mut task.has_ended) {
            task.serial = serial;
        }
    }

    fn go(&mut self, pid: i32, cgroup: &Arc<str>, present: &mut impl Present) {
        if self.process(pid, present).is_none_or(|own| own == pid) {
            let others = self.tasks.iter_mut();
            let others = others.filter(|(other, task)| task.process == Some(pid) && **other != pid);
            for (other, task) in others.filter(|(_, task)| !task.has_ended) {
                let now = present.cgroup(*other);
                task.cgroup = Some(now.unwrap_or_else(|| mark(cgroup)));
            }
        }
        self.task(pid).cgroup = Some(Arc::clone(cgroup));
    }

    fn end(&mut self, pid: i32) {
        let Some(task) = self.tasks.get_mut(&pid) else {
            return;
        };
        task.has_ended = true;
        self.ended.push_back((pid, task.serial));
        if self.ended.len() > ENDED_MAX
            && let Some((oldest, serial)) = self.ended.pop_front()
            && let Some(task) = self.tasks.get(&oldest)
            && task.serial == serial
        {
            self.tasks.remove(&oldest);
        }
    }
}

/// The path with the mark, which is never added twice.
fn mark(cgroup: &str) -> Arc<str> {
    let path = cgroup.strip_suffix(INHERITED).unwrap_or(cgroup);
    format!("{path}{INHERITED}").into()
}

/// Flags of `clone`, from `linux/sched.h`.
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// The most tasks that are remembered after they have ended.
const ENDED_MAX: usize = 4_096;

#[cfg(test)]
mod tests;
