//! Checks whether a table fits on its medium. Like the parser's refusals, each refusal names the word that is
//! wrong.

use super::line::refusal;
use super::table::Table;
use crate::{ParseError, format_size};

/// A word of a table line whose correctness depends on more than the line itself, such as the medium's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The number of sectors.
    Sectors,
    /// The device of the first part.
    Device,
    /// The sector of the device at which the first part begins.
    Start,
}

/// The size of a medium, and of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The medium's size, in sectors of 512 bytes.
    pub sectors: u64,
    /// The size of the medium's blocks, in sectors; never 0. The medium reads and writes whole blocks.
    pub block: u64,
}

impl Table {
    /// An error that refuses a word of this table.
    pub fn refuse(&self, word: Word, why: &str) -> ParseError {
        match word {
            Word::Sectors => refusal(1, &self.sectors.to_string(), why),
            Word::Start => refusal(4, &self.start().to_string(), why),
            Word::Device => {
                let device = self.medium().map(ToString::to_string);
                refusal(3, &device.unwrap_or_default(), why)
            }
        }
    }

    /// Refuses a table that does not fit on its medium.
    pub fn check_fits(&self, medium: Extent) -> Result<(), ParseError> {
        let Extent { sectors, block } = medium;
        let rest = sectors.saturating_sub(self.start());
        if rest == 0 {
            let why = format!("the device has {sectors} sectors: begin before its end");
            return Err(self.refuse(Word::Start, &why));
        }
        if self.sectors > rest {
            let why = match self.start() {
                0 => format!("the device has {sectors} sectors: write at most that"),
                start => format!(
                    "the device has {sectors} sectors, and {rest} of them from sector {start} on: write at most {rest}"
                ),
            };
            return Err(self.refuse(Word::Sectors, &why));
        }
        for (word, count) in [(Word::Start, self.start()), (Word::Sectors, self.sectors)] {
            if !count.is_multiple_of(block) {
                let size = format_size(block * 512);
                let why = format!("the device has blocks of {size}: write a multiple of {block}");
                return Err(self.refuse(word, &why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, Word};
    use crate::dm::parse_table;

    #[test]
    fn a_table_that_does_not_fit_names_the_word() {
        for (line, sectors, block, refused) in [
            ("0 64 delay /dev/a 0 1", 64, 1, None),
            ("0 56 delay /dev/a 8 1", 64, 8, None),
            (
                "0 65 delay /dev/a 0 1",
                64,
                1,
                Some("word 2, '65': the device has 64 sectors: write at most that"),
            ),
            (
                "0 57 delay /dev/a 8 1",
                64,
                1,
                Some(
                    "word 2, '57': the device has 64 sectors, and 56 of them from sector 8 on: write at most 56",
                ),
            ),
            (
                "0 8 delay /dev/a 64 1",
                64,
                1,
                Some("word 5, '64': the device has 64 sectors: begin before its end"),
            ),
            (
                "0 8 delay /dev/a 4 1",
                64,
                8,
                Some("word 5, '4': the device has blocks of 4K: write a multiple of 8"),
            ),
            (
                "0 9 delay /dev/a 8 1",
                64,
                8,
                Some("word 2, '9': the device has blocks of 4K: write a multiple of 8"),
            ),
        ] {
            let table = parse_table(line).unwrap();
            let said = table.check_fits(Extent { sectors, block });
            let said = said.err().map(|error| error.to_string());
            assert_eq!(said.as_deref(), refused, "{line}");
        }
    }

    #[test]
    fn the_device_is_the_fourth_word() {
        let table = parse_table("0 8 delay 8:16 0 1").unwrap();
        let said = table.refuse(Word::Device, "it is busy").to_string();
        assert_eq!(said, "word 4, '8:16': it is busy");
    }
}
