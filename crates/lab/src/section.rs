//! A table of a lab file, read by key. Every error names the line, the table and the key.

use std::ops::Range;

use dashpot_rules::{ParseError, nearest};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A table, with its place in the file.
pub(crate) struct Section<'a> {
    text: &'a str,
    name: String,
    /// The place of the table's name in the file.
    start: Range<usize>,
    table: &'a DeTable<'a>,
}

/// A table, and its name in the enclosing table.
type NamedTable<'a> = (&'a Spanned<DeString<'a>>, &'a DeTable<'a>);

impl<'a> Section<'a> {
    /// The whole file.
    pub(crate) fn of_file(text: &'a str, table: &'a DeTable<'a>) -> Section<'a> {
        Section {
            text,
            name: String::new(),
            start: 0..0,
            table,
        }
    }

    /// A table inside this table. `name` is in brackets, as in the file.
    pub(crate) fn below(
        &self,
        name: impl Into<String>,
        start: Range<usize>,
        table: &'a DeTable<'a>,
    ) -> Section<'a> {
        Section {
            text: self.text,
            name: name.into(),
            start,
            table,
        }
    }

    /// Refuses unknown keys.
    pub(crate) fn refuse_unknown(&self, known: &[&str]) -> Result<(), ParseError> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let remedy = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => format!("known are {}", known.join(", ")),
                };
                return Err(self.error(key.span(), name, &format!("unknown key; {remedy}")));
            }
        }
        Ok(())
    }

    /// The value of a key, parsed. An integer counts as a word.
    pub(crate) fn value<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<Option<T>, ParseError> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        self.parse_word(key, value, parse).map(Some)
    }

    /// The values of a key that is a list of words.
    pub(crate) fn list<T>(
        &self,
        key: &str,
        mut parse: impl FnMut(&str) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let Some(value) = self.table.get(key) else {
            return Ok(Vec::new());
        };
        let Some(values) = value.get_ref().as_array() else {
            return Err(self.wrong_type(key, value, "a list of strings: [\"…\", \"…\"]"));
        };
        values
            .iter()
            .map(|value| self.parse_word(key, value, &mut parse))
            .collect()
    }

    /// The values of a key whose list may have words and lists of words. A single word counts as a list of
    /// one word.
    pub(crate) fn nested_list<T>(
        &self,
        key: &str,
        mut parse: impl FnMut(&str) -> Result<T, ParseError>,
    ) -> Result<Vec<Vec<T>>, ParseError> {
        let Some(value) = self.table.get(key) else {
            return Ok(Vec::new());
        };
        let Some(members) = value.get_ref().as_array() else {
            return Err(self.wrong_type(
                key,
                value,
                "a list: [\"…\", \"…\"] or [[\"…\", \"…\"], …]",
            ));
        };
        let member = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_array() {
            Some(sides) => sides
                .iter()
                .map(|side| self.parse_word(key, side, &mut parse))
                .collect(),
            None => Ok(vec![self.parse_word(key, value, &mut parse)?]),
        };
        members.iter().map(member).collect()
    }

    /// The value of a key that is true or false.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ParseError> {
        let read = |value: &Spanned<DeValue<'_>>| {
            let flag = value.get_ref().as_bool();
            flag.ok_or_else(|| self.wrong_type(key, value, "true or false"))
        };
        self.table.get(key).map(read).transpose()
    }

    /// The tables of a kind, such as `[disk.NAME]`, with their names, in the order of the file. Refuses more
    /// than [`TABLES_MAX`] tables.
    pub(crate) fn named(&self, kind: &str) -> Result<Vec<(&'a str, Section<'a>)>, ParseError> {
        let tables = self.tables(kind)?.into_iter();
        let named = |(key, table): NamedTable<'a>| {
            let name: &str = key.get_ref();
            (
                name,
                self.below(format!("[{kind}.{name}]"), key.span(), table),
            )
        };
        let tables: Vec<_> = tables.map(named).collect();
        let Some((_, beyond)) = tables.get(TABLES_MAX) else {
            return Ok(tables);
        };
        let why = format!("a lab has at most {TABLES_MAX} of [{kind}.NAME]: leave some out");
        Err(beyond.error(beyond.start(), "", &why))
    }

    fn tables(&self, key: &str) -> Result<Vec<NamedTable<'a>>, ParseError> {
        let Some(table) = self.table(key)? else {
            return Ok(Vec::new());
        };
        let named = |(name, value)| Ok((name, self.as_table(key, value)?));
        let mut found = table
            .iter()
            .map(named)
            .collect::<Result<Vec<_>, ParseError>>()?;
        found.sort_by_key(|(name, _)| name.span().start);
        Ok(found)
    }

    /// The tables of a list, `[[KEY]]`, in the order of the file.
    pub(crate) fn table_list(&self, key: &str) -> Result<Vec<Section<'a>>, ParseError> {
        let Some(value) = self.table.get(key) else {
            return Ok(Vec::new());
        };
        let Some(tables) = value.get_ref().as_array() else {
            return Err(self.wrong_type(key, value, &format!("a list of tables: [[{key}]]")));
        };
        let name = format!("[[{key}]]");
        let table = |value: &'a Spanned<DeValue<'a>>| match value.get_ref().as_table() {
            Some(table) => Ok(self.below(name.as_str(), value.span(), table)),
            None => Err(self.wrong_type(key, value, &format!("a table: [[{key}]]"))),
        };
        tables.iter().map(table).collect()
    }

    /// The table under a key.
    pub(crate) fn table(&self, key: &str) -> Result<Option<&'a DeTable<'a>>, ParseError> {
        self.table
            .get(key)
            .map(|value| self.as_table(key, value))
            .transpose()
    }

    /// Whether the table has this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The place of the table's name.
    pub(crate) fn start(&self) -> Range<usize> {
        self.start.clone()
    }

    /// How an error names the table's place: `LINE: [TABLE]`.
    pub(crate) fn place(&self) -> String {
        format!("{}: {}", line_of(self.text, self.start.start), self.name)
    }

    /// The place of a key.
    pub(crate) fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.table.get_key_value(key).map(|(key, _)| key.span())
    }

    /// Refuses the value of a key.
    pub(crate) fn refuse<T>(&self, key: &str, message: &str) -> Result<T, ParseError> {
        Err(self.error(self.span_of(key).unwrap_or_default(), key, message))
    }

    /// An error with its place: `LINE: [TABLE] KEY: MESSAGE`.
    pub(crate) fn error(&self, span: Range<usize>, key: &str, message: &str) -> ParseError {
        let line = line_of(self.text, span.start);
        let place = [self.name.as_str(), key].map(str::trim).join(" ");
        ParseError::new(format!("{line}: {}: {message}", place.trim()))
    }

    fn parse_word<T>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        let word = match value.get_ref() {
            DeValue::String(word) => word.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => return Err(self.wrong_type(key, value, "a string")),
        };
        parse(word).map_err(|error| self.error(value.span(), key, &error.to_string()))
    }

    fn as_table(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<&'a DeTable<'a>, ParseError> {
        let table = value.get_ref().as_table();
        table.ok_or_else(|| self.wrong_type(key, value, "a table: [disk.NAME] or [serve]"))
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> ParseError {
        let found = value.get_ref().type_str();
        self.error(
            value.span(),
            key,
            &format!("this is of type {found}; write {wanted}"),
        )
    }
}

/// The number of the line that contains this byte.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// The maximum number of tables of a kind. In a simulation, a busy disk with its clients takes 200 KB of
/// memory.
pub(crate) const TABLES_MAX: usize = 4_096;
