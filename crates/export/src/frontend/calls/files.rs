//! Finds the files that a call acts on. dashpot looks them up in `/proc` afresh for each call.
//!
//! If dashpot kept its own table of open descriptors, it would have to follow each open, dup, close, fork and
//! exec of the program. The kernel keeps such a table anyway, and shows each descriptor as a link to the
//! current path of its file. So a file that was renamed into a directory counts as below that directory, and
//! an unlinked file still counts as below the directory where it was. dashpot recognizes a file with several
//! names by its device and inode. Such a file is below a directory if any of its names is.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dashpot_engine::{Op, OpSet};
use dashpot_rules::{CallFiles, call_number};
use dashpot_sys::Mount;
use dashpot_sys::seccomp::{Call, PathTarget, Status, SystemCall};
use rustix::fs::{FileType, major};

use super::kinds::{Part, Range, Target, parts};
use super::mapped::{Mapped, mapped};
use super::names::{DELETED, Search, has_name, matches};
use super::subject::{Subject, Unknown};

/// The files of the disks.
#[derive(Debug)]
pub(super) struct Files {
    disks: Vec<OfDisk>,
    /// The types of calls that at least one disk holds.
    types: OpSet,
}

#[derive(Debug)]
struct OfDisk {
    files: CallFiles,
    /// The device number of the disk's directory. All files with this number are in the file system of the
    /// directory.
    device: u64,
    /// The number of that file system, if some of its files may have other device numbers.
    spanning: Option<(u32, u32)>,
    /// The id of the mount that contains the disk's directory.
    mount: u64,
}

