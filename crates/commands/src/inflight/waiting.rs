//! The threads of this host that are in uninterruptible sleep (state D), and the places where they sleep.

use std::fs;
use std::path::Path;

use dashpot_rules::visible;
use dashpot_text::table::{Column, Field, Room, table_of};
use serde::Serialize;

/// A thread in uninterruptible sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Waiting {
    pid: u32,
    tid: u32,
    /// The process's name; null if the process has just ended.
    process: Option<String>,
    thread: String,
    /// The kernel function in which the thread waits; null if the kernel does not tell.
    place: Option<String>,
}

/// The threads that are in uninterruptible sleep now, at most [`THREADS_MAX`].
pub(super) fn waiting() -> Vec<Waiting> {
    let pids = numbers("/proc");
    let threads = pids.flat_map(|pid| {
        let tids = numbers(format!("/proc/{pid}/task"));
        tids.filter_map(move |tid| thread(pid, tid))
    });
    threads.take(THREADS_MAX).collect()
}

pub(super) fn table(room: Room, waiting: &[Waiting]) -> String {
    table_of(room, false, &FIELDS, waiting)
}

const FIELDS: [Field<Waiting>; 5] = [
    Field::new(Column::Figure("pid"), |one| one.pid.to_string()),
    Field::new(Column::Text("process"), |one| {
        visible(one.process.as_deref().unwrap_or("-")).into_owned()
    }),
    Field::new(Column::Figure("tid"), |one| one.tid.to_string()),
    Field::new(Column::Text("thread"), |one| {
        visible(&one.thread).into_owned()
    }),
    Field::new(Column::Text("place"), |one| {
        one.place.clone().unwrap_or_else(|| "-".to_owned())
    }),
];

/// The names in a directory that are numbers; none if the directory is gone, because its process has ended.
fn numbers(directory: impl AsRef<Path>) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The thread with these ids, if it is in uninterruptible sleep.
fn thread(pid: u32, tid: u32) -> Option<Waiting> {
    let base = format!("/proc/{pid}/task/{tid}");
    let name = waiting_thread(&fs::read_to_string(format!("{base}/stat")).ok()?)?;
    let process = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let place = fs::read_to_string(format!("{base}/wchan")).ok();
    Some(Waiting {
        pid,
        tid,
        process: process.map(|name| name.trim_end_matches('\n').to_owned()),
        thread: name,
        place: place.filter(|place| !place.is_empty() && place != "0"),
    })
}

/// The thread's name in a line of /proc/PID/stat, if the state is D. The name itself may have parentheses
/// and spaces.
fn waiting_thread(stat: &str) -> Option<String> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once(" (")?;
    rest.starts_with('D').then(|| name.to_owned())
}

/// The maximum number of threads in the list.
const THREADS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::waiting_thread;

    #[test]
    fn the_state_comes_after_the_last_parenthesis() {
        let waits = |stat: &str| waiting_thread(stat);
        assert_eq!(waits("7 (dd) D 1 7").as_deref(), Some("dd"));
        assert_eq!(waits("7 (a) D (b) S 1 7"), None);
        assert_eq!(waits("7 (a) S (b) D 1 7").as_deref(), Some("a) S (b"));
        assert_eq!(waits("7"), None);
    }
}
