//! Packages that cannot be reached, told from a list that is no good: only the last is the repository's fault.

use anyhow::bail;

/// What a program says where it cannot reach its packages, and what to say of it then, or else.
pub(crate) struct Reach {
    pub(crate) signs: &'static [&'static str],
    pub(crate) out_of_reach: &'static str,
    pub(crate) no_good: &'static str,
}

impl Reach {
    /// Why its packages cannot be had, by what the program says.
    pub(crate) fn told(&self, said: &str) -> anyhow::Result<String> {
        let is_sign = |line: &&str| self.signs.iter().any(|sign| line.contains(sign));
        match said.lines().rfind(is_sign) {
            Some(line) => Ok(format!("{}: {}", self.out_of_reach, line.trim())),
            None => bail!("{}:\n{said}", self.no_good),
        }
    }
}
