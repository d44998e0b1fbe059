//! The processes, the names and the cgroups of this host's tasks, with which the probe describes the
//! submitters of I/Os and of calls that sync.

use std::sync::Arc;

use crate::cgroup::GONE;
use crate::follower::{Follower, Present, TaskEvent};
use crate::io::{Comm, Owner, Process};
use crate::proc::Proc;
use crate::tracefs::setup::Plan;
use crate::tracefs::tasks::Facts;

/// The tasks as they were at the last event.
#[derive(Debug)]
pub(crate) struct Tasks {
    follower: Follower,
    present: Proc,
    facts: Facts,
    /// Whether the kernel has all events that the follower needs. If not, the tasks are looked up again at
    /// each reading.
    is_followed: bool,
    /// Whether events have been lost since all tasks were last looked up.
    is_unsure: bool,
    gone: Arc<str>,
}

impl Tasks {
    /// Lists the tasks that exist now, if any facts about them are needed. The kernel must already be
    /// recording the events of tasks.
    pub(crate) fn begin(plan: Plan) -> Tasks {
        let facts = plan.facts;
        let is_unified = facts.hierarchy.is_some_and(|own| own.is_unified());
        let mut tasks = Tasks {
            follower: Follower::new(is_unified),
            present: Proc::new(facts.hierarchy),
            facts,
            is_followed: plan.is_followed,
            is_unsure: true,
            gone: GONE.into(),
        };
        tasks.tend();
        tasks
    }

    /// Takes the next event, in order of time.
    pub(crate) fn take(&mut self, event: &TaskEvent) {
        match event {
            // The event has a path from the root of the host's hierarchy. All other paths come from `/proc`,
            // and begin at the root of this process's cgroup namespace. So read this path from `/proc`, too.
            TaskEvent::Moved { pid, .. }
                if self.facts.hierarchy.is_some_and(|own| !own.is_whole) =>
            {
                let (pid, now) = (*pid, self.present.cgroup(*pid));
                let cgroup = now.unwrap_or_else(|| Arc::clone(&self.gone));
                let moved = TaskEvent::Moved { pid, cgroup };
                self.follower.take(&moved, &mut self.present);
            }
            event => self.follower.take(event, &mut self.present),
        }
    }

    /// The owner of a thread with this name, with the facts that are needed. A cgroup that is not known is
    /// [`GONE`].
    pub(crate) fn owner(&mut self, tid: i32, thread: Option<Comm>) -> Owner {
        let Facts {
            processes,
            hierarchy,
        } = self.facts;
        let (follower, present) = (&mut self.follower, &mut self.present);
        let cgroup = hierarchy.map(|_| {
            let known = follower.cgroup(tid, present);
            known.unwrap_or_else(|| Arc::clone(&self.gone))
        });
        let pid = processes.then(|| follower.process(tid, present)).flatten();
        let process = pid.map(|pid| Process {
            pid,
            // For the workers of the kernel, `/proc` adds their work to the name.
            name: thread
                .filter(|_| pid == tid)
                .or_else(|| follower.name(pid, present)),
        });
        Owner { process, cgroup }
    }

    /// The name of a thread; `None` if no event has shown the thread and the thread has ended.
    pub(crate) fn name(&mut self, tid: i32) -> Option<Comm> {
        self.follower.name(tid, &mut self.present)
    }

    /// Notes that events were lost.
    pub(crate) fn lost(&mut self) {
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
        let is_asked = self.facts.processes || self.facts.hierarchy.is_some();
        if std::mem::take(&mut self.is_unsure) && self.is_followed && is_asked {
            self.present.introduce(&mut self.follower);
        }
    }
}
