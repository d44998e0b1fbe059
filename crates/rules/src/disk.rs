//! Disks and their stores: `NAME=STORE[,size=SIZE][,offset=SIZE][,block=SIZE][,ro]`.

use std::fmt;
use std::path::PathBuf;

use super::ParseError;
use super::calls::CallFiles;
use super::name::parse_name;
use super::size::{format_size, parse_size};

#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// The disk's name, which is also its export name.
    pub name: String,
    pub store: StoreConfig,
    /// The disk's size in bytes; `None` if the disk extends from `offset` to the end of its store.
    pub size: Option<u64>,
    /// The offset of the disk's first byte in its file or on its block device.
    pub offset: u64,
    /// The smallest read or write, in bytes: a power of two from 1 to 64 KiB.
    pub block: u32,
    /// Whether the disk refuses writes.
    pub read_only: bool,
    /// Whether the disk has a moving head. A pool joins more I/Os for a disk that has one.
    pub rotational: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreConfig {
    /// Sparse memory.
    Ram,
    /// No memory at all: reads return zeroes, and writes are dropped.
    Null,
    File(PathBuf),
    /// A block device.
    Device(PathBuf),
    /// Another store behind a volatile cache, which a power cut empties; for tests.
    Lossy(Box<StoreConfig>),
    /// A path disk, which has no bytes of its own. Its I/Os are the calls of one program on certain files.
    Path(CallFiles),
}

impl StoreConfig {
    /// Whether the store's bytes outlive the daemon.
    pub fn outlives_daemon(&self) -> bool {
        match self {
            StoreConfig::Ram | StoreConfig::Null => false,
            StoreConfig::File(_) | StoreConfig::Device(_) | StoreConfig::Path(_) => true,
            StoreConfig::Lossy(inner) => inner.outlives_daemon(),
        }
    }

    /// The kind of the store, without the path of its file, which clients need not know.
    pub fn kind(&self) -> &'static str {
        match self {
            StoreConfig::Ram => "ram",
            StoreConfig::Null => "null",
            StoreConfig::File(_) => "file",
            StoreConfig::Device(_) => "dev",
            StoreConfig::Lossy(_) => "lossy",
            StoreConfig::Path(_) => "path",
        }
    }
}

impl fmt::Display for StoreConfig {
    /// Writes the words that a lab file uses: `ram`, `null`, `file:/path`, `dev:/path`, `lossy:ram`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreConfig::Ram => f.write_str("ram"),
            StoreConfig::Null => f.write_str("null"),
            StoreConfig::File(path) => write!(f, "file:{}", path.display()),
            StoreConfig::Device(path) => write!(f, "dev:{}", path.display()),
            StoreConfig::Lossy(inner) => write!(f, "lossy:{inner}"),
            StoreConfig::Path(files) => files.fmt(f),
        }
    }
}

/// The size of a disk if neither the disk nor its store gives one. A RAM disk uses memory only for data that
/// clients have written.
pub const DEFAULT_SIZE: u64 = 1 << 30;

/// The smallest request that a disk serves by default. The NBD protocol allows older clients, which do not
/// ask for block sizes, to send requests of any size.
pub const DEFAULT_BLOCK: u32 = 1;

const BLOCK_MAX: u32 = 64 << 10;

/// The maximum size, because the kernel and NBD clients use signed offsets.
const SIZE_MAX: u64 = i64::MAX as u64;

/// Parses a disk that is given as one word.
pub fn parse_disk(text: &str) -> Result<DiskConfig, ParseError> {
    let Some((name, rest)) = text.split_once('=') else {
        return Err(ParseError::new(format!(
            "'{text}' is not a disk: write NAME=STORE, for example {text}=ram,size=1G"
        )));
    };
    let (rest, types) = split_types(rest);
    let mut words = rest.split(',');
    let mut disk = DiskConfig {
        name: parse_name(name)?,
        store: store_of(words.next().unwrap_or_default(), types)?,
        size: None,
        offset: 0,
        block: DEFAULT_BLOCK,
        read_only: false,
        rotational: false,
    };
    let mut keys = Vec::new();
    for word in words {
        let key = word.split_once('=').map_or(word, |(key, _)| key);
        if keys.contains(&key) {
            return Err(ParseError::new(format!(
                "'{key}' is given twice: leave one of them out"
            )));
        }
        keys.push(key);
        read_option(word, &mut disk)?;
    }
    if disk.size.is_none() && needs_size(&disk.store) {
        disk.size = Some(DEFAULT_SIZE);
    }
    check_offset(&disk)?;
    check_blocks(&disk)?;
    Ok(disk)
}

