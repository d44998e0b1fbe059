//! `snoop`: a line for each finished I/O, until the last one or Ctrl-C.

use dashpot_api::{Client, FinishedZio};
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{FinishedIo, Layer, Schedule, Wanted};
use dashpot_rules::{ApiAddress, ParseError};
use serde::Serialize;

use super::beside::warn_of_vanished;
use super::output::{print, print_json_line};
use super::screen::room;
use crate::cli::SnoopArgs;
use crate::sources::{
    IoStream, Stop, Stream, Target, ZioStream, now_ns, unix_ns, warn_of_failed, zone_ns,
};
use dashpot_report::snoop::{At, IoTable, Missed, Shape, SnoopReport, ZioTable};

pub(crate) fn snoop(api: Option<&ApiAddress>, args: &SnoopArgs) -> anyhow::Result<()> {
    let target = Target::find(api, &args.device)?;
    let wanted = wanted(args, Layer::Disk);
    // This comes before there is anything in the kernel that a signal could leave behind.
    let stop = Stop::new()?;
    let zone_ns = zone_ns();
    let shape = shape(args);
    match &target {
        Target::Daemon(client, names) => {
            let names = names_of(client, names)?;
            let stream = ZioStream::new(client, &names, wanted)?;
            let table = ZioTable::of_disks(names.iter().map(String::as_str), shape, zone_ns);
            let line = |at_ns, zio: &FinishedZio| table.line(at_ns, zio);
            follow(stream, &stop, args, &table.header(), line)
        }
        Target::Kernel(devices, _) => {
            let stream = IoStream::new(devices, wanted)?;
            let names = devices.iter().map(|device| device.name.as_str());
            let table = IoTable::of_disks(names, shape, zone_ns);
            let line = |at_ns, io: &FinishedIo| table.line(at_ns, io);
            follow(stream, &stop, args, &table.header(), line)
        }
    }
}

/// The report over a source that ends by itself.
pub(super) fn report(args: &SnoopArgs, layer: Layer) -> Result<SnoopReport, ParseError> {
    if layer == Layer::Store {
        return Err(ParseError::new(
            "what a store does is a part of what its disk does: see STORE in '--layer disk'",
        ));
    }
    Ok(SnoopReport {
        schedule: Schedule::once(args.lasts.unwrap_or(Duration::MAX)),
        wanted: wanted(args, layer),
        count: args.count,
        wide: args.wide,
        zios: Vec::new(),
        more: 0,
    })
}

fn wanted(args: &SnoopArgs, layer: Layer) -> Wanted {
    Wanted {
        layer,
        ops: args.op,
        min_ns: args.min.unwrap_or_default().as_nanos(),
    }
}

/// The shape of lines. Wide lines have no bound.
fn shape(args: &SnoopArgs) -> Shape {
    Shape {
        wide: args.wide,
        room: room(args.wide),
    }
}

/// Prints finished I/Os until the time is over, or until there are enough lines.
fn follow<S: Stream<Io: Serialize>>(
    mut stream: S,
    stop: &Stop,
    args: &SnoopArgs,
    header: &str,
    line: impl Fn(u64, &S::Io) -> String,
) -> anyhow::Result<()> {
    let ahead_ns = unix_ns().saturating_sub(stream.now_ns()?);
    let mut left = usize::try_from(args.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let lasts_ns = args.lasts.map_or(u64::MAX, |lasts| lasts.as_nanos());
    let ends_ns = now_ns().saturating_add(lasts_ns);
    if !args.json {
        print(header)?;
    }
    let mut finished = Vec::new();
    while left > 0 {
        let is_last = stop.is_set() || now_ns() >= ends_ns;
        let progress = stream.read(&mut finished)?;
        finished.truncate(left);
        left -= finished.len();
        let mut text = String::new();
        for (ended_ns, io) in finished.drain(..) {
            let at_ns = ended_ns.saturating_add(ahead_ns);
            text += &match args.json {
                true => serde_json::to_string(&At { at_ns, what: &io })? + "\n",
                false => line(at_ns, &io),
            };
        }
        print(&text)?;
        say(
            Missed {
                missed: progress.missed,
            },
            args.json,
        )?;
        warn_of_vanished(&progress.vanished);
        if !progress.more && is_last {
            break;
        }
        if !progress.more {
            stop.sleep_until(ends_ns);
        }
    }
    Ok(())
}

fn say(missed: Missed, json: bool) -> anyhow::Result<()> {
    if let Some(remark) = missed.remark() {
        complain(format_args!("{remark}"));
        if json {
            print_json_line(&missed)?;
        }
    }
    Ok(())
}

/// The disks that may appear in lines.
fn names_of(client: &Client, names: &[String]) -> anyhow::Result<Vec<String>> {
    if !names.is_empty() {
        return Ok(names.to_vec());
    }
    let disks = client.exports()?;
    warn_of_failed(disks.iter().map(|disk| (&disk.name, &disk.failed)));
    Ok(disks.into_iter().map(|disk| disk.name).collect())
}
