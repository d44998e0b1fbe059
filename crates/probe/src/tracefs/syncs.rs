//! The kernel's events of calls that sync, the file systems' own events, and the decoders of their records.

use super::events::decode;
use super::format::{Field, Format, FormatError};
use crate::sync::{FileId, Storage, SyncCall, SyncEvent, SyncWhat};

/// The events of file systems that show which file, or which file system, a call syncs. The calls on overlayfs show
/// those of the upper layer's file system.
pub(crate) const OF_FILE_SYSTEMS: [&str; 9] = [
    "ext4/ext4_sync_file_enter",
    "ext4/ext4_sync_fs",
    "xfs/xfs_file_fsync",
    "xfs/xfs_dir_fsync",
    "xfs/xfs_fs_sync_fs",
    "btrfs/btrfs_sync_file",
    "btrfs/btrfs_sync_fs",
    "f2fs/f2fs_sync_file_enter",
    "f2fs/f2fs_sync_fs",
];

/// The kernel's name for the `enter` or `exit` event of a call, with the event's group.
pub(crate) fn path(moment: &str, call: SyncCall) -> String {
    format!("syscalls/sys_{moment}_{}", call.name())
}

/// The decoder of one event's records.
#[derive(Debug)]
pub(crate) struct Decoder {
    pid: Field,
    own: Own,
}

/// The fields of one event.
#[derive(Debug)]
enum Own {
    Begin {
        call: SyncCall,
        fd: Option<Field>,
        range: Option<(Field, Field)>,
    },
    End {
        call: SyncCall,
        result: Field,
    },
    File {
        storage: FileSystemField,
        inode: Option<Field>,
    },
}

/// The field that identifies a file system.
#[derive(Debug)]
enum FileSystemField {
    Device(Field),
    Btrfs(Field),
}

impl Decoder {
    pub(crate) fn begin(call: SyncCall, format: &Format) -> Result<Decoder, FormatError> {
        let field = |name| format.field(name);
        let range = match call {
            // `msync` also has a range, but one of addresses in memory.
            SyncCall::SyncFileRange => Some((field("offset")?, field("nbytes")?)),
            _ => None,
        };
        let fd = match call {
            SyncCall::Msync | SyncCall::Sync => None,
            _ => Some(field("fd")?),
        };
        Decoder::new(format, Own::Begin { call, fd, range })
    }

    pub(crate) fn end(call: SyncCall, format: &Format) -> Result<Decoder, FormatError> {
        let result = format.field("ret")?;
        Decoder::new(format, Own::End { call, result })
    }

    pub(crate) fn file(format: &Format) -> Result<Decoder, FormatError> {
        let device = format.field("dev").map(FileSystemField::Device);
        let storage = device.or_else(|_| format.field("fsid").map(FileSystemField::Btrfs))?;
        let inode = format.field("ino").ok();
        Decoder::new(format, Own::File { storage, inode })
    }

    fn new(format: &Format, own: Own) -> Result<Decoder, FormatError> {
        let pid = format.field("common_pid")?;
        Ok(Decoder { pid, own })
    }

    /// Reads a record; `None` if the record is too short.
    pub(crate) fn read(&self, at_ns: u64, record: &[u8]) -> Option<SyncEvent> {
        let what = match &self.own {
            Own::Begin { call, fd, range } => SyncWhat::Begin {
                call: *call,
                fd: match fd {
                    Some(fd) => Some(fd.number(record)? as i32),
                    None => None,
                },
                range: match range {
                    Some((at, length)) => Some((at.number(record)?, length.number(record)?)),
                    None => None,
                },
            },
            Own::End { call, result } => {
                let result = result.number(record)? as i64;
                SyncWhat::End(*call, i32::try_from(-result.min(0)).unwrap_or(i32::MAX))
            }
            Own::File { storage, inode } => SyncWhat::File(FileId {
                storage: match storage {
                    FileSystemField::Device(field) => {
                        Storage::Device(decode(field.number(record)?))
                    }
                    FileSystemField::Btrfs(field) => {
                        Storage::Btrfs(field.bytes(record)?.try_into().ok()?)
                    }
                },
                inode: match inode {
                    Some(inode) => Some(inode.number(record)?),
                    None => None,
                },
            }),
        };
        let pid = self.pid.number(record)? as i32;
        Some(SyncEvent { at_ns, pid, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Number;
    use crate::tracefs::fixtures::{KERNELS, format, record};

    fn of(kernel: &str, event: &str) -> Option<Format> {
        let (_, name) = event.split_once('/').expect("a group");
        format(kernel, name)
    }

    #[test]
    fn every_kernel_s_records_are_read() {
        let fields = [
            ("common_pid", 4711_i32.to_ne_bytes().to_vec()),
            ("fd", 5_u64.to_ne_bytes().to_vec()),
            ("offset", 4096_u64.to_ne_bytes().to_vec()),
            ("nbytes", 8192_u64.to_ne_bytes().to_vec()),
            ("ret", (-5_i64).to_ne_bytes().to_vec()),
            ("dev", ((254_u32 << 20) | 1).to_ne_bytes().to_vec()),
            ("ino", 77_u64.to_ne_bytes().to_vec()),
            ("fsid", vec![7; 16]),
        ];
        let check = |decoder: Decoder, format: &Format, what| {
            let bytes = record(format, &fields);
            let (at_ns, pid) = (9, 4711);
            assert_eq!(
                decoder.read(9, &bytes),
                Some(SyncEvent { at_ns, pid, what })
            );
            assert_eq!(decoder.read(9, &bytes[..6]), None, "too short");
        };
        let mut read = 0;
        for kernel in KERNELS {
            for call in SyncCall::ALL {
                let Some(format) = of(kernel, &path("enter", call)) else {
                    continue;
                };
                let has_fd = !matches!(call, SyncCall::Msync | SyncCall::Sync);
                let fd = has_fd.then_some(5);
                let range = (call == SyncCall::SyncFileRange).then_some((4096, 8192));
                let begin = SyncWhat::Begin { call, fd, range };
                check(
                    Decoder::begin(call, &format).expect("a decoder"),
                    &format,
                    begin,
                );
                let format = of(kernel, &path("exit", call)).expect("its end");
                let end = Decoder::end(call, &format).expect("a decoder");
                check(end, &format, SyncWhat::End(call, 5));
                read += 1;
            }
            for event in OF_FILE_SYSTEMS {
                let Some(format) = of(kernel, event) else {
                    continue;
                };
                let device = Number {
                    major: 254,
                    minor: 1,
                };
                let file = SyncWhat::File(FileId {
                    storage: if event.starts_with("btrfs") {
                        Storage::Btrfs([7; 16])
                    } else {
                        Storage::Device(device)
                    },
                    inode: (!event.ends_with("_sync_fs")).then_some(77),
                });
                check(Decoder::file(&format).expect("a decoder"), &format, file);
                read += 1;
            }
        }
        assert_eq!(read, 6 + 7, "one kernel's description has these events");
    }
}
