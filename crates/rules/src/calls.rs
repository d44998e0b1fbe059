//! Parses path disks. The I/Os of a path disk are a program's system calls of certain types on certain files.

use std::fmt;
use std::path::PathBuf;

use dashpot_engine::{Op, OpSet};

use super::ParseError;
use super::call_names::{call_names, call_number};
use super::name::nearest;

/// The files of a path disk, and the types of calls that the kernel reports to dashpot. These types cannot
/// change after the program that makes the calls has started, because the kernel's filter cannot change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFiles {
    /// The directory that contains the files. Until the disk is opened, this is the path that the user gave,
    /// which may end with a glob.
    pub path: PathBuf,
    /// The directory and the glob, which the files' paths match. `None` until the disk is opened, and for a
    /// disk that has all files below the directory.
    pub glob: Option<PathBuf>,
    /// The types of the calls.
    pub types: OpSet,
}

/// The types of calls that `all` stands for, in the order in which messages list them.
const IN_ALL: [Op; 9] = [
    Op::Sync,
    Op::Write,
    Op::Read,
    Op::Open,
    Op::Unlink,
    Op::Rename,
    Op::Truncate,
    Op::Link,
    Op::Mkdir,
];

/// The types that a user must name, because programs make such calls often, and most of them do no I/O.
const ONLY_NAMED: [Op; 4] = [Op::Close, Op::Stat, Op::Readdir, Op::Xattr];

/// The types for a disk without `types=`.
const DEFAULT: OpSet = OpSet::of(Op::Sync);

/// The types of calls, in the order in which messages list them.
pub(crate) fn call_types() -> impl Iterator<Item = Op> {
    IN_ALL.into_iter().chain(ONLY_NAMED)
}

impl CallFiles {
    /// Parses `DIR` and, if given, the words after `types=`.
    pub(crate) fn parse(path: &str, types: Option<&str>) -> Result<CallFiles, ParseError> {
        Ok(CallFiles {
            path: PathBuf::from(path),
            glob: None,
            types: types.map_or(Ok(DEFAULT), parse_types)?,
        })
    }
}

impl fmt::Display for CallFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.glob.as_ref().unwrap_or(&self.path);
        write!(f, "path:{}", path.display())?;
        if self.types == DEFAULT {
            Ok(())
        } else {
            write!(f, ",types={}", format_types(self.types))
        }
    }
}

/// The words of these types.
pub fn format_types(types: OpSet) -> String {
    let named = call_types().filter(|op| types.contains(OpSet::of(*op)));
    let mut words: Vec<&str> = named.map(Op::name).collect();
    words.extend(call_names(types));
    words.join(",")
}

/// Parses types and calls with commas between them.
pub fn parse_types(text: &str) -> Result<OpSet, ParseError> {
    let each = text.split(',').map(|word| parse_type(word, text));
    each.into_iter()
        .try_fold(OpSet::EMPTY, |set, one| Ok(set.union(one?)))
}

fn parse_type(word: &str, text: &str) -> Result<OpSet, ParseError> {
    match word {
        "all" => return Ok(OpSet::of_all(&IN_ALL)),
        "flush" => return Ok(DEFAULT),
        _ => {}
    }
    if let Some(call) = call_number(word) {
        return Ok(OpSet::of_call(call));
    }
    let known = call_types().find(|op| op.name() == word);
    known.map(OpSet::of).ok_or_else(|| {
        let words: Vec<&str> = call_types().map(Op::name).collect();
        let near = nearest(word, words.iter().copied());
        let those = near.map_or("those".to_owned(), |near| format!("did you mean {near}? Those"));
        ParseError::new(format!(
            "'{word}' in 'types={text}' is not a type of call: {those} are {} and all, and types= comes \
             last",
            words.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use crate::disk::parse_store;

    #[test]
    fn types_are_read_and_shown() {
        for (text, shown) in [
            ("path:/a", "path:/a"),
            ("path:/a,types=flush", "path:/a"),
            ("path:/a,b,types=write,sync", "path:/a,b,types=sync,write"),
            (
                "path:/a,types=fdatasync,open,fsync",
                "path:/a,types=open,fsync,fdatasync",
            ),
            (
                "path:/a/*.wal,types=all",
                "path:/a/*.wal,types=sync,write,read,open,unlink,rename,truncate,link,mkdir",
            ),
            (
                "path:/a,types=xattr,close,statx",
                "path:/a,types=close,xattr,statx",
            ),
        ] {
            assert_eq!(parse_store(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn unknown_types_are_refused_with_the_known() {
        for (text, message) in [
            ("path:/a,types=trim", "'trim' in 'types=trim' is not a type"),
            ("path:/a,types=", "'' in 'types=' is not a type"),
            ("path:/a,types=sync,wirte", "did you mean write?"),
            ("path:/a,types=sync,size=1G", "types= comes last"),
            ("ram,types=sync", "is not a store"),
        ] {
            let error = parse_store(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
