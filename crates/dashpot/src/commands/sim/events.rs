//! `--events`: one line for each finished zio, with all that is known of it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use dashpot_engine::{ClientId, Device, Event, Instant};
use dashpot_sim::scenario::Scenario;

use crate::api::random_word;

const TITLES: &str = "number,parent,device,client,class,op,fua,offset,length,outcome,arrived_ns,\
                      submitted_ns,admitted_ns,issued_ns,store_done_ns,target_ns,offered_ns,\
                      ended_ns,rule,lane";

/// A file of events. It is a draft beside its place until it is complete, and goes if it never is.
pub(super) struct EventsFile {
    place: PathBuf,
    draft: PathBuf,
    out: BufWriter<File>,
    names: Names,
}

impl EventsFile {
    /// Makes sure that a file can be there, and begins it.
    pub(super) fn create(place: &Path, scenario: &Scenario) -> anyhow::Result<EventsFile> {
        let refused = || format!("--events {}: cannot be written", place.display());
        let name = place
            .file_name()
            .with_context(|| format!("--events {}: that names no file", place.display()))?;
        let word = random_word(DRAFT_LETTERS)?;
        let draft = place.with_file_name(format!(".{}.{word}", name.to_string_lossy()));
        let mut file = EventsFile {
            place: place.to_owned(),
            out: BufWriter::new(File::create_new(&draft).with_context(refused)?),
            draft,
            names: Names::of(scenario),
        };
        writeln!(file.out, "{TITLES}").with_context(refused)?;
        Ok(file)
    }

    /// Writes the event of a zio that has finished.
    pub(super) fn write(&mut self, event: &Event) -> anyhow::Result<()> {
        let written = write_line(&mut self.out, event, &self.names);
        written.with_context(|| format!("--events {}", self.place.display()))
    }

    /// Puts the whole file into its place.
    pub(super) fn publish(mut self) -> anyhow::Result<()> {
        let refused = || format!("--events {}: cannot be written", self.place.display());
        self.out.flush().with_context(refused)?;
        fs::rename(&self.draft, &self.place).with_context(refused)
    }
}

impl Drop for EventsFile {
    fn drop(&mut self) {
        // A published one is no longer there.
        let _ = fs::remove_file(&self.draft);
    }
}

/// The names of devices and clients.
pub(super) struct Names {
    disks: Vec<String>,
    volumes: Vec<String>,
    workloads: Vec<String>,
}

impl Names {
    pub(super) fn of(scenario: &Scenario) -> Names {
        Names {
            disks: scenario
                .disks
                .iter()
                .map(|disk| disk.name.clone())
                .collect(),
            volumes: scenario
                .volumes
                .iter()
                .map(|volume| volume.name.clone())
                .collect(),
            workloads: scenario
                .workloads
                .iter()
                .map(|workload| workload.name.clone())
                .collect(),
        }
    }

    fn device(&self, device: Device) -> &str {
        let (names, at) = match device {
            Device::Disk(disk) => (&self.disks, disk.0),
            Device::Volume(volume) => (&self.volumes, volume.0),
        };
        names.get(at as usize).map_or("", String::as_str)
    }

    /// Workloads that are not told apart share a name.
    pub(super) fn client(&self, client: ClientId) -> &str {
        match self.workloads.get(usize::from(client.0)) {
            Some(name) if client != ClientId::OTHER => name,
            _ => "other",
        }
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
        names.client(event.client),
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

/// Random letters in the name of a draft.
const DRAFT_LETTERS: usize = 8;
