//! Parses a table line. Each refusal names the word that is wrong.

use super::table::{Delay, Medium, Part, Table, Target};
use crate::{ParseError, format_size, nearest, parse_size};

/// Parses a table: one line, such as `0 2048 delay /dev/vdb 0 500`. Empty lines, and lines that begin
/// with `#`, are ignored.
pub fn parse_table(text: &str) -> Result<Table, ParseError> {
    let said = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = text.lines().filter(said);
    let Some(line) = lines.next() else {
        return Err(ParseError::new(format!(
            "word 1 is missing, because the table is empty: write a line such as '{EXAMPLE}'"
        )));
    };
    if let Some(second) = lines.next() {
        return Err(ParseError::new(format!(
            "'{}' is a second line, and a table has one line here: serve the device and give each line a rule with \
             a range, such as 'dashpot serve -d NAME=dev:DEVICE', 'dashpot inject NAME -D 500ms --range {}' and \
             'dashpot attach NAME'",
            shown(second.trim()),
            bytes_of(second).unwrap_or_else(|| "0..1M".to_owned())
        )));
    }
    Words::of(line).table()
}

/// The bytes that a line covers, as a rule's `--range` takes them.
fn bytes_of(line: &str) -> Option<String> {
    let mut sectors = line.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (start, length) = (sectors.next()??, sectors.next()??);
    let end = start.checked_add(length)?.checked_mul(SECTOR)?;
    let start = start.checked_mul(SECTOR)?;
    Some(format!("{}..{}", format_size(start), format_size(end)))
}

