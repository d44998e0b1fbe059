//! The files that are mapped into the memory of a program, from its `/proc/PID/maps`.

use std::ffi::OsStr;
use std::ops::Range as Span;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::makedev;

/// A file that is mapped into the memory of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    /// Where the file was when the list of mappings was read. Another file may be there now.
    pub(super) path: PathBuf,
    /// The number of the file system's device, and the file's number there.
    pub(super) identity: (u64, u64),
}

/// The files that are mapped in the call's range of memory. Each comes with the part of the file that is
/// mapped there.
pub(super) fn mapped(
    maps: &[u8],
    arguments: &[u64; 6],
) -> impl Iterator<Item = (Span<u64>, Mapped)> {
    let [from, length, ..] = *arguments;
    let range = from..from.saturating_add(length);
    let lines = maps.split(|byte| *byte == b'\n').filter_map(mapping);
    lines.filter_map(move |(at, offset, file)| {
        let (start, end) = (at.start.max(range.start), at.end.min(range.end));
        let first = offset.saturating_add(start - at.start.min(start));
        (start < end).then(|| (first..first.saturating_add(end - start), file))
    })
}

/// The addresses, the offset and the file that a line of `/proc/PID/maps` names.
fn mapping(line: &[u8]) -> Option<(Span<u64>, u64, Mapped)> {
    let path = line.iter().position(|byte| *byte == b'/')?;
    let mut words = str::from_utf8(&line[..path]).ok()?.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(words.nth(1)?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = makedev(number(major)? as u32, number(minor)? as u32);
    let file = Mapped {
        path: PathBuf::from(OsStr::from_bytes(&line[path..])),
        identity: (device, words.next()?.parse().ok()?),
    };
    Some((number(start)?..number(end)?, offset, file))
}

#[cfg(test)]
mod tests {
    use super::{Mapped, mapped, mapping};
    use rustix::fs::makedev;

    #[test]
    fn lines_of_maps_are_read() {
        let line = b"7f0a1000-7f0a3000 rw-s 00002000 fd:01 131 /a b/c (deleted)";
        let file = Mapped {
            path: "/a b/c (deleted)".into(),
            identity: (makedev(0xfd, 1), 131),
        };
        let expected = (0x7f0a_1000..0x7f0a_3000, 0x2000, file);
        assert_eq!(mapping(line), Some(expected));
        let heap = b"7f0a1000-7f0a3000 rw-p 00000000 00:00 0 [heap]";
        assert_eq!(mapping(heap), None);
        assert_eq!(mapping(b""), None);
        let bytes = |from, length| {
            let arguments = [from, length, 0, 0, 0, 0];
            mapped(line, &arguments).map(|(span, _)| span).next()
        };
        assert_eq!(bytes(0x7f0a_2000, 0x4000), Some(0x3000..0x4000));
        assert_eq!(bytes(0x7f0a_0000, 0x1800), Some(0x2000..0x2800));
        assert_eq!(bytes(0x7f0a_3000, 0x1000), None);
    }
}
