//! The lab: the disks and settings of one daemon, from a lab file, from the command line, or from
//! both.

mod change;
mod file;
mod key;
mod model;
mod origin;
mod place;
mod pool;
mod section;
mod simulation;
mod targets;
mod trace;
mod tunable;
mod volume;
mod workload;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dashpot_rules::{
    DEFAULT_BLOCK, DEFAULT_SIZE, DiskConfig, DiskInjection, Injection, Listen, ParseError,
    StoreConfig, format_size, nearest,
};

use crate::cli::LabArgs;

pub(crate) use pool::DEFAULT_RAM;
pub(crate) use simulation::{SimLab, check_samples, load_sim_lab};
pub(crate) use tunable::in_words as tunable_in_words;

/// The disks and settings of one daemon.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lab {
    /// The disks, at least one, in the order in which they were named.
    pub(crate) disks: Vec<LabDisk>,
    /// Where NBD clients connect; empty for the default.
    pub(crate) nbd: Vec<Listen>,
    /// Where the API listens; `None` for the default.
    pub(crate) api: Option<Listen>,
    /// Where metrics are scraped; `None` for nowhere.
    pub(crate) metrics: Option<Listen>,
    /// The number of shards; `None` for the default.
    pub(crate) shards: Option<usize>,
    /// The memory for finished zios in bytes; `None` for the default.
    pub(crate) events: Option<u64>,
}

/// A disk, and the rules that are armed on it at the start.
#[derive(Clone, Debug)]
pub(crate) struct LabDisk {
    pub(crate) config: DiskConfig,
    /// Each is a group of its own, as if it had its own call of `inject`.
    pub(crate) injections: Vec<Injection>,
}

/// The disks of the default lab, named as in the articles' examples.
const DEFAULT_DISKS: [&str; 2] = ["c1t1d0", "c1t2d0"];

impl Lab {
    /// The lab of a command line: its file and its disks, or the default lab if it names neither.
    pub(crate) fn from_args(args: &LabArgs) -> Result<Lab, ParseError> {
        let mut lab = match &args.lab {
            Some(path) => Lab::load(path)?,
            None if args.disks.is_empty() => Lab::default_lab(),
            None => Lab::default(),
        };
        for disk in &args.disks {
            lab.add_disk(disk)?;
        }
        for rule in &args.rules {
            lab.add_rule(rule)?;
        }
        for disk in &lab.disks {
            check_ranges(disk)?;
        }
        lab.shards = args.shards.or(lab.shards);
        lab.events = args.events.or(lab.events);
        if lab.disks.is_empty() {
            return Err(ParseError::new(
                "the lab has no disk: add [disk.NAME] to its file, or -d NAME=ram",
            ));
        }
        Ok(lab)
    }

    fn load(path: &Path) -> Result<Lab, ParseError> {
        let named = |error| ParseError::new(format!("{}:{error}", path.display()));
        let mut lab = file::parse(&read_file(path)?).map_err(named)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        for disk in &mut lab.disks {
            anchor(&mut disk.config.store, directory);
        }
        Ok(lab)
    }

    fn default_lab() -> Lab {
        let disk = |name: &str| LabDisk {
            config: DiskConfig {
                name: name.to_owned(),
                store: StoreConfig::Ram,
                size: Some(DEFAULT_SIZE),
                block: DEFAULT_BLOCK,
                read_only: false,
            },
            injections: Vec::new(),
        };
        Lab {
            disks: DEFAULT_DISKS.map(disk).into(),
            ..Lab::default()
        }
    }

    fn add_disk(&mut self, config: &DiskConfig) -> Result<(), ParseError> {
        if self.names().any(|name| name == config.name) {
            return Err(ParseError::new(format!(
                "-d {}: there is a disk of this name already; choose another",
                config.name
            )));
        }
        self.disks.push(LabDisk {
            config: config.clone(),
            injections: Vec::new(),
        });
        Ok(())
    }

    fn add_rule(&mut self, rule: &DiskInjection) -> Result<(), ParseError> {
        let disk = match (&rule.disk, self.disks.as_mut_slice()) {
            (None, [only]) => only,
            (None, _) => {
                return Err(ParseError::new(format!(
                    "-r {}: the lab has several disks; put one's name first",
                    rule.injection.rules[0].words
                )));
            }
            (Some(name), _) => self.disk_named(name)?,
        };
        disk.injections.push(rule.injection.clone());
        Ok(())
    }

    fn disk_named(&mut self, name: &str) -> Result<&mut LabDisk, ParseError> {
        let Some(at) = self.names().position(|known| known == name) else {
            let remedy = match nearest(name, self.names()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("there is {}", self.names().collect::<Vec<_>>().join(", ")),
            };
            return Err(ParseError::new(format!(
                "-r {name}: there is no such disk; {remedy}"
            )));
        };
        Ok(&mut self.disks[at])
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.disks.iter().map(|disk| disk.config.name.as_str())
    }
}

fn read_file(path: &Path) -> Result<String, ParseError> {
    read_text(path, "lab file", LAB_BYTES_MAX)
}

/// The text of a file. `kind` is for messages. Refuses files of more than `bytes_max`, because a
/// device such as `/dev/zero` has no end.
fn read_text(path: &Path, kind: &str, bytes_max: u64) -> Result<String, ParseError> {
    let shown = path.display();
    let refused = |error| ParseError::new(format!("the {kind} '{shown}' cannot be read: {error}"));
    let file = File::open(path).map_err(refused)?;
    let mut text = String::new();
    file.take(bytes_max + 1)
        .read_to_string(&mut text)
        .map_err(refused)?;
    if text.len() as u64 > bytes_max {
        return Err(ParseError::new(format!(
            "the {kind} '{shown}' is longer than {}, the most that is read: make it shorter",
            format_size(bytes_max)
        )));
    }
    Ok(text)
}

const LAB_BYTES_MAX: u64 = 16 << 20;

/// Refuses rules that no zio can match. If a file gives the disk's size, the file is not open yet.
fn check_ranges(disk: &LabDisk) -> Result<(), ParseError> {
    let size = disk.config.size.unwrap_or(u64::MAX);
    let mut injections = disk.injections.iter();
    injections.try_for_each(|injection| check_range(injection, &disk.config.name, size))
}

/// Refuses rules that no zio on the disk can match.
pub(crate) fn check_range(injection: &Injection, disk: &str, size: u64) -> Result<(), ParseError> {
    for rule in &injection.rules {
        if let Some((start, _)) = rule.spec.range.filter(|(start, _)| *start >= size) {
            return Err(ParseError::new(format!(
                "the rule '{}': its --range begins at {}, beyond the end of disk {disk} at {}; \
                 begin it below",
                rule.words,
                format_size(start),
                format_size(size),
            )));
        }
    }
    Ok(())
}

/// Makes a path relative to the lab file, so that it means the same wherever dashpot is started.
fn anchor(store: &mut StoreConfig, directory: &Path) {
    match store {
        StoreConfig::File(path) => *path = directory.join(&*path),
        StoreConfig::Lossy(inner) => anchor(inner, directory),
        StoreConfig::Ram | StoreConfig::Null => {}
    }
}

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