/// Parses a store: `ram`, `null`, `file:PATH`, `dev:PATH`, or `lossy:` before one of these.
pub fn parse_store(text: &str) -> Result<StoreConfig, ParseError> {
    let (store, types) = split_types(text);
    store_of(store, types)
}

/// Splits off the types of a path disk's calls, which come last because they have commas between them.
fn split_types(text: &str) -> (&str, Option<&str>) {
    match text.split_once(",types=") {
        Some((rest, types)) => (rest, Some(types)),
        None => (text, None),
    }
}

fn store_of(text: &str, types: Option<&str>) -> Result<StoreConfig, ParseError> {
    match text.split_once(':').unwrap_or((text, "")) {
        (kind, path) if types.is_some() && (kind != "path" || path.is_empty()) => {
            Err(ParseError::new(format!(
                "'{text},types=' is not a store: only path:DIR has types of calls"
            )))
        }
        ("ram", "") => Ok(StoreConfig::Ram),
        ("null", "") => Ok(StoreConfig::Null),
        (kind @ ("file" | "dev" | "path"), "") => Err(ParseError::new(format!(
            "'{text}' has no path: write {kind}:PATH"
        ))),
        ("file", path) => Ok(StoreConfig::File(PathBuf::from(path))),
        ("dev", path) => Ok(StoreConfig::Device(PathBuf::from(path))),
        ("path", path) => CallFiles::parse(path, types).map(StoreConfig::Path),
        ("lossy", inner) if !inner.starts_with("lossy") && !inner.starts_with("path") => {
            Ok(StoreConfig::Lossy(Box::new(parse_store(inner)?)))
        }
        _ => Err(ParseError::new(format!(
            "'{text}' is not a store: those are ram, null, file:PATH, dev:PATH, lossy:STORE and, with run, path:DIR"
        ))),
    }
}

/// Parses the smallest read or write of a disk: a power of two.
pub fn block_size(text: &str) -> Result<u32, ParseError> {
    let block = parse_size(text)?;
    u32::try_from(block)
        .ok()
        .filter(|block| block.is_power_of_two() && *block <= BLOCK_MAX)
        .ok_or_else(|| {
            ParseError::new(format!(
                "a block of '{text}' is not possible: give a power of two from 1 to 64K"
            ))
        })
}

/// Refuses a disk that does not end at the end of a block. If the store determines the size of the disk, this
/// function checks nothing, because the size is not known yet.
pub fn check_blocks(disk: &DiskConfig) -> Result<(), ParseError> {
    match disk.size {
        Some(size) if !size.is_multiple_of(u64::from(disk.block)) => Err(ParseError::new(format!(
            "a size of {} is not a multiple of the block of {}: change one of them",
            format_size(size),
            format_size(u64::from(disk.block)),
        ))),
        _ => Ok(()),
    }
}

/// Refuses a size, an offset, a block size and `ro` for a path disk, because it has no bytes of its own. Also
/// refuses an offset for a disk in memory, because nothing would use the bytes before the offset.
pub fn check_offset(disk: &DiskConfig) -> Result<(), ParseError> {
    let has_bytes = disk.size.is_some() || disk.offset > 0 || disk.block != DEFAULT_BLOCK;
    if (has_bytes || disk.read_only) && matches!(disk.store, StoreConfig::Path(_)) {
        return Err(ParseError::new(format!(
            "a disk on {} has no bytes of its own: leave size, offset, block and ro out",
            disk.store
        )));
    }
    if disk.offset > 0 && needs_size(&disk.store) {
        Err(ParseError::new(format!(
            "an offset of {} is for a file or a block device, and this disk is on {}: leave it out",
            format_size(disk.offset),
            disk.store,
        )))
    } else {
        Ok(())
    }
}

/// Whether a store of this kind needs a size because it has none of its own.
pub fn needs_size(store: &StoreConfig) -> bool {
    match store {
        StoreConfig::Ram | StoreConfig::Null => true,
        StoreConfig::File(_) | StoreConfig::Device(_) | StoreConfig::Path(_) => false,
        StoreConfig::Lossy(inner) => needs_size(inner),
    }
}

pub fn disk_size(text: &str) -> Result<u64, ParseError> {
    let size = parse_size(text)?;
    if size == 0 {
        return Err(ParseError::new(format!(
            "a disk of '{text}' bytes holds nothing"
        )));
    }
    if size > SIZE_MAX {
        return Err(ParseError::new(format!(
            "a disk of '{text}' is too large: at most {SIZE_MAX} bytes, just under 8388608T"
        )));
    }
    Ok(size)
}

