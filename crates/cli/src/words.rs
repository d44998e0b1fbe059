//! Parsers of options whose value is one of a few words.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use dashpot_api::KeepWord;
use dashpot_observe::{Dimension, Layer};
use dashpot_rules::zinject::Compat;

/// Parses a layer.
pub fn layer() -> impl TypedValueParser<Value = Layer> {
    PossibleValuesParser::new(Layer::ALL.map(Layer::word)).map(|word| Layer::of_word(&word))
}

/// The layers in the order in which the user names them, each once.
pub fn each_once(named: &[Layer]) -> Vec<Layer> {
    let mut layers = Vec::new();
    for layer in named {
        if !layers.contains(layer) {
            layers.push(*layer);
        }
    }
    layers
}

/// Parses a dimension of I/Os.
pub fn dimension() -> impl TypedValueParser<Value = Dimension> {
    PossibleValuesParser::new(Dimension::ALL.map(Dimension::word))
        .try_map(|word| Dimension::parse(&word))
}

/// Parses a release of OpenZFS.
pub(crate) fn compat() -> impl TypedValueParser<Value = Compat> {
    PossibleValuesParser::new(["2.3", "2.4"]).map(|release| match release.as_str() {
        "2.3" => Compat::V2_3,
        _ => Compat::V2_4,
    })
}

/// Parses the choice of the writes that survive a power cut.
pub(crate) fn keep() -> impl TypedValueParser<Value = KeepWord> {
    PossibleValuesParser::new(["none", "all", "random"]).map(|word| match word.as_str() {
        "none" => KeepWord::None,
        "all" => KeepWord::All,
        _ => KeepWord::Random,
    })
}
