//! `inflight`: I/Os that have not ended, and the processes that wait for I/O.

mod waiting;

use std::cmp::Reverse;

use anyhow::Context;
use dashpot_cli::InflightArgs;
use dashpot_engine::Duration;
use dashpot_observe::{
    FinishedIo, Layer, Question, Schedule, Subject, Wanted, Who, unplaced_calls,
};
use dashpot_output::screen::room;
use dashpot_output::{HtmlFile, print, print_json, save, usage};
use dashpot_rules::{ApiAddress, short_time, thousands, visible};
use dashpot_sources::Target;
use dashpot_text::table::{Column, Field, Room, table_of};
use serde::Serialize;

use waiting::{Waiting, waiting};

/// Prints the I/Os in flight, and the processes that wait for I/O.
pub fn inflight(api: Option<&ApiAddress>, args: &InflightArgs) -> anyhow::Result<()> {
    let target = Target::find(api, &args.device)?;
    let file = HtmlFile::begin(args.file.html.as_deref(), "live disks")?;
    let shown = Inflight::of(&target, args)?;
    if args.json {
        print_json(&shown)?;
    } else {
        print(&shown.text(room(false)))?;
    }
    save(file, &shown.text(Room(None)), &[shown])
}

/// The I/Os that have not ended, and the threads that wait for I/O.
#[derive(Debug, Serialize)]
struct Inflight {
    /// The I/Os or the calls, the oldest first.
    ios: Vec<InflightIo>,
    /// How many I/Os of the kernel's disks began before the watch; only their number is known, from the
    /// kernel's count. Null if the kernel does not count, and for a daemon's disks, whose I/Os are all listed.
    older: Option<u64>,
    /// How long the watch has lasted, which the older I/Os have lasted at least.
    older_than_ns: Option<u64>,
    /// How many sync calls in flight are on unknown devices; null unless sync calls are asked for.
    unplaced: Option<u64>,
    /// The threads of this host that are in uninterruptible sleep; null for a daemon's disks.
    waiting: Option<Vec<Waiting>>,
}

/// An I/O that has not ended.
#[derive(Debug, Serialize)]
struct InflightIo {
    age_ns: u64,
    layer: Layer,
    device: String,
    op: String,
    offset_bytes: u64,
    length_bytes: u64,
    rule: Option<u32>,
    client: Option<String>,
    process: Option<String>,
    pid: Option<i32>,
    thread: Option<String>,
    tid: Option<i32>,
}

impl Inflight {
    fn of(target: &Target, args: &InflightArgs) -> anyhow::Result<Inflight> {
        let is_kernels = matches!(target, Target::Kernel(..));
        let lasts = if is_kernels {
            args.lasts
        } else {
            // A daemon can list all of its I/Os in flight, so `inflight` need not watch it.
            Duration::ZERO
        };
        let mut watched = Watched::default();
        let layers = match (args.layer, is_kernels) {
            (Some(layer), _) => vec![layer],
            (None, true) => vec![Layer::Disk],
            (None, false) => vec![Layer::Disk, Layer::Volume],
        };
        let has_some = |layer: &Layer| args.layer.is_some() || !target.names(*layer).is_empty();
        for layer in layers.iter().filter(|layer| has_some(layer)) {
            watched.watch(target, *layer, lasts)?;
        }
        let Watched {
            mut ios,
            older,
            unplaced,
        } = watched;
        // The kernel's count does not include calls that sync files.
        let has_older = is_kernels && !layers.contains(&Layer::Fs);
        ios.sort_by_key(|io| Reverse(io.total_ns()));
        Ok(Inflight {
            older: older.filter(|_| has_older),
            older_than_ns: has_older.then_some(lasts.as_nanos()),
            unplaced,
            waiting: is_kernels.then(waiting),
            ios: ios.iter().map(InflightIo::of).collect(),
        })
    }

    fn text(&self, room: Room) -> String {
        let mut text = if self.ios.is_empty() {
            String::new()
        } else {
            table_of(room, false, &FIELDS, &self.ios)
        };
        text += &self.older_text();
        if let Some(calls @ 1..) = self.unplaced {
            text += &format!("{} are in flight, too.\n", unplaced_calls(calls));
        }
        match &self.waiting {
            Some(waiting) if !waiting.is_empty() => {
                text + "\nThreads that wait in the kernel, for I/O or otherwise:\n"
                    + &waiting::table(room, waiting)
            }
            _ => text,
        }
    }

