//! `status`: the disks, pools and volumes, their clients, and zios in flight.

use std::thread;
use std::time::{Duration, Instant};

use dashpot_api::{
    Attachment, Client, ClientError, DeviceIo, Disk, InFlightZio, LayerWord, Pool, Status, Volume,
};
use dashpot_attach::{Queue, Waiting, queue_of, waiting_for};
use dashpot_cli::StatusArgs;
use dashpot_engine::DepthTimes;
use dashpot_export::complain;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_rules::{format_size, nice_number, short_time};
use dashpot_text::calls::interrupted;
use dashpot_text::health::{broken_promises, host_line, memory_lines, shard_table};
use dashpot_text::table::{Column, table_within, time_or_dash};
use serde::Serialize;

/// The time between two attempts while a daemon is starting.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A daemon gets at least this much time to answer, even if the user wants to wait for less.
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

const POOLS: [Column; 8] = [
    Column::Text("pool"),
    Column::Text("state"),
    Column::Text("throttle"),
    Column::Figure("dirty"),
    Column::Figure("stops at"),
    Column::Figure("delay"),
    Column::Figure("waiting"),
    Column::Text("disks"),
];

const VOLUMES: [Column; 7] = [
    Column::Text("volume"),
    Column::Text("state"),
    Column::Text("write"),
    Column::Figure("in flight"),
    Column::Figure("oldest"),
    Column::Figure("connections"),
    Column::Figure("size"),
];

const ZIOS: [Column; 9] = [
    Column::Figure("age"),
    Column::Text("waits"),
    Column::Figure("rule"),
    Column::Figure("due in"),
    Column::Text("op"),
    Column::Figure("offset"),
    Column::Figure("length"),
    Column::Text("device"),
    Column::Text("client"),
];

