//! The conditions of a question, which select I/Os.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use dashpot_engine::{Op, glob_matches};
use dashpot_rules::{ParseError, parse_duration, parse_size};

use super::dimension::Dimension;
use super::finished::FinishedIo;
use super::kind::Kind;
use super::seen::Stacked;
use super::value::{Unit, Value};

/// Conditions. An I/O is selected if it meets all of them; without conditions, all I/Os are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicates(Vec<Predicate>);

/// A condition on one fact, such as `latency>=10ms`. An I/O without that fact never meets the
/// condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    dimension: Dimension,
    operator: Operator,
    /// The value as the user wrote it.
    text: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    /// The name matches the text, which is a glob.
    Name,
    Number(RangeInclusive<u64>),
}

/// The comparison of a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Predicates {
    /// Whether an I/O meets all conditions.
    pub fn select(&self, io: &FinishedIo) -> bool {
        self.0.iter().all(|predicate| predicate.selects(io))
    }

    /// Whether an I/O meets the conditions on names.
    pub(crate) fn select_names(&self, io: &FinishedIo) -> bool {
        self.meets(io, |test| *test == Test::Name)
    }

    /// Whether an I/O meets the conditions on numbers.
    pub(crate) fn select_numbers(&self, io: &FinishedIo) -> bool {
        self.meets(io, |test| *test != Test::Name)
    }

    fn meets(&self, io: &FinishedIo, is_asked: impl Fn(&Test) -> bool) -> bool {
        let mut asked = self.0.iter().filter(|predicate| is_asked(&predicate.test));
        asked.all(|predicate| predicate.selects(io))
    }

    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These conditions, and more conditions.
    pub fn and(mut self, more: Predicates) -> Predicates {
        self.0.extend(more.0);
        self
    }

    /// The times at the device that all conditions on `latency` allow.
    pub fn latencies(&self) -> RangeInclusive<u64> {
        let ranges = self.0.iter().filter_map(Predicate::latencies);
        ranges.fold(0..=u64::MAX, |all, own| {
            *all.start().max(own.start())..=*all.end().min(own.end())
        })
    }

    /// The dimensions of all conditions except those that [`Predicates::latencies`] covers.
    pub(crate) fn beside_latencies(&self) -> impl Iterator<Item = Dimension> {
        let others = self.0.iter().filter(|one| one.latencies().is_none());
        others.map(|predicate| predicate.dimension)
    }

    /// Whether there are conditions on a dimension, all of which ask only that an I/O has a value.
    pub fn ask_for_any(&self, dimension: Dimension) -> bool {
        let mut own = self.0.iter().filter(|one| one.dimension == dimension);
        let any = Predicate::any(dimension);
        own.clone().next().is_some() && own.all(|one| *one == any)
    }

    /// The conditions on dimensions other than this one.
    pub fn beside(&self, dimension: Dimension) -> Predicates {
        let others = self.0.iter().filter(|one| one.dimension != dimension);
        Predicates(others.cloned().collect())
    }

    /// Adds a condition.
    pub fn push(&mut self, predicate: Predicate) {
        self.0.push(predicate);
    }

    /// The dimensions of the conditions.
    pub fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        self.0.iter().map(|predicate| predicate.dimension)
    }

    /// Whether the conditions name a device. A glob, and a condition that excludes devices, name none.
    pub fn names_a_device(&self) -> bool {
        self.0.iter().any(|predicate| {
            predicate.dimension == Dimension::Device
                && predicate.operator == Operator::Equal
                && !predicate.text.contains(['*', '?', '['])
        })
    }

    /// If the user has named devices, a sum leaves none of them out.
    pub fn name_devices(&self, left_out: &mut Vec<Stacked>) {
        if self.names_a_device() {
            left_out.clear();
        }
    }

    /// The conditions in English: `op write and latency at least 10ms`.
    pub fn phrase(&self) -> String {
        let phrases: Vec<String> = self.0.iter().map(Predicate::phrase).collect();
        phrases.join(" and ")
    }
}

impl FromStr for Predicates {
    type Err = ParseError;

