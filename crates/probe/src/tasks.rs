//! The names and the cgroups of this host's tasks, with which the probe describes the submitters of I/Os and
//! of calls that sync.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::cgroup::{GONE, Hierarchy};
use crate::follower::{Follower, Present, TaskEvent};
use crate::io::Comm;
use crate::tracefs::setup::Plan;

/// The tasks as they were at the last event.
#[derive(Debug)]
pub(crate) struct Tasks {
    follower: Follower,
    present: Hierarchy,
    /// Whether the kernel has all events that the follower needs. If not, the tasks' cgroups are looked up
    /// again at each reading.
    is_followed: bool,
    /// Whether events have been lost since all tasks were last looked up.
    is_unsure: bool,
    gone: Arc<str>,
    /// The names of tasks that events have shown, until they end.
    names: HashMap<i32, Comm, RandomState>,
}

impl Tasks {
    /// Lists the tasks that exist now. The kernel must already be recording the events of tasks.
    pub(crate) fn begin(plan: Plan) -> Tasks {
        let (present, is_followed) = (plan.hierarchy, plan.is_followed);
        let mut follower = Follower::new(present.is_unified());
        if is_followed {
            present.introduce(&mut follower);
        }
        Tasks {
            follower,
            present,
            is_followed,
            is_unsure: false,
            gone: GONE.into(),
            names: HashMap::default(),
        }
    }

    /// Takes the next event, in order of time.
    pub(crate) fn take(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::Made { pid, comm, .. } | TaskEvent::Named { pid, comm } => {
                self.names.insert(*pid, *comm);
            }
            TaskEvent::Ended { pid } => drop(self.names.remove(pid)),
            TaskEvent::Moved { .. } => {}
        }
        match event {
            // The event has a path from the root of the host's hierarchy. All other paths come from `/proc`,
            // and begin at the root of this process's cgroup namespace. So read this path from `/proc`, too.
            TaskEvent::Moved { pid, .. } if !self.present.is_whole => {
                let (pid, now) = (*pid, self.present.cgroup(*pid));
                let cgroup = now.unwrap_or_else(|| Arc::clone(&self.gone));
                let moved = TaskEvent::Moved { pid, cgroup };
                self.follower.take(&moved, &mut self.present);
            }
            event => self.follower.take(event, &mut self.present),
        }
    }

    /// The cgroup of a task, or [`GONE`].
    pub(crate) fn cgroup(&mut self, pid: i32) -> Arc<str> {
        let known = self.follower.of(pid, &mut self.present);
        known.unwrap_or_else(|| Arc::clone(&self.gone))
    }

    /// The name of a task; `None` if no event has shown the task and the task has ended.
    pub(crate) fn name(&mut self, pid: i32) -> Option<Comm> {
        if let Some(name) = self.names.get(&pid) {
            return Some(*name);
        }
        let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
        Some(Comm::new(name.strip_suffix(b"\n").unwrap_or(&name)))
    }

    /// Notes that events were lost.
    pub(crate) fn lost(&mut self) {
        self.names.clear();
        self.follower.forget();
        self.is_unsure = true;
    }

    /// Notes that all events up to now have been taken.
    pub(crate) fn caught_up(&mut self) {
        if !self.is_followed {
            self.follower.forget();
        }
    }

    /// Looks at all tasks again after a loss. This is slow, so call it rarely.
    pub(crate) fn tend(&mut self) {
        if std::mem::take(&mut self.is_unsure) && self.is_followed {
            self.present.introduce(&mut self.follower);
        }
    }
}
