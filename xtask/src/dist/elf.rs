//! The systems that a Linux program runs on, from the program itself: the newest version of glibc
//! whose symbols it uses, and the libraries that it loads.

use anyhow::{Context as _, bail, ensure};
use object::Endianness;
use object::elf::{DT_NEEDED, SHT_SYMTAB};
use object::read::elf::ElfFile64;
use std::fmt;

/// The libraries that each Linux distribution with glibc has (PEP 600 and its predecessors).
const EVERYWHERE: [&str; 8] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// The prefix of the version of a symbol of glibc.
const GLIBC: &str = "GLIBC_";

/// A version of glibc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Glibc {
    major: u32,
    minor: u32,
}

impl Glibc {
    /// Parses the version of a symbol, such as `GLIBC_2.34` or `GLIBC_2.2.5`.
    fn of_symbol(version: &str) -> Option<Self> {
        let mut numbers = version.strip_prefix(GLIBC)?.split('.').map(str::parse);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self { major, minor })
    }
}

impl fmt::Display for Glibc {
    /// Writes the version as in the tag of a wheel.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}_{}", self.major, self.minor)
    }
}

/// A parsed program.
pub(super) struct Program<'data> {
    file: ElfFile64<'data, Endianness>,
}

impl<'data> Program<'data> {
    pub(super) fn parse(bytes: &'data [u8]) -> anyhow::Result<Self> {
        let file = ElfFile64::parse(bytes).context("the program is no ELF file of 64 bits")?;
        Ok(Self { file })
    }

    /// Returns the oldest glibc that has every symbol which the program uses.
    ///
    /// # Errors
    ///
    /// If the program uses no glibc, or loads a library that not every distribution has.
    pub(super) fn oldest_glibc(&self) -> anyhow::Result<Glibc> {
        for library in self.libraries()? {
            ensure!(
                EVERYWHERE.contains(&library.as_str()),
                "the program loads `{library}`, which not every system has: link it statically"
            );
        }
        let versions = self.symbol_versions()?;
        // Such as `GLIBC_PRIVATE`, or `GLIBC_ABI_DT_RELR` for a newer dynamic linker.
        let unknown = versions
            .iter()
            .find(|version| version.starts_with(GLIBC) && Glibc::of_symbol(version).is_none());
        if let Some(unknown) = unknown {
            bail!("the program uses `{unknown}`, which is in no numbered version of glibc");
        }
        let versions = versions.iter().filter_map(|version| Glibc::of_symbol(version));
        versions.max().context("the program uses no glibc: there is no tag for its wheel")
    }

    /// Returns true if the program has no symbols for debuggers.
    pub(super) fn is_stripped(&self) -> bool {
        let endian = self.file.endian();
        let mut sections = self.file.elf_section_table().iter();
        !sections.any(|section| section.sh_type.get(endian) == SHT_SYMTAB)
    }

    fn libraries(&self) -> anyhow::Result<Vec<String>> {
        let table = self.file.elf_dynamic_table().context("the dynamic section")?;
        let needed = table.iter().filter(|entry| entry.tag == DT_NEEDED);
        let name = |entry| Ok(String::from_utf8_lossy(table.string(entry)?).into_owned());
        needed.map(name).collect()
    }

    fn symbol_versions(&self) -> anyhow::Result<Vec<String>> {
        let (endian, data) = (self.file.endian(), self.file.data());
        let sections = self.file.elf_section_table();
        let Some((mut libraries, link)) = sections.gnu_verneed(endian, data)? else {
            return Ok(Vec::new());
        };
        let names = sections.strings(endian, data, link)?;
        let mut versions = Vec::new();
        while let Some((_, mut needed)) = libraries.next()? {
            while let Some(version) = needed.next()? {
                versions.push(String::from_utf8_lossy(version.name(endian, names)?).into_owned());
            }
        }
        Ok(versions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_symbols_are_ordered_as_numbers() {
        let version = |text| Glibc::of_symbol(text).expect("a version");
        assert!(version("GLIBC_2.4") < version("GLIBC_2.34"));
        assert_eq!(version("GLIBC_2.2.5").to_string(), "2_2");
        for other in ["GLIBC_PRIVATE", "GCC_3.0", "GLIBC_2", "GLIBC_ABI_DT_RELR"] {
            assert_eq!(Glibc::of_symbol(other), None, "{other}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_program_runs_on_this_system() {
        let path = std::env::current_exe().expect("the path of this program");
        let bytes = std::fs::read(path).expect("this program");
        let program = Program::parse(&bytes).expect("an ELF file");
        let oldest = program.oldest_glibc().expect("glibc");
        assert!(oldest >= Glibc { major: 2, minor: 2 }, "{oldest}");
        assert!(!program.is_stripped());
    }
}