    /// Parses conditions with commas between them: `op=write,latency>=10ms`. A comma in a name has a
    /// backslash before it.
    fn from_str(text: &str) -> Result<Predicates, ParseError> {
        let mut pieces = vec![String::new()];
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let piece = pieces.last_mut();
            match (letter, letters.as_str().starts_with(',')) {
                (',', _) => pieces.push(String::new()),
                ('\\', true) => piece
                    .into_iter()
                    .for_each(|piece| piece.extend(letters.next())),
                (letter, _) => piece.into_iter().for_each(|piece| piece.push(letter)),
            }
        }
        let parsed: Result<Vec<Predicate>, ParseError> =
            pieces
                .iter()
                .enumerate()
                .map(|(at, piece)| {
                    let parsed = piece.parse();
                    let is_rest = at > 0 && !piece.contains(['=', '<', '>']);
                    parsed.map_err(|error: ParseError| if is_rest {
ParseError::new(format!(
                        "{error}; if the comma before '{piece}' belongs to a name, write '\\,'"
                    ))
} else {
error
})
                })
                .collect();
        parsed.map(Predicates)
    }
}

impl fmt::Display for Predicates {
    /// Writes the conditions in the form that they have in the name of a statistic:
    /// `[op=write][latency>=10ms]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|predicate| write!(f, "[{predicate}]"))
    }
}

impl Predicate {
    /// The condition that an I/O has any name at all in this dimension.
    pub(crate) fn any(dimension: Dimension) -> Predicate {
        Predicate {
            dimension,
            operator: Operator::Equal,
            text: "*".to_owned(),
            test: Test::Name,
        }
    }

    /// The times at the device that the condition allows, if it is a condition on `latency`.
    fn latencies(&self) -> Option<RangeInclusive<u64>> {
        match &self.test {
            Test::Number(range)
                if self.dimension == Dimension::Latency && self.operator != Operator::NotEqual =>
            {
                Some(range.clone())
            }
            _ => None,
        }
    }

    fn selects(&self, io: &FinishedIo) -> bool {
        let is_like = match (self.dimension.of(io), &self.test) {
            (Some(Value::Name(name)), Test::Name) => {
                self.names(name) || self.dimension == Dimension::Op && self.names_alias(io.kind)
            }
            (Some(Value::Number(number)), Test::Number(range)) => range.contains(&number),
            _ => return false,
        };
        is_like != (self.operator == Operator::NotEqual)
    }

    fn names(&self, name: &str) -> bool {
        glob_matches(self.text.as_bytes(), name.as_bytes())
    }

    /// Whether a condition on flushes selects this I/O although it is a sync call. As in rules, sync calls
    /// count as flushes.
    fn names_alias(&self, kind: Kind) -> bool {
        kind.is_any(&[Op::Sync]) && self.names(Op::Flush.name())
    }

    fn phrase(&self) -> String {
        let (word, text) = (self.dimension.word(), &self.text);
        match (self.operator, text.split_once("..")) {
            (Operator::NotEqual, _) => format!("{word} other than {text}"),
            (Operator::Equal, Some((from, ""))) => format!("{word} at least {from}"),
            (Operator::Equal, Some(("", to))) => format!("{word} below {to}"),
            (Operator::Equal, Some((from, to))) => format!("{word} from {from} to below {to}"),
            (Operator::Equal, None) => format!("{word} {text}"),
            (Operator::AtLeast, _) => format!("{word} at least {text}"),
            (Operator::AtMost, _) => format!("{word} at most {text}"),
            (Operator::Above, _) => format!("{word} above {text}"),
            (Operator::Below, _) => format!("{word} below {text}"),
        }
    }
}

