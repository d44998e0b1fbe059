//! The words of damage: `--drop`, `--lie`, `--torn 4096`, `--corrupt zero:512`.

use dashpot_engine::OpSet;
use dashpot_engine::inject::Damage;

use crate::ParseError;
use crate::ops::format_ops;

/// The size of the units that `--corrupt` damages if the user names none: a sector.
const SECTOR: u32 = 512;
/// The largest unit of `--corrupt`.
const UNIT_MAX: u32 = 1 << 20;

/// Parses the value of `--torn`.
pub(super) fn parse_torn(text: &str) -> Result<Damage, ParseError> {
    match text {
        "512" => Ok(Damage::Torn(512)),
        "4096" | "4k" | "4K" => Ok(Damage::Torn(4_096)),
        _ => Err(ParseError::new(format!(
            "'{text}' is not what a disk writes as a whole: write 512 or 4096"
        ))),
    }
}

/// Parses the value of `--corrupt`.
pub(super) fn parse_corrupt(text: &str) -> Result<Damage, ParseError> {
    let (kind, bytes) = match text.split_once(':') {
        Some((kind, bytes)) => (kind, Some(parse_unit(bytes)?)),
        None => (text, None),
    };
    match (kind, bytes) {
        ("zero", bytes) => Ok(Damage::Zero(bytes.unwrap_or(SECTOR))),
        ("random", bytes) => Ok(Damage::Random(bytes.unwrap_or(SECTOR))),
        ("flip", None) => Ok(Damage::Flip),
        ("misdirect", None) => Ok(Damage::Misdirect),
        ("flip", Some(_)) => Err(ParseError::new("flip is for one bit: leave the size out")),
        ("misdirect", Some(_)) => Err(ParseError::new(
            "misdirect is for a whole I/O: leave the size out",
        )),
        _ => Err(ParseError::new(format!(
            "'{kind}' is not a kind of corruption: write flip, zero, random or misdirect"
        ))),
    }
}

fn parse_unit(text: &str) -> Result<u32, ParseError> {
    let unit = crate::size::parse_size(text)?;
    let unit = u32::try_from(unit).ok();
    let unit = unit.filter(|unit| (1..=UNIT_MAX).contains(unit) && unit.is_power_of_two());
    unit.ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' is not a size that can be damaged: write a power of two up to 1M, such as 512 or 4k"
        ))
    })
}

/// The words of damage, which parse back to it.
pub(crate) fn damage_words(damage: Damage) -> String {
    let sized = |kind: &str, unit: u32| match unit {
        SECTOR => format!("--corrupt {kind}"),
        _ => format!("--corrupt {kind}:{unit}"),
    };
    match damage {
        Damage::Drop => "--drop".to_owned(),
        Damage::Lie => "--lie".to_owned(),
        Damage::Torn(unit) => format!("--torn {unit}"),
        Damage::Flip => "--corrupt flip".to_owned(),
        Damage::Zero(unit) => sized("zero", unit),
        Damage::Random(unit) => sized("random", unit),
        Damage::Misdirect => "--corrupt misdirect".to_owned(),
        Damage::Short => "--short".to_owned(),
    }
}

/// The word for a kind of damage in the API, in reports and in recordings.
pub fn damage_name(damage: Damage) -> &'static str {
    match damage {
        Damage::Drop => "drop",
        Damage::Lie => "lie",
        Damage::Torn(_) => "torn",
        Damage::Flip => "flip",
        Damage::Zero(_) => "zero",
        Damage::Random(_) => "random",
        Damage::Misdirect => "misdirect",
        Damage::Short => "short",
    }
}

/// The operations of a rule with damage, of which the user may have named some.
pub(super) fn ops_of(damage: Damage, asked: Option<OpSet>) -> Result<OpSet, ParseError> {
    let can = damage.ops();
    let asked = asked.unwrap_or(can);
    if can.contains(asked) {
        return Ok(asked);
    }
    Err(ParseError::new(format!(
        "-T {}: {} is for {} only",
        format_ops(asked.without(can)),
        damage_words(damage),
        format_ops(can)
    )))
}
