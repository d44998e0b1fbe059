//! The footer of a file: its label, and checksums.
//!
//! The footer has a checksum of each column of each row group, and a checksum of the footer itself, so a
//! reader can verify just the parts that it reads. The footer's own checksum is computed with zeroes in its
//! place.

use std::collections::HashMap;

use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use twox_hash::XxHash64;

use crate::error::Flaw;
use crate::table::{OLDEST, Table, VERSION};

/// The origin and the time of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    /// The name of the file's table.
    pub(crate) table: String,
    /// The name of the host.
    pub(crate) host: String,
    /// The time of the source's clock when the file was sealed.
    pub(crate) clock_ns: u64,
    /// The moment of the seal in nanoseconds since 1970.
    pub(crate) at_ns: u64,
}

/// The keys of the key-value pairs in the footer. The pair with the last of these keys must be the last pair.
const TABLE: &str = "dashpot.table";
const FORMAT: &str = "dashpot.format";
const HOST: &str = "dashpot.host";
const CLOCK: &str = "dashpot.clock_ns";
const AT: &str = "dashpot.at_ns";
const COLUMNS: &str = "dashpot.columns";
const FOOTER: &str = "dashpot.footer";

/// The digits that stand in place of the footer's checksum while the checksum is computed.
const UNSIGNED: &str = "0000000000000000";
/// The number of hexadecimal digits in a column's checksum.
const DIGITS: usize = 8;
/// How many bytes are between a key and its value in Thrift's compact encoding: a field's header and a
/// length.
const BETWEEN: usize = 2;
/// The size in bytes of what follows the footer, namely the footer's length and `PAR1`.
const TAIL: usize = 8;
pub(crate) const MAGIC: &[u8] = b"PAR1";
/// The largest footer that a reader loads.
pub(crate) const FOOTER_MAX: usize = 4 << 20;

impl Label {
    /// The key-value pairs for the footer.
    pub(crate) fn pairs(&self, format: u64, checksums: &str) -> [(&'static str, String); 7] {
        [
            (TABLE, self.table.clone()),
            (FORMAT, format.to_string()),
            (HOST, self.host.clone()),
            (CLOCK, self.clock_ns.to_string()),
            (AT, self.at_ns.to_string()),
            (COLUMNS, checksums.to_owned()),
            (FOOTER, UNSIGNED.to_owned()),
        ]
    }
}

/// The checksums of all columns of all row groups.
pub(crate) fn checksums<G: std::borrow::Borrow<RowGroupMetaData>>(
    bytes: &[u8],
    groups: &[G],
) -> String {
    let columns = groups.iter().flat_map(|group| group.borrow().columns());
    columns
        .filter_map(|column| bytes.get(place(column, bytes.len() as u64)?))
        .map(checksum)
        .collect()
}

/// The checksum of a column.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", XxHash64::oneshot(0, bytes) as u32)
}

/// The range of a column's bytes in a file of this length; `None` if the range is not within the file.
pub(crate) fn place(column: &ColumnChunkMetaData, length: u64) -> Option<std::ops::Range<usize>> {
    let data = column.data_page_offset();
    let start = column.dictionary_page_offset().unwrap_or(data).min(data);
    let end = start.checked_add(column.compressed_size())?;
    let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
    (range.start >= MAGIC.len() && range.start <= range.end && range.end as u64 <= length)
        .then_some(range)
}

/// Puts the footer's checksum in its place.
pub(crate) fn sign(bytes: &mut [u8]) {
    let Some(start) =
        footer_length(bytes).and_then(|length| bytes.len().checked_sub(length + TAIL))
    else {
        return;
    };
    let footer = &mut bytes[start..];
    if let Some(at) = signature(footer) {
        let sum = format!("{:016x}", XxHash64::oneshot(0, footer));
        footer[at..at + UNSIGNED.len()].copy_from_slice(sum.as_bytes());
    }
}

/// The length of the footer, as the last bytes of a file give it. The length does not include these bytes.
pub(crate) fn footer_length(tail: &[u8]) -> Option<usize> {
    let (rest, magic) = tail.split_last_chunk::<4>()?;
    let (_, length) = rest.split_last_chunk::<4>()?;
    (magic == MAGIC).then_some(u32::from_le_bytes(*length) as usize)
}

/// The offset of the checksum in the footer.
fn signature(footer: &[u8]) -> Option<usize> {
    let key = FOOTER.as_bytes();
    let at = footer
        .windows(key.len())
        .rposition(|window| window == key)?;
    let start = at + key.len() + BETWEEN;
    (start + UNSIGNED.len() <= footer.len()).then_some(start)
}

/// Whether a footer's checksum is right. `footer` includes the last bytes of the file.
pub(crate) fn is_signed(footer: &[u8]) -> bool {
    let Some(at) = signature(footer) else {
        return false;
    };
    let mut unsigned = footer.to_vec();
    let place = &mut unsigned[at..at + UNSIGNED.len()];
    let said = String::from_utf8_lossy(place).into_owned();
    place.copy_from_slice(UNSIGNED.as_bytes());
    said == format!("{:016x}", XxHash64::oneshot(0, &unsigned))
}

/// The host of a file.
pub(crate) fn host_of(meta: &ParquetMetaData) -> Option<String> {
    let pairs = meta.file_metadata().key_value_metadata()?;
    let host = pairs.iter().find(|pair| pair.key == HOST)?;
    host.value.clone()
}

/// The format of a file and the checksums of its columns, if this version can read the file.
pub(crate) fn checksums_of(meta: &ParquetMetaData, table: &Table) -> Result<(u64, String), Flaw> {
    let pairs = meta.file_metadata().key_value_metadata();
    let pairs: HashMap<&str, &str> = pairs
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair.key.as_str(), pair.value.as_deref()?)))
        .collect();
    let format = pairs.get(FORMAT).ok_or(Flaw::Foreign)?;
    let format: u64 = format.parse().map_err(|_| Flaw::Foreign)?;
    if format > VERSION {
        return Err(Flaw::Newer(format));
    }
    if format < OLDEST {
        return Err(Flaw::Older(format));
    }
    let text = |key| pairs.get(key).copied().ok_or_else(|| lacks(key));
    let (is, should) = (text(TABLE)?, table.name);
    if is == should {
        Ok((format, text(COLUMNS)?.to_owned()))
    } else {
        Err(Flaw::damaged(format!(
            "it has '{is}' where '{should}' belongs"
        )))
    }
}

fn lacks(key: &str) -> Flaw {
    Flaw::damaged(format!("its footer lacks '{key}'"))
}

/// The checksum of one column among the checksums of all columns.
pub(crate) fn checksum_of(checksums: &str, index: usize) -> Option<&str> {
    let start = index.checked_mul(DIGITS)?;
    checksums.get(start..start + DIGITS)
}
