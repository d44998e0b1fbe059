//! Random numbers and words from the kernel: seeds, tokens of the API, and names that no other process can guess.

/// A random number. Fails if the kernel provides no randomness.
pub fn random_number() -> anyhow::Result<u64> {
    getrandom::u64().map_err(no_randomness)
}

/// A random word of `letters` hexadecimal digits. Fails if the kernel provides no randomness.
pub fn random_word(letters: usize) -> anyhow::Result<String> {
    let mut bytes = vec![0; letters.div_ceil(2)];
    getrandom::fill(&mut bytes).map_err(no_randomness)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hex[..letters].to_owned())
}

fn no_randomness(error: getrandom::Error) -> anyhow::Error {
    anyhow::anyhow!("no randomness from the kernel: {error}")
}
