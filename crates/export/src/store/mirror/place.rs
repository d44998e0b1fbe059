//! The places where the labels of mirrors' sides are kept.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::any::Store;
use super::super::extent::Extent;
use super::super::file::FileStore;
use super::Label;

/// A side of a mirror.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// The name of the side's disk.
    pub(crate) disk: String,
    pub(super) place: LabelPlace,
}

/// Where the label of a side is.
#[derive(Clone, Debug)]
pub(crate) enum LabelPlace {
    /// The label is in an attribute of the side's file.
    Attribute(Arc<FileStore>),
    /// The label is in the pool's file for labels.
    Bitmap,
    /// The side has no label, because its bytes vanish with the daemon, or because neither its file nor the
    /// pool has a place for the label.
    None,
}

impl Side {
    /// Makes the mirror's side for a disk. Also returns the side's label, if it has one. `bitmap` is the
    /// pool's file for labels.
    pub(crate) fn of(
        disk: &str,
        store: &Store,
        bitmap: Option<&Path>,
    ) -> io::Result<(Side, Option<Label>)> {
        let file = store.file();
        let read = file.map(|file| file.mirror_label());
        let (place, text) = match (file, read, bitmap) {
            (Some(file), Some(Ok(text)), _) => (LabelPlace::Attribute(Arc::clone(file)), text),
            (_, Some(Err(error)), _) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(error);
            }
            (_, _, Some(bitmap)) if store.outlives() => {
                (LabelPlace::Bitmap, label_in(bitmap, disk)?)
            }
            _ => (LabelPlace::None, None),
        };
        let disk = disk.to_owned();
        let label = text.as_deref().and_then(Label::parse);
        Ok((Side { disk, place }, label))
    }

    /// Whether the side has a place for its label.
    pub(super) fn has_place(&self) -> bool {
        !matches!(self.place, LabelPlace::None)
    }
}

/// The ranges that may have data among the first `size` bytes of a store. All other ranges are zeroes.
pub(crate) fn data_of(store: &Store, size: u64) -> Vec<Range<u64>> {
    let (mut found, mut data, mut at) = (Vec::new(), Vec::<Range<u64>>::new(), 0);
    while at < size {
        store
            .innermost()
            .extents(at, size - at, EXTENTS, &mut found);
        for Extent { length, hole } in &found {
            let next = at..at + length;
            at = next.end;
            match data.last_mut() {
                _ if *hole => {}
                Some(last) if last.end == next.start => last.end = next.end,
                _ => data.push(next),
            }
        }
        if found.is_empty() || data.len() > RANGES_MAX {
            data.push(at..size);
            break;
        }
    }
    data
}

/// The label of a disk in a file of labels. `None` if there is no such file.
fn label_in(bitmap: &Path, disk: &str) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(bitmap) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(name, _)| *name == disk);
    Ok(found.map(|(_, label)| label.to_owned()))
}

/// Replaces a file of labels as a whole, durably.
pub(super) fn write_labels(bitmap: &Path, labels: &str) -> io::Result<()> {
    let mut name = OsString::from(bitmap);
    name.push(".new");
    let new = PathBuf::from(name);
    let mut file = File::create(&new)?;
    file.write_all(labels.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, bitmap)?;
    match bitmap
        .parent()
        .filter(|directory| *directory != Path::new(""))
    {
        Some(directory) => File::open(directory)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// How many extents to ask for at a time.
const EXTENTS: usize = 1024;
/// After this many ranges with data, the whole rest of the store counts as data.
const RANGES_MAX: usize = 1 << 16;
