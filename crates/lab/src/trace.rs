//! Traces: a CSV of `time_ns,op,target,offset,length`, with one I/O per line.
//!
//! Fields have no quotes, because no name has a comma. The line of titles is optional.

use std::path::Path;

use dashpot_engine::{Duration, Op};
use dashpot_rules::{ParseError, format_size};
use dashpot_sim::scenario::TraceEntry;

use crate::read_text;
use crate::targets::Targets;

const TITLES: &str = "time_ns,op,target,offset,length";

/// Reads a trace. An error begins with the file's name and the number of its line.
pub(crate) fn load(path: &Path, targets: &Targets<'_>) -> Result<Vec<TraceEntry>, ParseError> {
    let shown = path.display();
    let text = read_text(path, "trace", BYTES_MAX)?;
    parse(&text, targets).map_err(|error| ParseError::new(format!("{shown}:{error}")))
}

fn parse(text: &str, targets: &Targets<'_>) -> Result<Vec<TraceEntry>, ParseError> {
    let mut entries: Vec<TraceEntry> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_end();
        if line.is_empty() || (number == 1 && line == TITLES) {
            continue;
        }
        let earliest = entries.last().map_or(Duration::ZERO, |entry| entry.at);
        let entry = parse_line(line, earliest, targets);
        entries.push(entry.map_err(|error| ParseError::new(format!("{number}: {error}")))?);
    }
    if entries.is_empty() {
        return Err(ParseError::new(format!("1: no I/O; a line is {TITLES}")));
    }
    Ok(entries)
}

fn parse_line(
    line: &str,
    earliest: Duration,
    targets: &Targets<'_>,
) -> Result<TraceEntry, ParseError> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at, op, target, offset, length] = fields[..] else {
        return Err(ParseError::new(format!(
            "'{line}' has {} fields: write {TITLES}",
            fields.len()
        )));
    };
    let at = Duration::from_nanos(number("time_ns", at)?);
    if at < earliest {
        return Err(ParseError::new(format!(
            "time_ns: '{}' is before the line above, {}: sort the trace by time",
            at.as_nanos(),
            earliest.as_nanos()
        )));
    }
    let (op, fua) = parse_op(op)?;
    let (target, size) = targets.find(target)?;
    let (offset, length) = (number("offset", offset)?, number("length", length)?);
    check_range(op, offset, length, size)?;
    Ok(TraceEntry {
        at,
        op,
        fua,
        target,
        offset,
        length: u32::try_from(length).map_err(|_| too_long(length))?,
    })
}

fn number(field: &str, text: &str) -> Result<u64, ParseError> {
    text.parse().map_err(|_| {
        ParseError::new(format!(
            "{field}: '{text}' is not a whole number of {}",
            if field == "time_ns" {
                "nanoseconds"
            } else {
                "bytes"
            }
        ))
    })
}

/// Parses an operation, and whether it must be durable.
fn parse_op(text: &str) -> Result<(Op, bool), ParseError> {
    if text == "fua" {
        return Ok((Op::Write, true));
    }
    let op = Op::OF_BLOCKS.into_iter().find(|op| op.name() == text);
    op.map(|op| (op, false)).ok_or_else(|| {
        ParseError::new(format!(
            "op: '{text}' is unknown: write read, write, fua (a durable write), flush, trim, zero \
             or cache"
        ))
    })
}

fn check_range(op: Op, offset: u64, length: u64, size: u64) -> Result<(), ParseError> {
    if op == Op::Flush {
        return match (offset, length) {
            (0, 0) => Ok(()),
            _ => Err(ParseError::new(
                "a flush covers the whole target: write 0,0 as its offset and length",
            )),
        };
    }
    if length == 0 {
        return Err(ParseError::new("length: no bytes; give 1 or more"));
    }
    if length > LENGTH_MAX {
        return Err(too_long(length));
    }
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(ParseError::new(format!(
            "offset: {length} bytes at {offset} go beyond the end of the target at {}",
            format_size(size)
        )));
    }
    Ok(())
}

fn too_long(length: u64) -> ParseError {
    ParseError::new(format!("length: {length} is too long: at most 32M"))
}

/// The size limit of a trace, in bytes. In memory, the I/Os of a trace take four times as many bytes.
pub(crate) const BYTES_MAX: u64 = 128 << 20;
/// The maximum length of an NBD request, in bytes.
pub(crate) const LENGTH_MAX: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use dashpot_engine::{Duration, Op};
    use dashpot_sim::scenario::Target;

    use super::parse;
    use crate::targets::Targets;

    fn targets() -> Targets<'static> {
        Targets {
            disks: vec![("d", 1 << 20, None)],
            volumes: vec![("tank/foo", 1 << 20)],
        }
    }

    #[test]
    fn a_line_is_an_io() {
        let text =
            "time_ns,op,target,offset,length\n0,write,tank/foo,0,4096\n\n5, fua, d, 512, 512\r\n";
        let entries = parse(text, &targets()).expect("a trace");
        let [first, second] = entries[..] else {
            panic!("two entries");
        };
        assert_eq!(
            (first.op, first.fua, first.length),
            (Op::Write, false, 4_096)
        );
        assert_eq!(first.target, Target::Volume(0));
        assert_eq!((second.op, second.fua), (Op::Write, true));
        assert_eq!(
            (second.at, second.target),
            (Duration::from_nanos(5), Target::Disk(0))
        );
    }

    #[test]
    fn what_is_refused_names_its_line() {
        for (text, message) in [
            ("", "1: no I/O; a line is time_ns,op,target,offset,length"),
            (
                "0,write,d,0",
                "1: '0,write,d,0' has 4 fields: write time_ns,op,target,offset,length",
            ),
            (
                "1s,write,d,0,1",
                "1: time_ns: '1s' is not a whole number of nanoseconds",
            ),
            (
                "0,wirte,d,0,1",
                "1: op: 'wirte' is unknown: write read, write, fua (a durable write), \
              flush, trim, zero or cache",
            ),
            (
                "0,read,tank/fo,0,1",
                "1: there is no target 'tank/fo'; did you mean 'tank/foo'?",
            ),
            (
                "7,read,d,0,1\n6,read,d,0,1",
                "2: time_ns: '6' is before the line above, 7: sort the \
              trace by time",
            ),
            (
                "0,read,d,1048576,1",
                "1: offset: 1 bytes at 1048576 go beyond the end of the target at 1M",
            ),
            (
                "0,read,d,18446744073709551615,1",
                "1: offset: 1 bytes at 18446744073709551615 go \
              beyond the end of the target at 1M",
            ),
            ("0,read,d,0,0", "1: length: no bytes; give 1 or more"),
            (
                "0,read,d,0,33554433",
                "1: length: 33554433 is too long: at most 32M",
            ),
            (
                "0,flush,d,0,1",
                "1: a flush covers the whole target: write 0,0 as its offset and length",
            ),
        ] {
            let error = parse(text, &targets()).map_err(|error| error.to_string());
            assert_eq!(error, Err(message.to_owned()), "{text}");
        }
    }
}