    /// The sentence about I/Os that are not in the table.
    fn older_text(&self) -> String {
        let more = if self.ios.is_empty() { "" } else { " more" };
        match (self.older, self.older_than_ns) {
            (Some(older @ 1..), Some(least_ns)) => format!(
                "{}{more} in flight began before the watch, at least {} ago: only their number is known.\n",
                thousands(older),
                short_time(least_ns)
            ),
            (None, Some(_)) => {
                "I/Os from before the watch are not known, because the kernel does not \
                                count them: queue/iostats of a disk is 0.\n"
                    .to_owned()
            }
            _ if self.ios.is_empty() => "No I/O in flight.\n".to_owned(),
            _ => String::new(),
        }
    }
}

/// The result of a watch.
#[derive(Default)]
struct Watched {
    /// The I/Os in flight at the end of the watch.
    ios: Vec<FinishedIo>,
    /// How many I/Os began before the watch; `None` if that is not known.
    older: Option<u64>,
    /// How many sync calls are on unknown devices; `None` if none are watched.
    unplaced: Option<u64>,
}

impl Watched {
    fn watch(&mut self, target: &Target, layer: Layer, lasts: Duration) -> anyhow::Result<()> {
        let question = Question::of(Subject::Ios(Wanted::all(layer)));
        if let Err(error) = target.check(&question) {
            usage(&error);
        }
        let mut source = target.watch(&question, &Schedule::once(lasts))?;
        while source.next()?.is_some() {}
        self.older = source.earlier();
        let ios = source.in_flight();
        self.unplaced = self.unplaced.or(source.unplaced_in_flight());
        self.ios
            .extend(ios.context("the daemon does not answer: its I/Os in flight are not known")?);
        Ok(())
    }
}

const FIELDS: [Field<InflightIo>; 6] = [
    Field::new(Column::Figure("age"), |io| short_time(io.age_ns)),
    Field::new(Column::Text("device"), |io| {
        visible(&io.device).into_owned()
    }),
    Field::new(Column::Text("op"), |io| io.op.clone()),
    Field::new(Column::Figure("offset"), |io| io.offset_bytes.to_string()),
    Field::new(Column::Figure("bytes"), |io| io.length_bytes.to_string()),
    Field::new(Column::Text("for"), InflightIo::who),
];

impl InflightIo {
    fn of(io: &FinishedIo) -> InflightIo {
        let mut shown = InflightIo {
            age_ns: io.total_ns(),
            layer: io.layer,
            device: io.device.to_string(),
            // The kernel's disks have letters such as `WS`, and calls have their names.
            op: match (io.layer, &io.letters, &io.who) {
                (Layer::Fs, Some(call), _) | (_, Some(call), Some(Who::Client(_))) => {
                    call.to_string()
                }
                _ => io.kind.word().to_owned(),
            },
            offset_bytes: io.offset_bytes,
            length_bytes: io.length_bytes,
            rule: io.facts.rule,
            client: None,
            process: None,
            pid: None,
            thread: None,
            tid: None,
        };
        match &io.who {
            Some(Who::Client(client)) => shown.client = Some(client.to_string()),
            Some(Who::Thread(own)) => {
                shown.process = own.process.as_deref().map(str::to_owned);
                shown.pid = own.pid;
                shown.thread = own.thread.as_deref().map(str::to_owned);
                shown.tid = own.tid;
            }
            None => {}
        }
        shown
    }

    fn who(&self) -> String {
        let named = |name: &Option<String>, id: Option<i32>| {
            id.map(|id| format!("{} {id}", name.as_deref().unwrap_or("-")))
        };
        // The first thread of a process has the name and the id of the process.
        let thread = named(&self.thread, self.tid.filter(|_| self.tid != self.pid));
        let process = named(&self.process, self.pid);
        let parts = [
            self.client.clone(),
            process,
            thread.map(|own| format!("thread {own}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let who = if parts.is_empty() {
            "-".to_owned()
        } else {
            parts.join(", ")
        };
        let rule = self
            .rule
            .map_or(String::new(), |rule| format!(", rule {rule}"));
        visible(&who).into_owned() + &rule
    }
}