/// The words of a line. A refusal gives the number of the word that is wrong.
struct Words<'a> {
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        Words {
            words: line.split_whitespace().collect(),
        }
    }

    fn table(&self) -> Result<Table, ParseError> {
        let start = self.number(0, "first sector", "0")?;
        if start != 0 {
            return Err(self.refuse(0, "a table of one line begins at sector 0: write 0"));
        }
        let sectors = self.number(1, "number of sectors", "2048")?;
        if !(1..=SECTORS_MAX).contains(&sectors) {
            return Err(self.refuse(1, "give a number of sectors from 1 to 2^54 - 1"));
        }
        let target = match self.word(2, "target, delay or error")? {
            "delay" => Target::Delay(self.delay(sectors)?),
            "error" => self.error()?,
            _ => return Err(self.no_target()),
        };
        Ok(Table { sectors, target })
    }

    fn delay(&self, sectors: u64) -> Result<Delay, ParseError> {
        let arguments = self.words.len() - ARGUMENTS;
        self.check_count(arguments)?;
        let read = self.part(ARGUMENTS, sectors)?;
        let others = [6, 9].map(|most| {
            let is_there = arguments >= most;
            is_there.then(|| self.part(most, sectors)).transpose()
        });
        let [write, flush] = others;
        let delay = Delay {
            read,
            write: write?,
            flush: flush?,
        };
        self.check_one_place(&delay)?;
        Ok(delay)
    }

    /// Refuses arguments that do not form whole parts, and names the first superfluous or missing word.
    fn check_count(&self, arguments: usize) -> Result<(), ParseError> {
        let plural = if arguments == 1 { "" } else { "s" };
        let counts = format!(
            "delay has {arguments} argument{plural} here, and takes 3, 6 or 9 (DEVICE SECTOR MS for reads, writes and flushes)"
        );
        match arguments {
            3 | 6 | 9 => Ok(()),
            10.. => Err(self.refuse(ARGUMENTS + 9, &format!("{counts}: leave it out"))),
            _ => Err(ParseError::new(format!(
                "word {} is missing: {counts}: '{EXAMPLE}'",
                self.words.len() + 1
            ))),
        }
    }

    /// Refuses parts with different devices or first sectors. A disk has only one store, so all parts must
    /// refer to the same bytes.
    fn check_one_place(&self, delay: &Delay) -> Result<(), ParseError> {
        for (at, part) in delay.parts().enumerate() {
            if part.medium != delay.read.medium {
                return Err(self.refuse(
                    ARGUMENTS + 3 * at,
                    "reads, writes and flushes have one device here: name the same device",
                ));
            }
            if part.start != delay.read.start {
                return Err(self.refuse(
                    ARGUMENTS + 3 * at + 1,
                    &format!(
                        "reads, writes and flushes have one place here: write {}",
                        delay.read.start
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Parses the part whose three arguments begin at this word.
    fn part(&self, at: usize, sectors: u64) -> Result<Part, ParseError> {
        let start = self.number(at + 1, "first sector on the device", "0")?;
        if start > SECTORS_MAX {
            return Err(self.refuse(at + 1, "give a first sector from 0 to 2^54 - 1"));
        }
        let medium = self.medium(at, start + sectors)?;
        let delay = self.number(at + 2, "delay in milliseconds", "500")?;
        let delay_ms = u32::try_from(delay)
            .map_err(|_| self.refuse(at + 2, "a delay has at most 4294967295 ms"))?;
        Ok(Part {
            medium,
            start,
            delay_ms,
        })
    }

    /// Parses the medium. If the line gives the medium's size, the medium must have at least `needed`
    /// sectors.
    fn medium(&self, at: usize, needed: u64) -> Result<Medium, ParseError> {
        let word = self.word(at, "device")?;
        if let Some(size) = word.strip_prefix("ram:") {
            let size = parse_size(size).map_err(|error| self.refuse(at, &error.to_string()))?;
            let sectors = size / SECTOR;
            return if sectors >= needed {
                Ok(Medium::Ram(size))
            } else {
                Err(self.refuse(
                    at,
                    &format!("it has {sectors} sectors, and the table needs {needed}: enlarge it"),
                ))
            };
        }
        let numbers = word.split_once(':').and_then(|(major, minor)| {
            let number = |text: &str| text.parse::<u32>().ok().filter(|_| is_number(text));
            Some(Medium::Numbers(number(major)?, number(minor)?))
        });
        match numbers {
            Some(numbers) => Ok(numbers),
            None if word.contains(['/', '.']) => Ok(Medium::Path(word.to_owned())),
            None => Err(self.refuse(
                at,
                "name a device by its path or numbers (/dev/vdb, 254:16), a file by its path, or ram:SIZE",
            )),
        }
    }

    fn error(&self) -> Result<Target, ParseError> {
        if self.words.len() > ARGUMENTS {
            Err(self.refuse(ARGUMENTS, "error takes no arguments: leave it out"))
        } else {
            Ok(Target::Error)
        }
    }

    fn no_target(&self) -> ParseError {
        let word = self.words.get(2).copied().unwrap_or_default();
        if OTHERS.contains(&word) {
            return self.refuse(2, "dashpot has only delay and error of the targets");
        }
        match nearest(word, ["delay", "error"]) {
            Some(meant) => self.refuse(2, &format!("no target: did you mean {meant}?")),
            None => self.refuse(2, "no target: dashpot has delay and error"),
        }
    }

    fn number(&self, at: usize, what: &str, example: &str) -> Result<u64, ParseError> {
        let word = self.word(at, what)?;
        let number = word.parse().ok().filter(|_| is_number(word));
        number.ok_or_else(|| {
            let why = format!("no {what}: give a whole number, such as {example}");
            self.refuse(at, &why)
        })
    }

    fn word(&self, at: usize, what: &str) -> Result<&'a str, ParseError> {
        self.words.get(at).copied().ok_or_else(|| {
            ParseError::new(format!(
                "word {} is missing, the {what}: '{EXAMPLE}'",
                at + 1
            ))
        })
    }

    fn refuse(&self, at: usize, why: &str) -> ParseError {
        refusal(at, self.words.get(at).copied().unwrap_or_default(), why)
    }
}

/// An error that refuses the word at index `at` of the line. The first word has the index 0.
pub(super) fn refusal(at: usize, word: &str, why: &str) -> ParseError {
    ParseError::new(format!("word {}, '{}': {why}", at + 1, shown(word)))
}

/// Whether the kernel would take a word for a number: it accepts only digits.
fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn shown(text: &str) -> String {
    text.chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect()
}

const EXAMPLE: &str = "0 2048 delay /dev/vdb 0 500";
/// The index of a target's first argument among the words of a line.
const ARGUMENTS: usize = 3;
const SECTOR: u64 = 512;
/// The maximum number of sectors in a table, because the kernel's offsets in bytes are signed.
const SECTORS_MAX: u64 = (1 << 54) - 1;
/// A message repeats at most this many characters of a refused word.
const SHOWN: usize = 60;
/// The device mapper's targets that dashpot does not have.
const OTHERS: [&str; 20] = [
    "bow",
    "cache",
    "clone",
    "crypt",
    "dust",
    "ebs",
    "era",
    "flakey",
    "integrity",
    "linear",
    "log-writes",
    "mirror",
    "multipath",
    "raid",
    "snapshot",
    "striped",
    "thin",
    "verity",
    "writecache",
    "zero",
];

#[cfg(test)]
mod tests;
