//! The kernel's description of its records, in `events/*/*/format` and `events/header_page`.
//!
//! The probe relies on the names of fields alone. A field's place and length differ between kernels, and some
//! kernels lack some fields.

/// A record's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The value of the first field of each record of this format.
    pub id: u16,
    fields: Vec<Field>,
    /// The string fields, whose bytes are elsewhere in the record.
    texts: Vec<Field>,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name, without the `[10]` of an array.
    pub name: String,
    /// The field's offset in bytes.
    pub offset: usize,
    /// The field's length in bytes.
    pub size: usize,
    pub signed: bool,
}

/// The reason that a description cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The description has no id, by which records of this format could be distinguished from other records.
    #[error("it gives no ID")]
    NoId,
    /// A line that describes a field is incomplete.
    #[error("'{0}' describes no field")]
    Line(String),
    /// A field is missing.
    #[error("it has no field '{0}'")]
    NoField(&'static str),
    /// The description is not that of a page, or the page would be larger than any that a kernel has.
    #[error("its fields are not those of a page")]
    NoPage,
}

impl Format {
    /// Reads the text of a `format` file.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let id = text
            .lines()
            .find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        Ok(Format {
            id: id.ok_or(FormatError::NoId)?,
            fields: fields(text)?,
            texts: texts(text),
        })
    }

    /// The field with that name.
    pub fn field(&self, name: &'static str) -> Result<Field, FormatError> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.cloned().ok_or(FormatError::NoField(name))
    }

    /// The field with that name, whose bytes are elsewhere in the record: see [`Field::text`].
    pub fn text(&self, name: &'static str) -> Result<Field, FormatError> {
        let field = self.texts.iter().find(|field| field.name == name);
        field.cloned().ok_or(FormatError::NoField(name))
    }
}

impl Field {
    /// The field's bytes; `None` if the record is too short.
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..)?.get(..self.size)
    }

    /// The text to which a field of [`Format::text`] points, without the zero at its end. The lower half of
    /// the field is the text's offset, and the upper half is its length. `None` if the record is too short.
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.number(record)?;
        let (offset, length) = ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize);
        let bytes = record.get(offset..)?.get(..length)?;
        bytes.split(|&byte| byte == 0).next()
    }

    /// The field as a number, in this machine's byte order. A signed number is extended to 64 bits. `None`
    /// if the record is too short, or if no number has that size.
    pub fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let number = match bytes.len() {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        };
        let unused = 64 - 8 * self.size;
        Some(if self.signed {
            ((number << unused) as i64 >> unused) as u64
        } else {
            number
        })
    }
}

/// The fields of a description, except those whose bytes are elsewhere in the record
/// (`__data_loc`).
pub(crate) fn fields(text: &str) -> Result<Vec<Field>, FormatError> {
    text.lines()
        .map(str::trim)
        .filter_map(|line| Some((line, line.strip_prefix("field:")?)))
        .filter(|(_, description)| !description.trim_start().starts_with("__"))
        .map(|(line, description)| {
            field(description).ok_or_else(|| FormatError::Line(line.to_owned()))
        })
        .collect()
}

/// The fields whose bytes are elsewhere in the record. A description shows such a field as `__data_loc char[]
/// name`.
fn texts(text: &str) -> Vec<Field> {
    let lines = text.lines().map(str::trim);
    let texts = lines.filter_map(|line| line.strip_prefix("field:__data_loc char[] "));
    texts.filter_map(field).collect()
}

/// Parses a field's description, such as `char rwbs[10];  offset:34;  size:10;  signed:0;`.
fn field(description: &str) -> Option<Field> {
    let mut parts = description.split(';').map(str::trim);
    let declaration = parts.next()?.split('[').next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", bytes)) => offset = bytes.parse().ok(),
            Some(("size", bytes)) => size = bytes.parse().ok(),
            Some(("signed", is)) => signed = is != "0",
            _ => {}
        }
    }
    Some(Field {
        name: declaration.split_whitespace().last()?.to_owned(),
        offset: offset?,
        size: size?,
        signed,
    })
}

#[cfg(test)]
mod tests;
