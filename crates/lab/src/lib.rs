//! The lab: the disks and settings of one daemon, from a lab file, from its caller, or from both; and the
//! simulations that lab files describe.
//!
//! This crate reads lab files, and the traces that they name. It opens no store, and knows no HTTP, no
//! terminal and no command line.

mod change;
mod file;
mod joined;
mod key;
mod model;
mod origin;
mod place;
mod pool;
mod section;
mod served;
mod simulation;
mod staged;
mod state;
mod targets;
mod trace;
mod tunable;
mod volume;
mod workload;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use dashpot_rules::{
    CallFiles, DiskConfig, DiskInjection, Injection, ParseError, StoreConfig, format_size,
};

pub use pool::DEFAULT_RAM;
pub use served::{Lab, LabDisk};
pub use simulation::{SimLab, check_samples, load_sim_lab, load_sim_lab_with};
pub use staged::Staged;

impl Lab {
    /// Makes a lab from a file, and from further disks and rules. If there is neither a file nor a disk, the
    /// file of the default lab is used.
    ///
    /// # Errors
    ///
    /// Names the file and the line, or the disk or the rule, that is refused.
    pub fn of(
        file: Option<&Path>,
        disks: &[DiskConfig],
        rules: &[DiskInjection],
    ) -> Result<Lab, ParseError> {
        let mut lab = match file {
            Some(path) => Lab::load(path)?,
            None if disks.is_empty() => file::parse(DEFAULT_LAB)?,
            None => Lab::default(),
        };
        for disk in disks {
            lab.add_disk(disk)?;
        }
        for rule in rules {
            lab.add_rule(rule)?;
        }
        for disk in &lab.disks {
            check_ranges(disk)?;
        }
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
        for bitmap in lab.pools.iter_mut().filter_map(|pool| pool.bitmap.as_mut()) {
            *bitmap = directory.join(&*bitmap);
        }
        Ok(lab)
    }
}

fn read_file(path: &Path) -> Result<String, ParseError> {
    read_text(path, "lab file", LAB_BYTES_MAX)
}

/// The text of a file. `kind` is for messages. Refuses files of more than `bytes_max`, because a device
/// such as `/dev/zero` has no end.
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

/// The lab of a daemon whose command line names neither a file nor a disk.
const DEFAULT_LAB: &str = include_str!("default.toml");

const LAB_BYTES_MAX: u64 = 16 << 20;

/// Refuses rules that no zio can match. dashpot has not opened the disk's file yet, so this function checks
/// only disks whose size is in the lab.
fn check_ranges(disk: &LabDisk) -> Result<(), ParseError> {
    let size = disk.config.size.unwrap_or(u64::MAX);
    let mut injections = disk.injections.iter();
    injections.try_for_each(|injection| check_range(injection, &disk.config.name, size))
}

/// Refuses rules that no zio can match, because their range begins beyond the end of the disk.
pub fn check_range(injection: &Injection, disk: &str, size: u64) -> Result<(), ParseError> {
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

/// Makes a path relative to the lab file, so that it has the same meaning wherever the user starts dashpot.
fn anchor(store: &mut StoreConfig, directory: &Path) {
    match store {
        StoreConfig::File(path)
        | StoreConfig::Device(path)
        | StoreConfig::Path(CallFiles { path, .. }) => {
            *path = directory.join(&*path);
        }
        StoreConfig::Lossy(inner) => anchor(inner, directory),
        StoreConfig::Ram | StoreConfig::Null => {}
    }
}

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
