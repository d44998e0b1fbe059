//! The accesses to the files of a path disk that go round its rules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The accesses to a path disk's files, since the start, that no rule could hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unheld {
    /// The number of all these accesses.
    pub count: u64,
    /// The kinds of access that occurred.
    pub ways: Vec<UnheldWay>,
}

/// One kind of access that no rule could hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnheldWay {
    /// The kind: `unknown_file`, `synced_open`, `io_submit`, `io_uring`, `mapping`, `read_mapping` or
    /// `handle`. docs/path.md says what each counts.
    #[schema(example = "mapping")]
    pub way: String,
    /// The number of these accesses. A ring, a mapping or a file that was opened counts once, however many
    /// I/Os follow.
    pub count: u64,
    /// The number in words.
    pub said: String,
    /// A way to have such accesses held, or to do without them.
    pub remedy: String,
}
