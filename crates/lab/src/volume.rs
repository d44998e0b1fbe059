//! `[volume."POOL/NAME"]`: block devices carved from pools, and the throttles of their writes.

use dashpot_engine::pool::WritePolicy;
use dashpot_rules::{ParseError, VolumeSpec, format_size, parse_name, parse_size};

use crate::key::{Key, names};
use crate::place::place_of;
use crate::pool::{PoolDraft, Throttle};
use crate::section::Section;

pub(crate) const VOLUME_KEYS: [Key; 3] = [
    Key {
        name: "size",
        kind: "size",
        example: "\"512M\"",
        default: "none: it must be given",
        meaning: "The size of the volume, a multiple of `block_size` and no more than the pool has left.",
    },
    Key {
        name: "block_size",
        kind: "size",
        example: "\"128K\"",
        default: "\"8K\"",
        meaning: "Bytes in a block: a power of two from 512 to 1M. A smaller write reads the block first.",
    },
    Key {
        name: "write",
        kind: "`through`, `none`, `openzfs` or `legacy`",
        example: "\"openzfs\"",
        default: "\"through\"",
        meaning: "When a write is acknowledged. `through`: when it is on the disks. `openzfs`, `legacy`: when that throttle has let it into memory. `none`: when it is in memory, without a throttle. A pool has one throttle.",
    },
];

/// The value of a volume's `write`: when the volume acknowledges writes, and which throttle holds
/// writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Through,
    Back(Throttle),
}

/// Reads a volume. Takes the volume's space from the pool, and sets the pool's throttle.
pub(crate) fn read_volume(
    section: &Section<'_>,
    name: &str,
    pools: &mut [PoolDraft<'_>],
) -> Result<VolumeSpec, ParseError> {
    let misplaced = |error: ParseError| section.error(section.start(), "", &error.to_string());
    let name = parse_name(name).map_err(misplaced)?;
    section.refuse_unknown(&names(&[&VOLUME_KEYS]))?;
    let at = pool_of(&name, pools).map_err(misplaced)?;
    let block_size = section.value("block_size", volume_block)?;
    let block_size = block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
    if let Err(why) = pools[at].take_block_size(block_size) {
        return Err(match section.span_of("block_size") {
            Some(span) => section.error(span, "block_size", &why),
            None => section.error(section.start(), "", &why),
        });
    }
    let size = section.value("size", |word| volume_size(word, block_size, &pools[at]))?;
    let size = size.ok_or_else(|| {
        let text = "no size; add size = \"512M\"";
        section.error(section.start(), "", text)
    })?;
    let write = section.value("write", |word| parse_write(word, &name, &mut pools[at]))?;
    pools[at].allocated += size;
    Ok(VolumeSpec {
        name,
        pool: at,
        size,
        block_size,
        write: match write {
            Some(Write::Back(_)) => WritePolicy::Back,
            Some(Write::Through) | None => WritePolicy::Through,
        },
    })
}

fn pool_of(name: &str, pools: &[PoolDraft<'_>]) -> Result<usize, ParseError> {
    let Some((pool, _)) = name.split_once('/') else {
        return Err(ParseError::new(format!(
            "'{name}' names no pool: write [volume.\"POOL/{name}\"]"
        )));
    };
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    place_of("pool", pool, &names)
}

/// The block size of a volume.
fn volume_block(text: &str) -> Result<u32, ParseError> {
    let size = parse_size(text)?;
    let block = u32::try_from(size).ok();
    let fits = |block: &u32| block.is_power_of_two() && (512..=BLOCK_SIZE_MAX).contains(block);
    block.filter(fits).ok_or_else(|| {
        ParseError::new(format!(
            "blocks of '{text}' are not possible: give a power of two from 512 to 1M"
        ))
    })
}

fn volume_size(text: &str, block_size: u32, pool: &PoolDraft<'_>) -> Result<u64, ParseError> {
    let size = parse_size(text)?;
    let block = u64::from(block_size);
    if size == 0 || !size.is_multiple_of(block) {
        return Err(ParseError::new(format!(
            "'{text}' is not a whole number of blocks of {}: give a multiple of it",
            format_size(block)
        )));
    }
    let left = pool.capacity - pool.allocated;
    if size > left {
        return Err(ParseError::new(format!(
            "'{text}' is more than pool '{}' has left, {} of {}: make it smaller, or the disks larger",
            pool.name,
            format_size(left),
            format_size(pool.capacity)
        )));
    }
    Ok(size)
}

fn parse_write(text: &str, volume: &str, pool: &mut PoolDraft<'_>) -> Result<Write, ParseError> {
    let write = match text {
        "through" => Write::Through,
        "none" => Write::Back(Throttle::None),
        "openzfs" => Write::Back(Throttle::OpenZfs),
        "legacy" => Write::Back(Throttle::Legacy),
        _ => {
            return Err(ParseError::new(format!(
                "'{text}' is not a write policy: those are through, none, openzfs and legacy"
            )));
        }
    };
    let Write::Back(throttle) = write else {
        return Ok(write);
    };
    match &pool.throttle {
        Some((other, named_by)) if *other != throttle => Err(ParseError::new(format!(
            "'{text}' differs from '{}' of volume '{named_by}', and a pool has one throttle: give the \
             same, or \"through\"",
            other.word()
        ))),
        Some(_) => Ok(write),
        None => {
            pool.throttle = Some((throttle, volume.to_owned()));
            Ok(write)
        }
    }
}

/// ZFS's default (`volblocksize`) when the articles on its write throttle were written.
const DEFAULT_BLOCK_SIZE: u32 = 8 << 10;
const BLOCK_SIZE_MAX: u32 = 1 << 20;
