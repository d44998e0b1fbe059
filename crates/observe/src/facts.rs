//! The facts about an I/O that dashpot's own disks and volumes know and a kernel's do not, each in one row of one
//! table. From the row follow the field of every finished I/O, the dimension, its JSON in the API and in `snoop`,
//! the column of recordings, and the words of help.

use dashpot_engine::pool::Class;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::value::{Unit, Value};

/// Defines [`Facts`] and [`Fact`]. The name of a field is its key in JSON and the name of its column.
macro_rules! facts {
    ($($(#[$about:meta])+ $fact:ident, $field:ident: $type:ty = $row:expr;)+) => {
        /// What one I/O's source knows of these facts. A fact that it does not know, or that the I/O does not
        /// have, is null.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct Facts {
            $($(#[$about])+ pub $field: Option<$type>,)+
        }

        /// One of the facts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fact {
            $($fact,)+
        }

        impl Fact {
            /// All facts, in the order of their rows.
            pub const ALL: &[Fact] = &[$(Fact::$fact),+];

            pub(crate) const fn row(self) -> Row {
                match self {
                    $(Fact::$fact => $row,)+
                }
            }

            /// The name of the fact's column in recordings.
            pub const fn column(self) -> &'static str {
                match self {
                    $(Fact::$fact => stringify!($field),)+
                }
            }

            /// Whether the cells of the column are words.
            pub const fn is_word(self) -> bool {
                match self {
                    $(Fact::$fact => <$type as Known>::IS_WORD,)+
                }
            }

            /// All names that the fact can have; empty if its values are numbers.
            pub(crate) fn names(self) -> Vec<&'static str> {
                match self {
                    $(Fact::$fact => <$type as Known>::names(self.row().no_yes),)+
                }
            }

            /// The value that breakdowns and conditions use.
            pub fn value(self, facts: &Facts) -> Option<Value<'static>> {
                match self {
                    $(Fact::$fact => facts.$field.map(|own| own.value(self.row().no_yes)),)+
                }
            }

            /// The cell of a recording.
            pub fn cell(self, facts: &Facts) -> Option<Cell<'static>> {
                match self {
                    $(Fact::$fact => facts.$field.map(Known::cell),)+
                }
            }

            /// Sets the fact to the value of a recording's cell.
            pub fn set(self, facts: &mut Facts, cell: Option<Cell<'_>>) {
                match self {
                    $(Fact::$fact => facts.$field = cell.and_then(Known::of_cell),)+
                }
            }
        }

        impl Facts {
            /// Whether all facts whose values are names are equal.
            #[inline]
            pub fn has_names_of(&self, other: &Facts) -> bool {
                $((!Fact::$fact.is_name() || self.$field == other.$field))&&+
            }
        }
    };
}

facts! {
    /// The id of the rule that decided the I/O's time or its error; null if no rule did.
    Rule, rule: u32 = Row::new("rule", Unit::Count, "the rule that decided, by its id");
    /// The number of the rule's lane that the I/O used, from 0; null if the rule has no lanes.
    Lane, lane: u32 = Row::new("lane", Unit::Count, "the lane of that rule, from 0");
    /// The I/O's class in the queue of a pool's disk; null if it was in no such queue.
    #[serde(with = "class_name")]
    #[schema(value_type = Option<String>, example = "async_write")]
    Class, class: Class = Row::new("class", Unit::Name, "its class in a pool's queue");
    /// Whether the I/O's pool was syncing a txg at any moment while the I/O was in the pool; null on a disk
    /// without a pool.
    Txg, txg_syncing: bool = Row::new(
        "txg", Unit::Name, "syncing if its pool synced a txg then, or open",
    ).no_yes("open", "syncing");
}

/// The words for a fact.
pub(crate) struct Row {
    pub(crate) word: &'static str,
    pub(crate) unit: Unit,
    pub(crate) meaning: &'static str,
    /// The names of `false` and `true`.
    no_yes: [&'static str; 2],
}

impl Row {
    const fn new(word: &'static str, unit: Unit, meaning: &'static str) -> Row {
        Row {
            word,
            unit,
            meaning,
            no_yes: ["no", "yes"],
        }
    }

