//! Keys of a lab file's tables. The error messages and the tables of docs/lab.md use the same
//! lists.

/// A key of a table.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only docs/lab.md shows more than the name")
)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The kind of the value, in the words of the section "Values" of docs/lab.md.
    pub(crate) kind: &'static str,
    /// A value, as TOML.
    pub(crate) example: &'static str,
    /// The default of the key: a value, as TOML, or words.
    pub(crate) default: &'static str,
    /// The meaning, in one line of Markdown.
    pub(crate) meaning: &'static str,
}

/// The names of the keys in these lists.
pub(crate) fn names(lists: &[&[Key]]) -> Vec<&'static str> {
    let keys = lists.iter().copied().flatten();
    keys.map(|key| key.name).collect()
}
