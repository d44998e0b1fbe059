//! The durable record of mirrors. It says where the sides of a mirror may differ after an unclean stop, and
//! which files belong to the same mirror.
//!
//! Each side has a [label](Label) in an extended attribute of its file, beside the label that names the
//! file's disk. Block devices and files on some file systems have no attributes. The labels of such sides are
//! in the pool's `bitmap`, a file like the one that mdadm's option `--bitmap=FILE` names. At every start, a
//! side without a place for its label is made equal to the other sides.

mod keeper;
mod label;
mod place;
mod start;

pub(crate) use keeper::Keeper;
pub(crate) use label::Label;
pub(crate) use place::{Side, data_of};
pub(crate) use start::{Start, assemble};

use self::place::LabelPlace;