    const fn no_yes(mut self, no: &'static str, yes: &'static str) -> Row {
        self.no_yes = [no, yes];
        self
    }
}

impl Fact {
    /// Whether the values are names, of which there are few.
    pub const fn is_name(self) -> bool {
        matches!(self.row().unit, Unit::Name)
    }
}

/// A cell of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A number, or 0 and 1 for no and yes.
    Int(i64),
    Word(&'a str),
}

/// A type of facts.
trait Known: Sized {
    const IS_WORD: bool;
    fn names(no_yes: [&'static str; 2]) -> Vec<&'static str>;
    fn value(self, no_yes: [&'static str; 2]) -> Value<'static>;
    fn cell(self) -> Cell<'static>;
    fn of_cell(cell: Cell<'_>) -> Option<Self>;
}

impl Known for u32 {
    const IS_WORD: bool = false;

    fn names(_: [&'static str; 2]) -> Vec<&'static str> {
        Vec::new()
    }

    fn value(self, _: [&'static str; 2]) -> Value<'static> {
        Value::Number(self.into())
    }

    fn cell(self) -> Cell<'static> {
        Cell::Int(self.into())
    }

    fn of_cell(cell: Cell<'_>) -> Option<u32> {
        match cell {
            Cell::Int(int) => Some(int as u32),
            Cell::Word(_) => None,
        }
    }
}

impl Known for bool {
    const IS_WORD: bool = false;

    fn names([no, yes]: [&'static str; 2]) -> Vec<&'static str> {
        vec![yes, no]
    }

    fn value(self, no_yes: [&'static str; 2]) -> Value<'static> {
        Value::Name(no_yes[usize::from(self)])
    }

    fn cell(self) -> Cell<'static> {
        Cell::Int(self.into())
    }

    fn of_cell(cell: Cell<'_>) -> Option<bool> {
        match cell {
            Cell::Int(int) => Some(int == 1),
            Cell::Word(_) => None,
        }
    }
}

impl Known for Class {
    const IS_WORD: bool = true;

    fn names(_: [&'static str; 2]) -> Vec<&'static str> {
        Class::ALL.map(Class::name).into()
    }

    fn value(self, _: [&'static str; 2]) -> Value<'static> {
        Value::Name(self.name())
    }

    fn cell(self) -> Cell<'static> {
        Cell::Word(self.name())
    }

    fn of_cell(cell: Cell<'_>) -> Option<Class> {
        match cell {
            Cell::Word(word) => Class::named(word),
            Cell::Int(_) => None,
        }
    }
}

mod class_name {
    use dashpot_engine::pool::Class;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        class: &Option<Class>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        class.map(Class::name).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Class>, D::Error> {
        let name: Option<String> = Option::deserialize(from)?;
        Ok(name.as_deref().and_then(Class::named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dimension, Knows};

    const ALL_KNOWN: Facts = Facts {
        rule: Some(3),
        lane: Some(0),
        class: Some(Class::AsyncWrite),
        txg_syncing: Some(true),
    };

    #[test]
    fn each_fact_is_a_dimension_and_a_column_that_keeps_it() {
        let mut copy = Facts::default();
        for fact in Fact::ALL {
            let cell = fact.cell(&ALL_KNOWN).expect("a known fact");
            assert_eq!(matches!(cell, Cell::Word(_)), fact.is_word());
            fact.set(&mut copy, Some(cell));
            let value = fact.value(&copy).expect("a known fact");
            assert_eq!(matches!(value, Value::Name(_)), fact.is_name());
            assert_eq!(fact.names().is_empty(), !fact.is_name());
            let dimension = Dimension::Fact(*fact);
            assert_eq!(Dimension::parse(dimension.word()), Ok(dimension));
            assert!(dimension.is_known(Knows::Zios) && !dimension.is_known(Knows::Kernel));
        }
        assert_eq!(copy, ALL_KNOWN);
        Fact::ALL.iter().for_each(|fact| fact.set(&mut copy, None));
        assert_eq!(copy, Facts::default());
    }

    #[test]
    fn facts_that_are_names_tell_ios_apart_and_the_others_do_not() {
        for fact in Fact::ALL {
            let mut other = ALL_KNOWN;
            fact.set(&mut other, None);
            assert_eq!(ALL_KNOWN.has_names_of(&other), !fact.is_name(), "{fact:?}");
        }
        assert_eq!(Fact::Txg.value(&ALL_KNOWN), Some(Value::Name("syncing")));
    }
}
