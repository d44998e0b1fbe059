//! All processes of a program, to be killed when dashpot has been killed.
//!
//! The kernel can end a process together with its parent, but not the process's children, and some of them may
//! wait in a call that dashpot never sees. So the keeper finds the descendants of the program's first process.
//! It stops them all before it kills one: the children of a process that has ended are no longer its
//! descendants.

use std::collections::HashSet;
use std::fs::{read, read_dir, read_to_string};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The processes from which all others descend: the first one, and orphans, which dashpot has adopted.
#[derive(Debug)]
pub(super) struct Tree {
    roots: HashSet<Process>,
    /// dashpot, the parent of the orphans.
    dashpot: Option<Process>,
    /// How many seccomp filters this process has. Each process of the program has more, and no other child of
    /// dashpot has.
    filters: u32,
}

/// A process. Its start tells it from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    number: i32,
    started: u64,
}

impl Tree {
    /// The tree of a program whose first process lives, as a child of `dashpot`.
    pub(super) fn of(first: Option<i32>, dashpot: Option<i32>) -> Tree {
        let [first, dashpot] = [first, dashpot].map(|it| it.and_then(Process::of));
        Tree {
            roots: first.into_iter().collect(),
            dashpot,
            filters: filters("self").unwrap_or(u32::MAX),
        }
    }

    /// Looks for orphans that dashpot has adopted. The kernel does not report them.
    pub(super) fn look_for_orphans(&mut self) {
        let dashpot = self
            .dashpot
            .filter(|it| Process::of(it.number) == Some(*it));
        let tasks = dashpot.map(|it| read_dir(format!("/proc/{}/task", it.number)));
        let tasks = tasks.into_iter().flatten();
        for task in tasks.flatten().flatten() {
            let children = read_to_string(task.path().join("children")).unwrap_or_default();
            for number in children.split(' ').filter_map(|word| word.parse().ok()) {
                if filters(&i32::to_string(&number)).is_some_and(|its| its > self.filters) {
                    self.roots.extend(Process::of(number));
                }
            }
        }
    }

    /// Kills all processes of the tree.
    pub(super) fn kill(&self) {
        let mut stopped = HashSet::new();
        // Ends, because a stopped process makes no others.
        for _ in 0..ROUNDS_MAX {
            let mut found = descendants(&self.roots, &processes());
            found.retain(|process| stopped.insert(*process));
            if found.is_empty() {
                break;
            }
            found.iter().for_each(|process| process.send(Signal::STOP));
        }
        stopped
            .iter()
            .for_each(|process| process.send(Signal::KILL));
    }
}

impl Process {
    fn of(number: i32) -> Option<Process> {
        Some(Process::with_parent(number)?.0)
    }

    /// The process with this number, and the number of its parent. `None` if there is no such process.
    fn with_parent(number: i32) -> Option<(Process, i32)> {
        let stat = read(format!("/proc/{number}/stat")).ok()?;
        let (parent, started) = parent_and_start(&String::from_utf8_lossy(&stat))?;
        Some((Process { number, started }, parent))
    }

    fn send(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.number) else {
            return;
        };
        // The descriptor stays that of the process that has the number now, so check which one it is.
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
            && Process::of(self.number) == Some(self)
        {
            // A process that has ended needs no signal.
            let _ = pidfd_send_signal(process, signal);
        }
    }
}

/// The parent of a process and the time of its start, from its `/proc/PID/stat`. The fields follow the name of
/// the program, which is in parentheses, and may itself have spaces and parentheses. See proc(5).
fn parent_and_start(stat: &str) -> Option<(i32, u64)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(1);
    let parent = fields.next()?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}

/// All processes of this host or container, with the numbers of their parents.
fn processes() -> Vec<(Process, i32)> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_string_lossy().parse().ok());
    numbers.filter_map(Process::with_parent).collect()
}

/// The roots and all their descendants among these processes.
fn descendants(roots: &HashSet<Process>, all: &[(Process, i32)]) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut numbers = HashSet::new();
    loop {
        let before = found.len();
        for (process, parent) in all {
            let is_of_it = roots.contains(process) || numbers.contains(parent);
            if is_of_it && numbers.insert(process.number) {
                found.push(*process);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// How many seccomp filters a process has. Kernels before 5.9 do not tell.
fn filters(process: &str) -> Option<u32> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    count.trim().parse().ok()
}

/// A program that forks as fast as it can may need several rounds until all its processes are stopped.
const ROUNDS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::{Process, descendants, parent_and_start};
    use std::collections::HashSet;

    #[test]
    fn a_line_of_stat_tells_the_parent_and_the_start() {
        let rest = "5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23";
        let line = format!("3 (a ) b) S 4 {rest}");
        assert_eq!(parent_and_start(&line), Some((4, 4711)));
        assert_eq!(parent_and_start(""), None);
    }

    #[test]
    fn descendants_are_found_in_any_order_and_a_reused_number_is_no_root() {
        let process = |number| Process { number, started: 1 };
        let reused = Process {
            number: 9,
            started: 2,
        };
        let roots = HashSet::from([process(2), process(9)]);
        let all = [
            (process(1), 0),
            (process(5), 4),
            (process(4), 2),
            (process(2), 1),
            (process(3), 1),
            (reused, 1),
            (process(10), 9),
        ];
        let mut found = descendants(&roots, &all);
        found.sort_by_key(|it| it.number);
        assert_eq!(found, [2, 4, 5].map(process));
    }
}