/// Parses the offset of a disk's first byte.
pub fn disk_offset(text: &str) -> Result<u64, ParseError> {
    let offset = parse_size(text)?;
    if offset > SIZE_MAX {
        Err(ParseError::new(format!(
            "an offset of '{text}' is too large: at most {SIZE_MAX} bytes, just under 8388608T"
        )))
    } else {
        Ok(offset)
    }
}

fn read_option(word: &str, disk: &mut DiskConfig) -> Result<(), ParseError> {
    match word.split_once('=') {
        Some(("size", size)) => disk.size = Some(disk_size(size)?),
        Some(("offset", offset)) => disk.offset = disk_offset(offset)?,
        Some(("block", block)) => disk.block = block_size(block)?,
        None if word == "ro" => disk.read_only = true,
        _ => {
            return Err(ParseError::new(format!(
                "'{word}' is not an option of a disk: those are size=SIZE, offset=SIZE, block=SIZE and ro, and \
                 with path:DIR types=TYPES (a path with a comma in it needs a lab file)"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_SIZE, StoreConfig, parse_disk, parse_store};

    #[test]
    fn a_disk_in_one_word() {
        let disk = parse_disk("d0=file:/var/tmp/a=b.img,size=2G,block=4K,ro").unwrap();
        assert_eq!(disk.name, "d0");
        assert_eq!(disk.store, StoreConfig::File("/var/tmp/a=b.img".into()));
        assert_eq!(
            (disk.size, disk.block, disk.read_only),
            (Some(2 << 30), 4_096, true)
        );
    }

    #[test]
    fn memory_has_a_size_of_its_own_and_a_file_has_its_own() {
        let size = |text| parse_disk(text).unwrap().size;
        assert_eq!(size("d0=ram"), Some(DEFAULT_SIZE));
        assert_eq!(size("d0=lossy:ram"), Some(DEFAULT_SIZE));
        assert_eq!(size("d0=file:/a"), None);
        assert_eq!(size("d0=lossy:file:/a"), None);
        assert_eq!(size("d0=dev:/dev/vdb"), None);
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, message) in [
            (
                "d0",
                "'d0' is not a disk: write NAME=STORE, for example d0=ram,size=1G",
            ),
            (
                "d0=rem",
                "'rem' is not a store: those are ram, null, file:PATH, dev:PATH, lossy:STORE and, with run, path:DIR",
            ),
            ("d0=file:", "'file:' has no path: write file:PATH"),
            ("d0=dev:", "'dev:' has no path: write dev:PATH"),
            ("d0=path:", "'path:' has no path: write path:PATH"),
            (
                "d0=path:/a,size=1G",
                "a disk on path:/a has no bytes of its own: leave size, offset, block and ro out",
            ),
            ("d0=ram,size=0", "a disk of '0' bytes holds nothing"),
            (
                "d0=ram,block=3K",
                "a block of '3K' is not possible: give a power of two from 1 to 64K",
            ),
            (
                "d0=ram,block=128K",
                "a block of '128K' is not possible: give a power of two from 1 to 64K",
            ),
            (
                "d0=ram,size=1000,block=512",
                "a size of 1000 is not a multiple of the block of 512: change one of them",
            ),
            (
                "d0=null,size=8388608T",
                "a disk of '8388608T' is too large: at most 9223372036854775807 bytes, \
                 just under 8388608T",
            ),
            (
                "d0=ram,size=1M,size=2M",
                "'size' is given twice: leave one of them out",
            ),
            (
                "d0=lossy:ram,offset=4K",
                "an offset of 4K is for a file or a block device, and this disk is on lossy:ram: \
                 leave it out",
            ),
            (
                "d0=file:/a,offset=8388608T",
                "an offset of '8388608T' is too large: at most 9223372036854775807 bytes, \
                 just under 8388608T",
            ),
            (
                "d0=ram,rw",
                "'rw' is not an option of a disk: those are size=SIZE, offset=SIZE, block=SIZE and ro, and \
                 with path:DIR types=TYPES (a path with a comma in it needs a lab file)",
            ),
        ] {
            assert_eq!(parse_disk(text).unwrap_err().to_string(), message, "{text}");
        }
        assert!(parse_disk("d0=null,size=9223372036854775807").is_ok());
        assert_eq!(parse_disk("d0=dev:/a,offset=4K").unwrap().offset, 4 << 10);
        assert!(parse_disk("all=ram").is_err());
        assert_eq!(parse_disk("d0=path:/a").unwrap().size, None);
        assert!(parse_store("lossy:path:/a").is_err());
        assert!(parse_store("lossy:lossy:ram").is_err());
        assert!(parse_store("ram:1G").is_err());
    }
}