impl FromStr for Predicate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Predicate, ParseError> {
        let refuse = |why: String| ParseError::new(format!("'{text}': {why}"));
        let (word, operator, value) = split(text).ok_or_else(|| {
            refuse("write a dimension, a comparison and a value, such as latency>=10ms".to_owned())
        })?;
        let dimension = Dimension::parse(word.trim()).map_err(|error| refuse(error.to_string()))?;
        let value = value.trim();
        if value.is_empty() {
            return Err(refuse(format!("the value is missing: {word}{operator}…")));
        }
        let test = test(dimension, operator, value).map_err(|error| refuse(error.to_string()))?;
        Ok(Predicate {
            dimension,
            operator,
            text: value.to_owned(),
            test,
        })
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, operator, text) = (self.dimension.word(), self.operator, &self.text);
        write!(f, "{word}{operator}{text}")
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = OPERATORS.iter();
        let word = words.find(|(_, operator)| operator == self);
        f.write_str(word.map_or("=", |(word, _)| word))
    }
}

/// The operators. Each comes before every operator that is a prefix of it.
const OPERATORS: [(&str, Operator); 6] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("!=", Operator::NotEqual),
    ("=", Operator::Equal),
    (">", Operator::Above),
    ("<", Operator::Below),
];

/// Splits at the first operator. The value may itself contain operators: `client=uid=0 pid=7`.
fn split(text: &str) -> Option<(&str, Operator, &str)> {
    let at = text.find(['=', '<', '>', '!'])?;
    let (word, rest) = text.split_at(at);
    let mut operators = OPERATORS.iter();
    let (sign, operator) = operators.find(|(sign, _)| rest.starts_with(sign))?;
    Some((word, *operator, &rest[sign.len()..]))
}

fn test(dimension: Dimension, operator: Operator, value: &str) -> Result<Test, ParseError> {
    match dimension.unit() {
        Unit::Name => name_test(dimension, operator, value),
        unit => number_test(unit, operator, value).map(Test::Number),
    }
}

fn name_test(dimension: Dimension, operator: Operator, value: &str) -> Result<Test, ParseError> {
    if !matches!(operator, Operator::Equal | Operator::NotEqual) {
        return Err(ParseError::new("names have no order: use = or !="));
    }
    if value.starts_with(['=', '<', '>']) {
        return Err(ParseError::new("one comparison is enough: use = or !="));
    }
    let words = match dimension {
        Dimension::Op => Kind::words(),
        Dimension::Fua => vec!["yes", "no"],
        Dimension::Fact(fact) => fact.names(),
        _ => return Ok(Test::Name),
    };
    let matches = |word: &&str| glob_matches(value.as_bytes(), word.as_bytes());
    if words.iter().any(matches) {
        Ok(Test::Name)
    } else {
        Err(ParseError::new(format!(
            "write one of {}",
            words.join(", ")
        )))
    }
}

fn number_test(
    unit: Unit,
    operator: Operator,
    value: &str,
) -> Result<RangeInclusive<u64>, ParseError> {
    let bounds = match (operator, value.split_once("..")) {
        (Operator::Equal | Operator::NotEqual, Some((from, to))) => return range(unit, from, to),
        (_, Some(_)) => return Err(ParseError::new("a range needs = or !=")),
        (_, None) => number(unit, value)?,
    };
    let range = match operator {
        Operator::Equal | Operator::NotEqual => bounds..=bounds,
        Operator::AtLeast => bounds..=u64::MAX,
        Operator::AtMost => 0..=bounds,
        Operator::Above => after(bounds)?..=u64::MAX,
        Operator::Below => 0..=before(bounds)?,
    };
    Ok(range)
}

/// The numbers from `from` up to but not including `to`. If `from` is empty, there is no lower bound; if `to`
/// is empty, there is no upper bound.
fn range(unit: Unit, from: &str, to: &str) -> Result<RangeInclusive<u64>, ParseError> {
    let least = match from {
        "" => 0,
        from => number(unit, from)?,
    };
    let most = match to {
        "" => u64::MAX,
        to => before(number(unit, to)?)?,
    };
    if least <= most {
        Ok(least..=most)
    } else {
        Err(ParseError::new(
            "the range is empty: its end must come after its beginning",
        ))
    }
}

fn before(number: u64) -> Result<u64, ParseError> {
    number
        .checked_sub(1)
        .ok_or_else(|| ParseError::new("nothing is below 0"))
}

fn after(number: u64) -> Result<u64, ParseError> {
    number
        .checked_add(1)
        .ok_or_else(|| ParseError::new("nothing is above this"))
}

