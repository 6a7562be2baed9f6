//! Random secrets as text.

use std::io;

/// Returns random bytes as hexadecimal digits. Fails if the system provides none.
pub(super) fn random<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
