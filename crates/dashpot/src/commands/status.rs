//! `status`: the disks, their clients, and zios in flight.

use std::thread;
use std::time::{Duration, Instant};

use dashpot_api::{Attachment, Client, ClientError, Disk, InFlightZio, Status};
use dashpot_engine::DepthTimes;
use dashpot_export::complain;
use dashpot_report::health::{broken_promises, host_line, memory_lines, shard_table};
use dashpot_report::table::{Column, table_within, time_or_dash};
use dashpot_rules::{format_size, short_time};
use serde::Serialize;

use super::attach::{Queue, Waiting, queue_of, waiting_for};
use super::output::{print, print_json};
use super::screen::room;
use crate::cli::StatusArgs;

/// The time between two attempts while a daemon is starting.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The minimum time that a daemon has for its answer, even if the user waits for less.
const ANSWER_LEAST: Duration = Duration::from_secs(1);

const DISKS: [Column; 8] = [
    Column::Text("disk"),
    Column::Text("state"),
    Column::Figure("rules"),
    Column::Figure("in flight"),
    Column::Figure("oldest"),
    Column::Figure("connections"),
    Column::Figure("size"),
    Column::Text("store"),
];

const ZIOS: [Column; 9] = [
    Column::Figure("age"),
    Column::Text("waits"),
    Column::Figure("rule"),
    Column::Figure("due in"),
    Column::Text("op"),
    Column::Figure("offset"),
    Column::Figure("length"),
    Column::Text("disk"),
    Column::Text("client"),
];

pub(crate) fn status(client: &Client, args: &StatusArgs) -> anyhow::Result<()> {
    let oldest = if args.inflight { usize::MAX } else { 1 };
    let wait = args.wait.map(|wait| Duration::from_nanos(wait.as_nanos()));
    let status = ask(client, oldest, wait);
    let waiting = waiting_for(&client.address());
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            let waiting = waiting.iter().map(waiting_line);
            waiting.for_each(|line| complain(format_args!("dashpot: {line}")));
            return Err(error.into());
        }
    };
    if args.json {
        return print_json(&Shown {
            status: &status,
            waiting: &waiting,
        });
    }
    let mut text = format!(
        "dashpot {}, pid {}, {} threads for file stores\n{}\n",
        status.version.version,
        status.pid,
        status.store_threads,
        host_line(&status.host)
    );
    let room = room(false);
    text += &table_within(room, &DISKS, status.disks.iter().map(disk_row));
    text += "\n";
    text += &status.disks.iter().map(ways_in).collect::<String>();
    text += &reclaim_lines(&status);
    for line in waiting.iter().map(waiting_line) {
        text += &format!("{line}\n");
    }
    text += &format!("\n{}", shard_table(room, &status.shards));
    text += &memory_lines(room, &status.shards, &status.memory);
    text += &format!("\n{}", broken_promises(room, &status.promises));
    if status
        .disks
        .iter()
        .any(|disk| args.inflight && disk.io.in_flight > 0)
    {
        text += "\n";
        text += &table_within(room, &ZIOS, status.disks.iter().flat_map(zio_rows));
    }
    print(&text)
}

/// The daemon's answer, and the facts that only this host knows.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    status: &'a Status,
    /// The devices that wait for this daemon.
    waiting: &'a [Waiting],
}

/// Whether a daemon that serves devices of this host can go on when memory is short.
fn reclaim_lines(status: &Status) -> String {
    if status
        .disks
        .iter()
        .all(|disk| disk.io.attachments.is_empty())
    {
        return String::new();
    }
    let reclaim = &status.reclaim;
    let word = |is_there| if is_there { "yes" } else { "no" };
    let (locked, flusher) = (word(reclaim.locked), word(reclaim.io_flusher));
    let lacks = reclaim.lacks.iter().map(|what| format!("  {what}\n"));
    let lacks: String = lacks.collect();
    format!(
        "behind devices of its own host: memory locked: {locked}, I/O flusher: {flusher}\n{lacks}"
    )
}

/// A device without its daemon, and how to bring it back.
fn waiting_line(waiting: &Waiting) -> String {
    let Waiting { node, disk, left } = waiting;
    let left = left.sentence();
    format!("{node} waits for disk {disk}: {left}; sudo dashpot attach {disk}")
}

