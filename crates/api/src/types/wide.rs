//! Sums that may need more than 64 bits. They are decimal text, because JSON readers round large
//! numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

/// An unsigned integer of 128 bits, as decimal text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, example = "340282366920938463463374607431768211455")]
pub struct Wide(pub u128);

impl Serialize for Wide {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Wide {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Wide, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Wide).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Wide;

    #[test]
    fn travels_whole() {
        let wide = Wide(u128::MAX - 1);
        let text = serde_json::to_string(&wide).unwrap();
        assert_eq!(text, "\"340282366920938463463374607431768211454\"");
        assert_eq!(serde_json::from_str::<Wide>(&text).unwrap(), wide);
    }
}
