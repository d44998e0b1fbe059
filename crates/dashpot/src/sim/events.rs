//! `--events`: one line for each finished zio, with all known facts.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use dashpot_engine::{Event, Instant};
use dashpot_output::Draft;
use dashpot_sources::simulated::Names;

const TITLES: &str = "number,parent,device,client,class,op,fua,offset,length,outcome,arrived_ns,\
                      submitted_ns,admitted_ns,issued_ns,store_done_ns,target_ns,offered_ns,\
                      ended_ns,rule,lane";

pub(super) struct EventsFile(Draft);

impl EventsFile {
    /// Checks that the file can be written, and begins it.
    pub(super) fn create(place: &Path) -> anyhow::Result<EventsFile> {
        let mut draft = Draft::create("--events", place)?;
        writeln!(draft.out, "{TITLES}").context("--events")?;
        Ok(EventsFile(draft))
    }

    /// Writes the event of a zio that has finished.
    pub(super) fn write(&mut self, event: &Event, names: &Names) -> anyhow::Result<()> {
        write_line(&mut self.0.out, event, names).context("--events")
    }

    /// Moves the complete file to its place.
    pub(super) fn publish(self) -> anyhow::Result<()> {
        self.0.publish()
    }
}

fn write_line(out: &mut impl Write, event: &Event, names: &Names) -> io::Result<()> {
    let or_empty = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    write!(
        out,
        "{},{},{},{},{},{},{},{},{},{}",
        event.number,
        or_empty(event.parent),
        names.device(event.device),
        names.client(event.device, event.client),
        event.class.map_or("", |class| class.name()),
        event.op.name(),
        event.fua,
        event.offset,
        event.length,
        event.outcome.map_or_else(|errno| errno.name(), |()| "ok"),
    )?;
    for at in [
        event.arrived,
        event.submitted,
        event.admitted,
        event.issued,
        event.store_done,
        event.target,
        event.offered,
        event.ended,
    ] {
        write!(out, ",{}", Instant::as_nanos(at))?;
    }
    writeln!(
        out,
        ",{},{}",
        or_empty(event.rule.map(|rule| rule.0.into())),
        or_empty(event.lane.map(u64::from))
    )
}