/// Asks until a daemon answers, but no longer than `wait`.
fn ask(client: &Client, oldest: usize, wait: Option<Duration>) -> Result<Status, ClientError> {
    let Some(wait) = wait else {
        return client.status(oldest);
    };
    let start = Instant::now();
    loop {
        let left = wait.saturating_sub(start.elapsed());
        match client.status_within(oldest, left.max(ANSWER_LEAST)) {
            Err(ClientError::NoDaemon { .. }) if start.elapsed() < wait => {
                thread::sleep(LOOK_EVERY);
            }
            answer => return answer,
        }
    }
}

fn disk_row(disk: &Disk) -> Vec<String> {
    let connections: u32 = disk
        .io
        .clients
        .iter()
        .map(|client| client.connections)
        .sum();
    vec![
        disk.name.clone(),
        state(disk),
        disk.rules.to_string(),
        disk.io.in_flight.to_string(),
        time_or_dash(disk.io.oldest.first().map(|zio| zio.age_ns)),
        connections.to_string(),
        format_size(disk.size_bytes),
        disk.store.clone(),
    ]
}

fn state(disk: &Disk) -> String {
    let read_only = disk.read_only.then(|| "read-only".to_owned());
    let failed = disk.failed.as_ref().map(|why| format!("failed ({why})"));
    let faulted = disk.faulted.as_ref().map(|why| format!("faulted ({why})"));
    let suspended = disk.suspended.as_ref().map(|suspended| {
        let age = short_time(suspended.age_ns);
        match suspended.remaining_ns {
            Some(left) => format!("suspended for {age}, {} left", short_time(left)),
            None => format!("suspended for {age}"),
        }
    });
    let off = disk.off.then(|| "off (power cut)".to_owned());
    let stalled =
        (disk.io.stalled > 0).then(|| format!("stalled ({} connections)", disk.io.stalled));
    let states: Vec<String> = [failed, off, read_only, faulted, suspended, stalled]
        .into_iter()
        .flatten()
        .collect();
    if states.is_empty() {
        "ok".to_owned()
    } else {
        states.join(", ")
    }
}

/// The addresses of a disk, and its clients. Each address has a line of its own and is not
/// shortened, so that it can be copied.
fn ways_in(disk: &Disk) -> String {
    let uris = disk.uris.iter().map(|uri| format!("  {uri}\n"));
    let clients = disk.io.clients.iter().map(|client| {
        let connections = client.connections;
        format!("  {}, connections: {connections}\n", client.name)
    });
    let attachments = disk.io.attachments.iter().map(attachment);
    let lines: String = uris.chain(clients).chain(attachments).collect();
    format!("{}\n{lines}{}", disk.name, depth(disk))
}

/// A block device of this host, with the I/Os that wait in it and in the daemon.
fn attachment(attachment: &Attachment) -> String {
    let Attachment {
        node,
        mechanism,
        by,
        age_ns,
        in_flight,
    } = attachment;
    let (way, age) = (mechanism.name(), short_time(*age_ns));
    let above = queue_of(node).map_or_else(String::new, |Queue { in_flight, most }| {
        format!(", {in_flight} of at most {most} in the device")
    });
    format!(
        "  {node}: attached by {by}, by {way}, for {age}\n  {node}: in flight: {in_flight} here{above}\n"
    )
}

/// How many I/Os clients kept in flight.
fn depth(disk: &Disk) -> String {
    let depth = &disk.io.depth;
    if depth.most == 0 {
        return String::new();
    }
    let words = |number: u32| match number < DepthTimes::DEEPEST {
        true => number.to_string(),
        false => format!("{number} or more"),
    };
    let mean = disk.io.depth_time_ns.0 as f64 / disk.io.busy_ns.max(1) as f64;
    let (most, usual, percent) = (words(depth.most), words(depth.usual), depth.usual_percent);
    format!(
        "  depth since the start: mean {mean:.1}, most {most}; {usual} for {percent} % of the busy time\n"
    )
}

fn zio_rows(disk: &Disk) -> impl Iterator<Item = Vec<String>> {
    disk.io.oldest.iter().map(|zio| zio_row(&disk.name, zio))
}

fn zio_row(disk: &str, zio: &InFlightZio) -> Vec<String> {
    vec![
        short_time(zio.age_ns),
        zio.wait.clone(),
        zio.rule
            .map_or_else(|| "-".to_owned(), |rule| rule.to_string()),
        time_or_dash(zio.remaining_ns),
        zio.op.clone(),
        zio.offset_bytes.to_string(),
        zio.length_bytes.to_string(),
        disk.to_owned(),
        zio.client.clone(),
    ]
}