/// A disk that must hold a call, and the zio that the call becomes on that disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) disk: usize,
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl Files {
    pub(super) fn new(disks: Vec<CallFiles>) -> io::Result<Files> {
        let mounts = std::fs::read(MOUNTS).unwrap_or_default();
        let of_disk = |files: CallFiles| {
            let status = Status::of(&files.path)?;
            let mount = Mount::find(&mounts, status.mount).filter(Mount::spans_devices);
            Ok(OfDisk {
                files,
                device: status.device,
                spanning: mount.map(|mount| mount.device),
                mount: status.mount,
            })
        };
        let disks: io::Result<Vec<OfDisk>> = disks.into_iter().map(of_disk).collect();
        let disks = disks?;
        let types = disks.iter().map(|disk| disk.files.types);
        Ok(Files {
            types: types.fold(OpSet::EMPTY, OpSet::union),
            disks,
        })
    }

    /// All disks.
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.disks.len()).collect()
    }

    /// Those of the disks whose types of calls are as asked.
    pub(super) fn of_types(
        &self,
        mut disks: Vec<usize>,
        asked: impl Fn(OpSet) -> bool,
    ) -> Vec<usize> {
        disks.retain(|disk| asked(self.disks[*disk].files.types));
        disks
    }

    /// The disks that may have to hold a call whose files are not known.
    pub(super) fn asked(&self, it: SystemCall, arguments: &[u64; 6]) -> Vec<usize> {
        let parts = parts(it, arguments);
        let asked = parts.iter().map(|part| OpSet::of(part.op));
        let asked = asked.fold(OpSet::EMPTY, OpSet::union);
        let disks = self.of_types(self.all(), |types| types.meets(asked));
        if disks.is_empty() { self.all() } else { disks }
    }

    /// The disks that must hold a call.
    pub(super) fn find(
        &self,
        call: &Call,
        it: SystemCall,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Vec<Found>, Unknown> {
        let mut found: Vec<Found> = Vec::new();
        let own = call_number(it.name()).map_or(OpSet::EMPTY, OpSet::of_call);
        for part in parts(it, &call.arguments) {
            let asked = OpSet::of(part.op).union(own);
            if !self.types.meets(asked) {
                continue;
            }
            let mut disks = self.reached(part.target, &call.arguments, subject)?;
            disks.retain(|disk| {
                self.disks[*disk].files.types.meets(asked)
                    && found.iter().all(|other| other.disk != *disk)
            });
            if disks.is_empty() {
                continue;
            }
            let (offset, length) = self.range(&part, &call.arguments, subject)?;
            found.extend(disks.into_iter().map(|disk| Found {
                disk,
                op: part.op,
                offset: offset.min(OFFSET_MAX),
                length: u32::try_from(length).unwrap_or(u32::MAX),
            }));
        }
        Ok(found)
    }

    /// The disks that have at least one of the target's files.
    pub(super) fn reached(
        &self,
        target: Target,
        arguments: &[u64; 6],
        subject: &mut Subject<'_, '_>,
    ) -> Result<Vec<usize>, Unknown> {
        match target {
            Target::Everything => Ok(self.all()),
            Target::FileSystem => match subject.status(descriptor(arguments[0]))? {
                None => Ok(Vec::new()),
                Some(status) => self.in_file_system_of(&status, subject),
            },
            Target::Mapped => {
                let maps = subject.maps()?;
                let files: Vec<Mapped> = mapped(&maps, arguments).map(|(_, it)| it).collect();
                Ok(self.with(|disk| files.iter().any(|it| disk.has(&it.path))))
            }
            Target::Descriptor(at) => self.of_descriptor(descriptor(arguments[at]), subject),
            Target::Pointed(at) => match subject.word(arguments[at])? {
                None => Ok(Vec::new()),
                Some(number) => self.of_descriptor(descriptor(number), subject),
            },
            Target::Deduplicated(at) => {
                let bytes = subject.memory(arguments[at], DEDUPLICATED)?;
                self.of_descriptors(deduplicated(&bytes), subject)
            }
            Target::Named(named) => match subject.place(named, arguments)? {
                None => Ok(Vec::new()),
                Some(place) => self.and_linked(self.at(&place, subject)?, &place, subject),
            },
        }
    }

    pub(super) fn of_descriptor(
        &self,
        number: u32,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Vec<usize>, Unknown> {
        // The link of a pipe or a socket is not a path.
        let link = subject
            .link(number)?
            .filter(|link| link.first() == Some(&b'/'));
        let Some(path) = link else {
            return Ok(Vec::new());
        };
        // If the descriptor has been closed meanwhile, the call will fail by itself.
        let Some(status) = subject.status(number)? else {
            return Ok(Vec::new());
        };
        let place = PathTarget { status, path };
        self.and_linked(self.at(&place, subject)?, &place, subject)
    }

    /// The disks that have at least one of the files of these descriptors.
    fn of_descriptors(
        &self,
        numbers: impl Iterator<Item = u32>,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Vec<usize>, Unknown> {
        let mut disks = Vec::new();
        for number in numbers {
            disks.extend(self.of_descriptor(number, subject)?);
        }
        disks.sort_unstable();
        disks.dedup();
        Ok(disks)
    }

    /// The disks that have the file at this place, which may be in another mount of a disk's file system.
    fn at(&self, place: &PathTarget, subject: &mut Subject<'_, '_>) -> Result<Vec<usize>, Unknown> {
        // The bytes of a pipe, a socket or a terminal reach no disk, and a signal can end a wait for them.
        let kind = FileType::from_raw_mode(place.status.mode);
        if matches!(
            kind,
            FileType::Fifo | FileType::Socket | FileType::CharacterDevice
        ) {
            return Ok(Vec::new());
        }
        let mut held = self.with_path(&place.path);
        if self.is_elsewhere(&held, place, subject)? {
            held.clear();
        }
        let (path, mut lists) = (Path::new(OsStr::from_bytes(&place.path)), None);
        for (number, disk) in self.disks.iter().enumerate() {
            if held.contains(&number) || !disk.is_mounted_elsewhere(place) {
                continue;
            }
            let lists = match &mut lists {
                Some(lists) => lists,
                None => lists.insert(Mounts::seen_by(subject)?),
            };
            let there = lists.find(place.status.mount);
            if there.is_some_and(|there| disk.has_by(&lists.own, path, &there)) {
                held.push(number);
            }
        }
        Ok(held)
    }

    /// The disks whose directories are in the file system of a file.
    fn in_file_system_of(
        &self,
        status: &Status,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Vec<usize>, Unknown> {
        if self.disks.iter().all(|disk| !disk.may_span(status)) {
            return Ok(self.with(|disk| disk.device == status.device));
        }
        let there = Mounts::seen_by(subject)?.find(status.mount);
        let there = there.ok_or(Unknown::NoMount)?.device;
        Ok(self.with(|disk| disk.device == status.device || disk.spanning == Some(there)))
    }

    /// The path of the place leads this process to a file of these disks. Returns whether the path leads the
    /// thread to another file. That is so if the thread has another root, and the place is in a mount that
    /// this process does not see.
    fn is_elsewhere(
        &self,
        disks: &[usize],
        place: &PathTarget,
        subject: &mut Subject<'_, '_>,
    ) -> Result<bool, Unknown> {
        let mount = place.status.mount;
        if disks.iter().all(|disk| self.disks[*disk].mount == mount) || !subject.has_other_root()? {
            return Ok(false);
        }
        let mounts = std::fs::read(MOUNTS).unwrap_or_default();
        Ok(Mount::find(&mounts, mount).is_none())
    }

    /// The mapped file that an msync acts on. `None` for other calls, whose descriptor this process can open.
    pub(super) fn mapped_file(
        &self,
        call: &Call,
        it: SystemCall,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Option<Mapped>, Unknown> {
        if it != SystemCall::Msync {
            return Ok(None);
        }
        let maps = subject.maps()?;
        let mut found = mapped(&maps, &call.arguments).map(|(_, mapped)| mapped);
        Ok(found.find(|it| self.disks.iter().any(|disk| disk.has(&it.path))))
    }

    /// Adds to `held` the disks that have the file at this place under another name.
    fn and_linked(
        &self,
        mut held: Vec<usize>,
        place: &PathTarget,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Vec<usize>, Unknown> {
        let status = place.status;
        let own = u64::from(!place.path.ends_with(DELETED));
        let is_file = FileType::from_raw_mode(status.mode) == FileType::RegularFile;
        if !is_file || status.names <= own {
            return Ok(held);
        }
        for number in self.in_file_system_of(&status, subject)? {
            if held.contains(&number) {
                continue;
            }
            let disk = &self.disks[number];
            subject.may_take_long()?;
            match has_name(&disk.files, status.device, status.inode) {
                Search::Found => held.push(number),
                Search::NotFound => {}
                Search::TooLong => return Err(Unknown::TooMany),
            }
        }
        Ok(held)
    }

    fn with_path(&self, path: &[u8]) -> Vec<usize> {
        let path = Path::new(OsStr::from_bytes(path));
        self.with(|disk| disk.has(path))
    }

    fn with(&self, is_it: impl Fn(&OfDisk) -> bool) -> Vec<usize> {
        let numbered = self.disks.iter().enumerate();
        let found = numbered.filter(|(_, disk)| is_it(disk));
        found.map(|(index, _)| index).collect()
    }

    /// The offset and the length of one part of a call.
    fn range(
        &self,
        part: &Part,
        arguments: &[u64; 6],
        subject: &mut Subject<'_, '_>,
    ) -> Result<(u64, u64), Unknown> {
        let number = match part.target {
            Target::Descriptor(at) => descriptor(arguments[at]),
            _ => 0,
        };
        Ok(match part.range {
            Range::None => (0, 0),
            Range::End(at) => (arguments[at], 0),
            Range::Here { length } => (subject.position(number)?, arguments[length]),
            Range::At { offset, length } => (arguments[offset], arguments[length]),
            Range::Pointed { offset, length } => {
                let at = match arguments[offset] {
                    0 => None,
                    address => subject.word(address)?,
                };
                let at = at.map_or_else(|| subject.position(number), Ok)?;
                (at, arguments[length])
            }
            Range::Buffers { offset } => {
                let at = offset.map(|at| arguments[at]);
                let at = at.map_or_else(|| subject.position(number), Ok)?;
                (at, buffers(subject, arguments)?)
            }
            Range::Stored { at, offset, length } => {
                let mut word = |after| subject.word(arguments[at].saturating_add(after));
                (word(offset)?.unwrap_or(0), word(length)?.unwrap_or(0))
            }
            Range::Mapped => {
                let maps = subject.maps()?;
                let found = mapped(&maps, arguments)
                    .find(|(_, it)| self.disks.iter().any(|disk| disk.has(&it.path)));
                found.map_or((0, 0), |(span, _)| (span.start, span.end - span.start))
            }
        })
    }
}

impl OfDisk {
    fn has(&self, path: &Path) -> bool {
        matches(&self.files, path)
    }

    /// Whether a place may be in the file system of the disk's directory, but in another mount of that file
    /// system.
    fn is_mounted_elsewhere(&self, place: &PathTarget) -> bool {
        let status = &place.status;
        status.mount != self.mount && (status.device == self.device || self.may_span(status))
    }

    /// Whether a file with another device number may be in the file system of the disk's directory. Such
    /// numbers are of no device, and have the major number 0.
    fn may_span(&self, status: &Status) -> bool {
        self.spanning.is_some() && status.device != self.device && major(status.device) == 0
    }

    /// Whether a path that is in the mount `there` leads to one of the disk's files.
    fn has_by(&self, mounts: &[u8], path: &Path, there: &Mount) -> bool {
        let status = Status::of(&self.files.path).ok();
        let here = status.and_then(|status| Mount::find(mounts, status.mount));
        let path = here.and_then(|here| here.translated(path, there));
        path.is_some_and(|path| self.has(&path))
    }
}

/// The lists of the mounts that this process and a thread see. The thread may be in another mount namespace.
struct Mounts {
    own: Vec<u8>,
    its: Vec<u8>,
}

impl Mounts {
    fn seen_by(subject: &mut Subject<'_, '_>) -> Result<Mounts, Unknown> {
        Ok(Mounts {
            own: std::fs::read(MOUNTS).unwrap_or_default(),
            its: subject.mounts()?,
        })
    }

    /// The mount with this id.
    fn find(&self, mount: u64) -> Option<Mount> {
        Mount::find(&self.own, mount).or_else(|| Mount::find(&self.its, mount))
    }
}

/// The total length of the buffers in a list, whose address is the call's second argument.
fn buffers(subject: &mut Subject<'_, '_>, arguments: &[u64; 6]) -> Result<u64, Unknown> {
    let count = arguments[2].min(BUFFERS_MAX);
    let list = subject.memory(arguments[1], count as u32 * 16)?;
    let (pairs, _) = list.as_chunks::<16>();
    let lengths = pairs.iter().filter_map(|pair| pair[8..].first_chunk());
    let lengths = lengths.map(|length| u64::from_ne_bytes(*length));
    Ok(lengths.fold(0, u64::saturating_add))
}

/// The descriptors of the files that a `struct file_dedupe_range` names after its head of 24 bytes. The
/// descriptor is the first of the 32 bytes that each file has there.
fn deduplicated(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let count = bytes.get(16..18).and_then(<[u8]>::first_chunk);
    let count = count.map_or(0, |count| u16::from_ne_bytes(*count));
    let files = bytes.get(24..).unwrap_or_default();
    let (files, _) = files.as_chunks::<32>();
    let numbers = files.iter().filter_map(|file| file.first_chunk());
    numbers
        .map(|number| u32::from_ne_bytes(*number))
        .take(count.into())
}

/// The descriptor in an argument. The kernel uses only the lower half of the argument.
fn descriptor(argument: u64) -> u32 {
    argument as u32
}

/// The mounts that this process sees.
const MOUNTS: &str = "/proc/self/mountinfo";
/// The largest number of buffers that the kernel takes in one call.
const BUFFERS_MAX: u64 = 1024;
/// The largest size of a `struct file_dedupe_range`: the kernel refuses more than a page.
const DEDUPLICATED: u32 = 4096;
/// The largest offset, because the kernel's offsets are signed.
const OFFSET_MAX: u64 = i64::MAX as u64;
