//! The system that the program was built for, under the names of Rust, PyPI and npm.

use super::elf;
use anyhow::{Context as _, bail};
use palisade_wasip2::command::{run, scrubbed};

/// An operating system and a processor for which a release has a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Platform {
    /// Rust's name, such as `x86_64-unknown-linux-gnu`.
    pub(super) triple: &'static str,
    /// The processor in the tag of a wheel.
    processor: &'static str,
    /// Node's names, `process.platform` and `process.arch`.
    pub(super) npm_os: &'static str,
    pub(super) npm_cpu: &'static str,
}

/// All of them. The launcher for npm knows the same ones.
pub(super) const PLATFORMS: [Platform; 4] = [
    platform("x86_64-unknown-linux-gnu", "x86_64", "linux", "x64"),
    platform("aarch64-unknown-linux-gnu", "aarch64", "linux", "arm64"),
    platform("x86_64-apple-darwin", "x86_64", "darwin", "x64"),
    platform("aarch64-apple-darwin", "arm64", "darwin", "arm64"),
];

const fn platform(
    triple: &'static str,
    processor: &'static str,
    npm_os: &'static str,
    npm_cpu: &'static str,
) -> Platform {
    Platform { triple, processor, npm_os, npm_cpu }
}

impl Platform {
    /// Returns the system of this compiler, whose builds run here.
    pub(super) fn here() -> anyhow::Result<Self> {
        let said = run(scrubbed("rustc").arg("-vV"), "asking rustc for its system")?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc does not name its system")?;
        let known = PLATFORMS.into_iter().find(|platform| platform.triple == host);
        let names: Vec<&str> = PLATFORMS.iter().map(|platform| platform.triple).collect();
        known.with_context(|| {
            format!("there is no release for {host}, only for {}", names.join(", "))
        })
    }

    /// Returns the tag of a wheel with this program: the oldest system that it runs on.
    pub(super) fn wheel_tag(self, program: &[u8]) -> anyhow::Result<String> {
        let processor = self.processor;
        if self.npm_os == "linux" {
            let glibc = elf::Program::parse(program)?.oldest_glibc()?;
            return Ok(format!("manylinux_{glibc}_{processor}"));
        }
        let mut rustc = scrubbed("rustc");
        rustc.args(["--print", "deployment-target", "--target", self.triple]);
        let said = run(&mut rustc, "asking rustc for the oldest macOS")?;
        Ok(format!("macosx_{}_{processor}", oldest_macos(&said)?))
    }
}

/// Returns a version of macOS as in the tag of a wheel, from a line such as
/// `MACOSX_DEPLOYMENT_TARGET=11.0`.
fn oldest_macos(said: &str) -> anyhow::Result<String> {
    let version = said.trim().rsplit('=').next().unwrap_or_default();
    match version.split_once('.') {
        Some(("10", minor)) => Ok(format!("10_{minor}")),
        // From macOS 11 on, a tag names the major version alone.
        Some((major, _)) if major.parse::<u32>().is_ok() => Ok(format!("{major}_0")),
        _ => bail!("`{said}` names no version of macOS"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_macos_is_a_tag() {
        let tag = |said| oldest_macos(said).ok();
        assert_eq!(tag("MACOSX_DEPLOYMENT_TARGET=11.0\n").as_deref(), Some("11_0"));
        assert_eq!(tag("MACOSX_DEPLOYMENT_TARGET=10.12\n").as_deref(), Some("10_12"));
        assert_eq!(tag("MACOSX_DEPLOYMENT_TARGET=13.3").as_deref(), Some("13_0"));
        assert_eq!(tag("nothing"), None);
    }
}
