//! Distinguishes unreachable packages from a list that cannot be installed, which is an error of
//! the repository.

use anyhow::bail;

/// Signs of an unreachable registry in the output of a program, with the messages for both cases.
pub(crate) struct Reach {
    pub(crate) signs: &'static [&'static str],
    pub(crate) out_of_reach: &'static str,
    pub(crate) no_good: &'static str,
}

impl Reach {
    /// Returns the reason why the packages are not reachable.
    ///
    /// # Errors
    ///
    /// If the output has another reason.
    pub(crate) fn reason(&self, output: &str) -> anyhow::Result<String> {
        let is_sign = |line: &&str| self.signs.iter().any(|sign| line.contains(sign));
        match output.lines().rfind(is_sign) {
            Some(line) => Ok(format!("{}: {}", self.out_of_reach, line.trim())),
            None => bail!("{}:\n{output}", self.no_good),
        }
    }
}