fn number(unit: Unit, text: &str) -> Result<u64, ParseError> {
    match unit {
        Unit::Time => Ok(parse_duration(text)?.as_nanos()),
        Unit::Bytes => parse_size(text),
        Unit::Count | Unit::Name => text
            .parse()
            .map_err(|_| ParseError::new(format!("'{text}' is not a number: write 0, 1, 2, …"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Fact;
    use crate::layer::Layer;

    fn refusal(text: &str) -> String {
        match text.parse::<Predicates>() {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn conditions_have_their_words_back_and_their_english() {
        for (text, phrase) in [
            ("op=write", "op write"),
            ("client=uid=0 pid=7", "client uid=0 pid=7"),
            ("device!=vd*", "device other than vd*"),
            ("latency>=10ms", "latency at least 10ms"),
            ("size<=64K", "size at most 64K"),
            ("depth>4", "depth above 4"),
            ("offset<1G", "offset below 1G"),
            ("size=4K..64K", "size from 4K to below 64K"),
            ("offset=1G..", "offset at least 1G"),
            ("offset=..1G", "offset below 1G"),
        ] {
            let parsed: Predicate = text.parse().expect(text);
            assert_eq!(
                (parsed.to_string(), parsed.phrase()),
                (text.to_owned(), phrase.to_owned())
            );
        }
        let both: Predicates = "op=read, size=4K".parse().expect("two");
        assert_eq!(both.to_string(), "[op=read][size=4K]");
        assert_eq!(both.phrase(), "op read and size 4K");
    }

    #[test]
    fn a_condition_for_any_value_is_told_from_others() {
        let of = |text: &str| text.parse::<Predicates>().expect(text);
        assert!(of("error=*,op=read").ask_for_any(Dimension::Error));
        for other in ["op=read", "error=EIO", "error!=*", "error=*,error!=EIO"] {
            assert!(!of(other).ask_for_any(Dimension::Error), "{other}");
        }
        let beside = of("error=*,op=read,error=EIO").beside(Dimension::Error);
        assert_eq!(beside, of("op=read"));
    }

    #[test]
    fn a_sync_call_is_a_flush_too() {
        let selects = |text: &str, op| {
            let io = FinishedIo::bare(Layer::Disk, "wal".into(), Kind::Op(op));
            text.parse::<Predicates>().expect(text).select(&io)
        };
        for (text, sync, flush) in [
            ("op=flush", true, true),
            ("op=fl*", true, true),
            ("op=sync", true, false),
            ("op!=flush", false, false),
            ("op!=sync", false, true),
            ("op=write", false, false),
        ] {
            let selected = (selects(text, Op::Sync), selects(text, Op::Flush));
            assert_eq!(selected, (sync, flush), "{text}");
        }
    }

    #[test]
    fn mistakes_name_the_words_and_the_remedy() {
        for (text, message) in [
            (
                "",
                "'': write a dimension, a comparison and a value, such as latency>=10ms",
            ),
            (
                "op",
                "'op': write a dimension, a comparison and a value, such as latency>=10ms",
            ),
            ("op=", "'op=': the value is missing: op=…"),
            (
                "latancy>=1ms",
                "'latancy>=1ms': there is no 'latancy': did you mean 'latency'?",
            ),
            ("op>write", "'op>write': names have no order: use = or !="),
            (
                "size=8K..4K",
                "'size=8K..4K': the range is empty: its end must come after its beginning",
            ),
            ("size>4K..8K", "'size>4K..8K': a range needs = or !="),
            ("depth<0", "'depth<0': nothing is below 0"),
            (
                "depth=x",
                "'depth=x': 'x' is not a number: write 0, 1, 2, …",
            ),
        ] {
            assert_eq!(refusal(text), message);
        }
        assert!(
            refusal("latency>=10").contains("10ms"),
            "{}",
            refusal("latency>=10")
        );
        assert!(refusal("size=4KB").contains("KB"));
        assert!(refusal("txg=closed").ends_with("write one of syncing, open"));
        let classes = Fact::Class.names().join(", ");
        assert!(refusal("class=sync").ends_with(&format!("write one of {classes}")));
    }
}
