//! The scenarios that dashpot comes with.

/// A scenario that dashpot comes with: a file that users can copy.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        [$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../../scenarios/", $name, ".toml")),
        }),*]
    };
}

/// All of them, in the order in which they are listed.
pub static BUILT_IN: [BuiltIn; 8] = built_in![
    "fis-sustained",
    "fis-increasing",
    "fis-intermittent",
    "fis-decreasing",
    "brown-out",
    "fail-slow",
    "firmware-stall",
    "dying-disk",
];

impl BuiltIn {
    /// The scenario with this name.
    pub fn find(name: &str) -> Option<BuiltIn> {
        BUILT_IN.iter().find(|known| known.name == name).copied()
    }
}
