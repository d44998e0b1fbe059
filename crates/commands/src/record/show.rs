//! `record show`: the content of a recording.

use dashpot_cli::ShowArgs;
use dashpot_observe::{Layer, unplaced_calls};
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_recording::{Event, Mark, Recording};
use dashpot_rules::{nice_number, short_time, thousands, visible};
use dashpot_sources::{Recorded, shown_moment};
use dashpot_text::table::{Column, Field, table_of};
use serde::Serialize;

/// Prints the hosts, times, devices and marks of a recording.
pub fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let shown = Shown::of(args)?;
    if args.json {
        print_json(&shown)
    } else {
        print(&shown.text())
    }
}

/// The content of a recording.
#[derive(Debug, Serialize)]
struct Shown {
    /// The name of the host that made the recording.
    host: Option<String>,
    /// The total size of the recording's files, in bytes.
    bytes: u64,
    /// When the recording begins, in nanoseconds since 1970.
    first_ns: u64,
    /// When the recording ends, in nanoseconds since 1970.
    last_ns: u64,
    /// For how many seconds the recording has only counts.
    counted_seconds: u64,
    disks: Vec<String>,
    /// The kernel's disks, if `disks` are a daemon's.
    kernel_disks: Vec<String>,
    volumes: Vec<String>,
    /// The devices whose sync calls were recorded.
    sync_calls: Vec<String>,
    marks: Vec<ShownMark>,
}

/// An event during the recording.
#[derive(Debug, Serialize)]
struct ShownMark {
    /// When the event happened, in nanoseconds since 1970.
    at_ns: u64,
    event: &'static str,
    device: Option<String>,
    n: Option<i64>,
    text: Option<String>,
    #[serde(skip)]
    what: String,
}

impl Shown {
    fn of(args: &ShowArgs) -> anyhow::Result<Shown> {
        let recorded = Recorded::open(&args.recording, &[])?;
        let recording = Recording::open(&args.recording)?;
        let (first_ns, last_ns) = recorded.moments();
        Ok(Shown {
            host: recorded.host()?,
            bytes: recording.bytes()?,
            first_ns,
            last_ns,
            counted_seconds: recorded.counted_seconds(),
            disks: recorded.devices(Layer::Disk),
            kernel_disks: recorded.devices(Layer::Kernel),
            volumes: recorded.devices(Layer::Volume),
            sync_calls: recorded.devices(Layer::Fs),
            marks: recording
                .marks(&mut Vec::new())?
                .into_iter()
                .map(shown)
                .collect(),
        })
    }

    fn text(&self) -> String {
        let host = visible(self.host.as_deref().unwrap_or("an unnamed host"));
        let bytes = nice_number(self.bytes);
        let [first, last] = [self.first_ns, self.last_ns].map(shown_moment);
        let mut text = format!("{bytes} bytes of {host}\n");
        for (layer, names) in [
            ("disks", &self.disks),
            ("volumes", &self.volumes),
            ("the kernel's disks", &self.kernel_disks),
            ("sync calls on", &self.sync_calls),
        ] {
            if !names.is_empty() {
                text += &format!("{layer}: {}\n", visible(&names.join(", ")));
            }
        }
        text += &format!("from {first} to {last}");
        if self.counted_seconds > 0 {
            let seconds = thousands(self.counted_seconds);
            text += &format!(", {seconds} seconds of it without single I/Os");
        }
        text += "\n\n";
        text + &table_of(room(false), false, &FIELDS, &self.marks)
    }
}

const FIELDS: [Field<ShownMark>; 4] = [
    Field::new(Column::Text("time"), |mark| shown_moment(mark.at_ns)),
    Field::new(Column::Text("event"), |mark| mark.event.to_owned()),
    Field::new(Column::Text("device"), |mark| {
        mark.device.clone().unwrap_or_else(|| "-".to_owned())
    }),
    Field::new(Column::Text("what"), |mark| mark.what.clone()),
];

fn shown(mark: Mark) -> ShownMark {
    ShownMark {
        at_ns: mark.at_ns,
        event: mark.event.word(),
        what: what(&mark),
        device: mark.device,
        n: mark.n,
        text: mark.text,
    }
}

/// The text of an event, and its figure with a unit.
fn what(mark: &Mark) -> String {
    let number = mark.n.map(|n| match mark.event {
        Event::Clock if n == 0 => "is on this host's clock".to_owned(),
        Event::Clock => format!("may be off by {}", short_time(n.unsigned_abs())),
        Event::Lost => format!("{} I/Os or events", thousands(n.unsigned_abs())),
        Event::Unplaced => unplaced_calls(n.unsigned_abs()),
        Event::ClockStep if n < 0 => format!("-{}", short_time(n.unsigned_abs())),
        Event::ClockStep | Event::Suspend | Event::Trigger => short_time(n.unsigned_abs()),
        _ => String::new(),
    });
    let number = number.filter(|number| !number.is_empty());
    let parts: Vec<String> = mark.text.iter().cloned().chain(number).collect();
    if parts.is_empty() {
        "-".to_owned()
    } else {
        parts.join(" ")
    }
}
