//! Lines for dashpot's own disks and volumes: the waits of each zio, and the rule behind them.

use dashpot_api::{FinishedZio, ZioWaits};
use dashpot_rules::{nice_number, short_time};

use super::{
    Column, LATENCY_WIDTH, OFFSET_WIDTH, SIZE_WIDTH, Shape, TIME_WIDTH, disk_width, header, line,
    width,
};
use crate::clock::time_of_day_ms;

/// A wait: its title, and its time for a zio.
type Wait = (&'static str, fn(&ZioWaits) -> u64);

/// The waits, in the order in which a zio goes through them.
const WAITS: [Wait; 8] = [
    ("RECV", |waits| waits.recv_ns),
    ("THROTTLE", |waits| waits.throttle_ns),
    ("QUEUE", |waits| waits.queue_ns),
    ("SUSPEND", |waits| waits.suspend_ns),
    ("STORE", |waits| waits.store_ns),
    ("HOLD", |waits| waits.hold_ns),
    (LATE, |waits| waits.lateness_ns),
    ("REPLY", |waits| waits.reply_ns),
];
const LATE: &str = "LATE";
/// The waits on disks outside of pools.
const OF_LONE_DISKS: [&str; 6] = ["RECV", "SUSPEND", "STORE", "HOLD", LATE, "REPLY"];

/// `write+f` is a write with FUA.
const OP_WIDTH: usize = 7;
/// `12/31`: a rule and its lane.
const RULE_WIDTH: usize = 5;
/// `uid=1000 pid=4711`.
const CLIENT_WIDTH: usize = 17;

/// `EIO`; longer ones are at the end of the line.
const ERROR_WIDTH: usize = 5;
/// The name of a wait.
const MOSTLY_WIDTH: usize = 8;

/// A table of zios, with a line for each.
pub struct ZioTable {
    columns: Vec<Column>,
    /// The waits that wide lines show.
    waits: Vec<Wait>,
    shape: Shape,
    zone_ns: i64,
}

impl ZioTable {
    /// A table for zios that are still to come, on disks with these names.
    pub fn of_disks<'a>(
        names: impl Iterator<Item = &'a str>,
        shape: Shape,
        zone_ns: i64,
    ) -> ZioTable {
        let waits = WAITS.into_iter();
        let waits = waits.filter(|(title, _)| OF_LONE_DISKS.contains(title));
        ZioTable::new(names, waits.collect(), shape, zone_ns)
    }

    /// A table for finished zios. Waits that none of them had are left out.
    pub fn of_zios(zios: &[FinishedZio], shape: Shape) -> ZioTable {
        let is_met = |(_, wait): &Wait| zios.iter().any(|zio| wait(&zio.waits) > 0);
        let waits = WAITS.into_iter().filter(is_met);
        let names = zios.iter().map(|zio| zio.disk.as_str());
        ZioTable::new(names, waits.collect(), shape, 0)
    }

    fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        waits: Vec<Wait>,
        shape: Shape,
        zone_ns: i64,
    ) -> ZioTable {
        let mut columns = match shape.wide {
            true => wide(&waits),
            false => narrow(),
        };
        let disk = disk_width(names, &columns, shape.room);
        columns.insert(1, Column::left("DISK", disk));
        ZioTable {
            columns,
            waits,
            shape,
            zone_ns,
        }
    }

    /// The line of titles.
    pub fn header(&self) -> String {
        header(&self.columns)
    }

    /// The line of a zio that ended at `at_ns`.
    pub fn line(&self, at_ns: u64, zio: &FinishedZio) -> String {
        let mut words = vec![
            time_of_day_ms(at_ns.saturating_add_signed(self.zone_ns)),
            self.disk(&zio.disk),
            format!("{}{}", zio.op, if zio.fua { "+f" } else { "" }),
        ];
        match self.shape.wide {
            true => words.extend(self.sizes_and_waits(zio)),
            false => words.extend([
                nice_number(zio.length_bytes.into()),
                short_time(zio.total_ns),
                longest_wait(zio).to_owned(),
            ]),
        }
        words.extend([
            rule(zio),
            zio.client.clone(),
            zio.error.clone().unwrap_or_default(),
        ]);
        line(&self.columns, words.iter().map(String::as_str))
    }

    /// A name in its column.
    fn disk(&self, name: &str) -> String {
        let others: usize = width(&self.columns) - self.columns[1].width;
        self.shape.room.name_beside(others, name)
    }

    /// The sizes and the waits. A wait of no time is a dash, so that the others stand out.
    fn sizes_and_waits(&self, zio: &FinishedZio) -> Vec<String> {
        let or_dash = |ns| match ns {
            0 => "-".to_owned(),
            ns => short_time(ns),
        };
        let mut words = vec![
            zio.offset_bytes.to_string(),
            nice_number(zio.length_bytes.into()),
            short_time(zio.total_ns),
        ];
        words.extend(self.waits.iter().map(|wait| or_dash(wait.1(&zio.waits))));
        words
    }
}

/// The columns that fit 80, without the disk's.
fn narrow() -> Vec<Column> {
    vec![
        Column::left("TIME", TIME_WIDTH),
        Column::left("OP", OP_WIDTH),
        Column::right("SIZE", SIZE_WIDTH),
        Column::right("TOTAL", LATENCY_WIDTH),
        Column::left("MOSTLY", MOSTLY_WIDTH),
        Column::right("RULE", RULE_WIDTH),
        Column::left("CLIENT", CLIENT_WIDTH),
        Column::left("ERROR", ERROR_WIDTH),
    ]
}

/// All columns, without the disk's.
fn wide(waits: &[Wait]) -> Vec<Column> {
    let mut columns = vec![
        Column::left("TIME", TIME_WIDTH),
        Column::left("OP", OP_WIDTH),
        Column::right("OFFSET", OFFSET_WIDTH),
        Column::right("SIZE", SIZE_WIDTH),
        Column::right("TOTAL", LATENCY_WIDTH),
    ];
    let waits = waits.iter();
    columns.extend(waits.map(|wait| Column::right(wait.0, LATENCY_WIDTH)));
    columns.extend([
        Column::right("RULE", RULE_WIDTH),
        Column::left("CLIENT", CLIENT_WIDTH),
        Column::left("ERROR", 0),
    ]);
    columns
}

/// The longest wait of a zio. Only a zio with a target can be late. If no rule held it, the time
/// counts as the shard's work or a stop.
fn longest_wait(zio: &FinishedZio) -> &'static str {
    let longest = WAITS.iter().max_by_key(|(_, wait)| wait(&zio.waits));
    let longest = longest.filter(|(_, wait)| wait(&zio.waits) > 0);
    match longest {
        None => "-",
        Some((LATE, _)) if zio.waits.hold_ns == 0 => "SHARD",
        Some((title, _)) => title,
    }
}

fn rule(zio: &FinishedZio) -> String {
    match (zio.rule, zio.lane) {
        (Some(rule), Some(lane)) => format!("{rule}/{lane}"),
        (Some(rule), None) => rule.to_string(),
        (None, _) => "-".to_owned(),
    }
}