/// Prints the state of disks, pools and volumes.
pub fn status(client: &Client, args: &StatusArgs) -> anyhow::Result<()> {
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
    if !status.pools.is_empty() {
        text += "\n";
        text += &table_within(room, &POOLS, status.pools.iter().map(pool_row));
        text += &status.pools.iter().map(remedy).collect::<String>();
        text += &status.disks.iter().filter_map(reopen).collect::<String>();
        text += "\n";
        text += &table_within(room, &VOLUMES, status.volumes.iter().map(volume_row));
    }
    text += "\n";
    text += &ways_into_all(&status);
    text += &reclaim_lines(&status);
    for line in waiting.iter().map(waiting_line) {
        text += &format!("{line}\n");
    }
    text += &format!("\n{}", shard_table(room, &status.shards));
    text += &memory_lines(room, &status.shards, &status.memory);
    text += &format!("\n{}", broken_promises(room, &status.promises));
    let zios = devices(&status).flat_map(|(name, io)| zio_rows(name, io));
    let zios: Vec<Vec<String>> = zios.collect();
    if args.inflight && !zios.is_empty() {
        text += "\n";
        text += &table_within(room, &ZIOS, zios);
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

/// Lines about a daemon that serves block devices of its own host: whether it can go on when memory is short.
fn reclaim_lines(status: &Status) -> String {
    if devices(status).all(|(_, io)| io.attachments.is_empty()) {
        return String::new();
    }
    let reclaim = &status.reclaim;
    let word = |is_there| if is_there { "yes" } else { "no" };
    let (locked, flusher) = (word(reclaim.locked), word(reclaim.io_flusher));
    let lacks = reclaim.lacks.iter().map(|what| format!("  {what}\n"));
    let lacks: String = lacks.collect();
    format!(
        "serves devices of its own host: memory locked: {locked}, I/O flusher: {flusher}\n{lacks}"
    )
}

/// A device that waits for its daemon, and the command that connects it again.
fn waiting_line(waiting: &Waiting) -> String {
    let Waiting {
        node, disk, layer, ..
    } = waiting;
    let layer = match layer {
        LayerWord::Disk => "disk",
        LayerWord::Volume => "volume",
    };
    let left = waiting.left.sentence();
    format!("{node} waits for {layer} {disk}: {left}; sudo dashpot attach {disk}")
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
    vec![
        disk.name.clone(),
        state(disk),
        disk.rules.to_string(),
        disk.io.in_flight.to_string(),
        time_or_dash(disk.io.oldest.first().map(|zio| zio.age_ns)),
        connections(&disk.io).to_string(),
        size(disk),
        disk.store.clone(),
    ]
}

/// The size of a disk; a dash if its I/Os are the calls of a program, because such a disk has no bytes of its
/// own.
fn size(disk: &Disk) -> String {
    if disk.store.starts_with(PATH) {
        "-".to_owned()
    } else {
        format_size(disk.size_bytes)
    }
}

fn pool_row(pool: &Pool) -> Vec<String> {
    let level = &pool.level;
    let nosync = pool.mirrors.map_or(0, |mirrors| mirrors.nosync_bytes);
    let state = match (&pool.failed, pool.degraded, nosync) {
        (Some(why), ..) => format!("failed ({why})"),
        (None, true, _) => "degraded".to_owned(),
        (None, false, 0) => "ok".to_owned(),
        (None, false, left) => format!("repairs ({} left)", nice_number(left)),
    };
    let delay = match (level.filled_bytes >= level.stops_at_bytes, level.delay_ns) {
        (true, _) => "stop".to_owned(),
        (false, 0) => "none".to_owned(),
        (false, delay_ns) => short_time(delay_ns),
    };
    let sides = |sides: &Vec<String>| sides.join(" = ");
    let members = pool.members.iter().map(sides);
    vec![
        pool.name.clone(),
        state,
        pool.throttle.word().to_owned(),
        nice_number(pool.dirty_bytes),
        nice_number(level.stops_at_bytes),
        delay,
        pool.throttled.to_string(),
        members.collect::<Vec<_>>().join(", "),
    ]
}

/// How to mend a pool if a disk fails writes of the pool or of a repair, or if a file cannot store the label
/// of a mirror.
fn remedy(pool: &Pool) -> String {
    if pool.mirrors.is_some_and(|mirrors| mirrors.unrecorded) {
        return format!(
            "{}: the labels of its mirrors cannot be written, so writes wait: make room on the file systems of its \
             files and its bitmap, or mend them; the pool tries again each second\n",
            pool.name
        );
    }
    let fails = match (pool.degraded, pool.mirrors) {
        (true, _) => "a disk fails writes that clients believe done",
        (false, Some(mirrors)) if mirrors.nosync_bytes > 0 && mirrors.failed_pieces > 0 => {
            "a disk has failed copies that would repair a mirror"
        }
        _ => return String::new(),
    };
    format!(
        "{}: {fails}, and the pool repeats them: clear the rule that fails them (`dashpot list`), or mend \
         the store\n",
        pool.name
    )
}

/// How to mend a disk of a pool after a sync of its store has failed. All later syncs fail, too, because a
/// success would claim that the lost writes are on the disk.
fn reopen(disk: &Disk) -> Option<String> {
    let (why, pool) = (disk.faulted.as_ref()?, disk.pool.as_ref()?);
    Some(format!(
        "{pool}: disk {} does not sync any more ({why}), so every flush fails: mend what is below it, and start \
         the daemon again; data that was flushed before is on the disk\n",
        disk.name
    ))
}

fn volume_row(volume: &Volume) -> Vec<String> {
    let state = match (&volume.failed, volume.off, volume.io.stalled) {
        (Some(why), ..) => format!("failed ({why})"),
        (None, true, _) => "off (power cut)".to_owned(),
        (None, false, 0) => "ok".to_owned(),
        (None, false, stalled) => format!("stalled ({stalled} connections)"),
    };
    vec![
        volume.name.clone(),
        state,
        volume.write.word().to_owned(),
        volume.io.in_flight.to_string(),
        time_or_dash(volume.io.oldest.first().map(|zio| zio.age_ns)),
        connections(&volume.io).to_string(),
        format_size(volume.size_bytes),
    ]
}

fn connections(io: &DeviceIo) -> u32 {
    io.clients.iter().map(|client| client.connections).sum()
}

/// The disks and volumes: their names, clients and I/O.
fn devices(status: &Status) -> impl Iterator<Item = (&str, &DeviceIo)> {
    let disks = status.disks.iter().map(|disk| (&*disk.name, &disk.io));
    let volumes = status.volumes.iter();
    disks.chain(volumes.map(|volume| (&*volume.name, &volume.io)))
}

/// The addresses and clients of all disks that clients can reach, and of all volumes.
fn ways_into_all(status: &Status) -> String {
    let alone = status.disks.iter().filter(|disk| disk.pool.is_none());
    let disks = alone.map(|disk| ways_in(&disk.name, &disk.uris, &disk.io) + &of_calls(disk));
    let volumes = status.volumes.iter();
    let volumes = volumes.map(|volume| ways_in(&volume.name, &volume.uris, &volume.io));
    disks.chain(volumes).collect()
}

fn state(disk: &Disk) -> String {
    let read_only = disk.read_only.then(|| "read-only".to_owned());
    let failed = disk.failed.as_ref().map(|why| format!("failed ({why})"));
    let faulted = disk.faulted.as_ref().map(|why| format!("faulted ({why})"));
    let damaged = (disk.damaged > 0).then(|| match disk.wrong_bytes {
        0 => "its data was damaged by rules".to_owned(),
        bytes => format!("its data was damaged by rules ({bytes} bytes are wrong)"),
    });
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
    let states: Vec<String> = [failed, off, read_only, faulted, damaged, suspended, stalled]
        .into_iter()
        .flatten()
        .collect();
    if states.is_empty() {
        "ok".to_owned()
    } else {
        states.join(", ")
    }
}

/// The addresses of a disk or a volume, and its clients. Each address has a line of its own and is not
/// shortened, so that it can be copied.
fn ways_in(name: &str, uris: &[String], io: &DeviceIo) -> String {
    let uris = uris.iter().map(|uri| format!("  {uri}\n"));
    let clients = io.clients.iter().map(|client| {
        let connections = client.connections;
        format!("  {}, connections: {connections}\n", client.name)
    });
    let attachments = io.attachments.iter().map(attachment);
    let lines: String = uris.chain(clients).chain(attachments).collect();
    format!("{name}\n{lines}{}", depth(io))
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

/// The lines about a disk whose I/Os are the calls of a program. The kernel serves most reads and writes of a
/// program from the page cache.
fn of_calls(disk: &Disk) -> String {
    let Some(words) = disk.store.strip_prefix(PATH) else {
        return String::new();
    };
    let types = words.rsplit_once(",types=").map_or("", |(_, types)| types);
    let moves = types.split(',').any(|it| matches!(it, "read" | "write"));
    let cached = if moves {
        "  its reads and writes include those that the page cache serves\n"
    } else {
        ""
    };
    let ways = disk.unheld.iter().flat_map(|unheld| &unheld.ways);
    let unheld: String = ways
        .map(|way| format!("  {}: {}\n", way.said, way.remedy))
        .collect();
    let interrupted = match disk.interrupted.map(interrupted) {
        Some(None) => String::new(),
        Some(Some(said)) => format!("  {said}\n"),
        None => "  the kernel does not tell how many calls signals interrupted\n".to_owned(),
    };
    format!(
        "  its I/Os are calls, and a latency is the time of a hold: the kernel does not tell when a call ends\n{cached}\
         {unheld}{interrupted}"
    )
}

/// The prefix of a store's description if the disk's I/Os are the calls of a program.
const PATH: &str = "path:";

/// A line that says how many I/Os clients kept in flight.
fn depth(io: &DeviceIo) -> String {
    let depth = &io.depth;
    if depth.most == 0 {
        return String::new();
    }
    let words = |number: u32| {
        if number < DepthTimes::DEEPEST {
            number.to_string()
        } else {
            format!("{number} or more")
        }
    };
    let mean = io.depth_time_ns.0 as f64 / io.busy_ns.max(1) as f64;
    let (most, usual, percent) = (words(depth.most), words(depth.usual), depth.usual_percent);
    format!(
        "  depth since the start: mean {mean:.1}, most {most}; {usual} for {percent} % of the busy time\n"
    )
}

fn zio_rows(device: &str, io: &DeviceIo) -> impl Iterator<Item = Vec<String>> {
    io.oldest.iter().map(move |zio| zio_row(device, zio))
}

fn zio_row(device: &str, zio: &InFlightZio) -> Vec<String> {
    vec![
        short_time(zio.age_ns),
        zio.wait.clone(),
        zio.rule
            .map_or_else(|| "-".to_owned(), |rule| rule.to_string()),
        time_or_dash(zio.remaining_ns),
        zio.op.clone(),
        zio.offset_bytes.to_string(),
        zio.length_bytes.to_string(),
        device.to_owned(),
        zio.client.clone(),
    ]
}
