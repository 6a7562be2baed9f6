//! The descriptions that the WIT of a component has for its functions and types.

mod parameters;
mod walk;

use palisade::sandbox::Docs;
use palisade::tool::text::visible;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use wit_parser::{Resolve, SourceMap, UnresolvedPackage, UnresolvedPackageGroup, World};

/// The most files of WIT that are read. WASI has on the order of fifty.
const MAX_FILES: usize = 500;
/// The size of all files together, in bytes. All of WASI has about 200 KiB.
const MAX_BYTES: u64 = 1 << 20;
/// The stack of the thread that parses, in bytes. The parser follows a chain of `use` by recursion,
/// and files of the greatest size hold a chain of some 30,000.
const STACK: usize = 512 << 20;
/// The most worlds, includes and renamed items, multiplied by the interfaces, worlds and items of worlds that
/// they may have together. Each world may include all others, and so multiply them in time and
/// memory, and each renamed item is looked for among all: this many take less than a second. All of
/// WASI has some thousand.
const MAX_COMBINED: usize = 1_000_000;
/// The directory of the packages that a package depends on.
const DEPS: &str = "deps";

/// The WIT of a component cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitError {
    /// A file or a directory cannot be read.
    #[error("cannot read `{}`: {source}", visible(&path.display().to_string()))]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The directory has no WIT.
    #[error("there is no `.wit` file in `{}`", visible(&path.display().to_string()))]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The WIT is not valid.
    #[error("the WIT in `{}` is not valid: {reason}", visible(&path.display().to_string()))]
    Invalid {
        /// The directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Reads the comments of a package of WIT: a directory with its files, and with the packages that
/// it depends on below `deps`, as the tools for WIT lay it out; or a single file.
///
/// # Errors
///
/// [`WitError`] if the package cannot be read, is not valid, or lacks a package that it depends on.
pub fn docs(path: &Path) -> Result<Docs, WitError> {
    let failed = |source| WitError::Io { path: path.to_owned(), source };
    thread::scope(|scope| {
        let parser = thread::Builder::new().name("palisade-wit".to_owned()).stack_size(STACK);
        let parsed = parser.spawn_scoped(scope, || parsed_docs(path)).map_err(failed)?;
        parsed.join().unwrap_or_else(|_| Err(failed(io::Error::other("its parser panicked"))))
    })
}

fn parsed_docs(path: &Path) -> Result<Docs, WitError> {
    let mut reader = Reader { files: 0, bytes: 0, worlds: 0, members: 0 };
    let main = reader.package(path)?;
    let dependencies = reader.dependencies(&path.join(DEPS))?;
    let mut resolve = Resolve::default();
    resolve.push_groups(main, dependencies).map_err(|error| invalid(path, &error))?;
    walk::docs(&resolve).map_err(|error| invalid(path, &error))
}

fn invalid(path: &Path, error: &impl ToString) -> WitError {
    WitError::Invalid { path: path.to_owned(), reason: visible(&error.to_string()) }
}

/// Reads files up to a number and a size.
struct Reader {
    files: usize,
    /// The bytes that were read.
    bytes: u64,
    /// The parsed worlds, their includes, and the items that these rename.
    worlds: usize,
    /// The parsed interfaces, worlds and items of worlds.
    members: usize,
}

impl Reader {
    /// Parses the files of one package.
    fn package(&mut self, path: &Path) -> Result<UnresolvedPackageGroup, WitError> {
        let files = if path.is_dir() { wit_files(path)? } else { vec![path.to_owned()] };
        if files.is_empty() {
            return Err(WitError::Empty { path: path.to_owned() });
        }
        let mut sources = SourceMap::new();
        for file in files {
            let text = self.read(&file)?;
            if parameters::are_too_many(&text) {
                let most = parameters::MOST;
                let reason = format!("a function has more than {most} parameters");
                return Err(WitError::Invalid { path: file, reason });
            }
            sources.push_str(&file.display().to_string(), text);
        }
        let group = sources.parse().map_err(|(_, error)| invalid(path, &error))?;
        group.nested.iter().chain([&group.main]).for_each(|package| self.count(package));
        if self.worlds.saturating_mul(self.members) > MAX_COMBINED {
            let reason = format!(
                "its {} worlds, includes and renamed items could combine {} interfaces and items, and the product may be {MAX_COMBINED} at most",
                self.worlds, self.members
            );
            return Err(WitError::Invalid { path: path.to_owned(), reason });
        }
        Ok(group)
    }

    fn count(&mut self, package: &UnresolvedPackage) {
        let items = |world: &World| world.imports.len() + world.exports.len();
        let items: usize = package.worlds.iter().map(|(_, world)| items(world)).sum();
        let includes = package.worlds.iter().flat_map(|(_, world)| &world.includes);
        self.worlds += package.worlds.len();
        self.worlds += includes.map(|include| 1 + include.names.len()).sum::<usize>();
        self.members += package.worlds.len() + package.interfaces.len() + items;
    }

    /// Parses the packages below `deps`: each a directory, or a single file.
    fn dependencies(&mut self, deps: &Path) -> Result<Vec<UnresolvedPackageGroup>, WitError> {
        if !deps.is_dir() {
            return Ok(Vec::new());
        }
        let is_package = |path: &PathBuf| path.is_dir() || is_wit(path);
        let packages = entries(deps)?.into_iter().filter(is_package);
        packages.map(|package| self.package(&package)).collect()
    }

    fn read(&mut self, path: &Path) -> Result<String, WitError> {
        let failed = |source| WitError::Io { path: path.to_owned(), source };
        self.files += 1;
        if self.files > MAX_FILES {
            let most = format!("there are more than {MAX_FILES} files");
            return Err(failed(io::Error::other(most)));
        }
        let file = palisade::internal::open_regular(path, palisade::workspace::LastLink::Follow)
            .map_err(failed)?;
        let mut text = String::new();
        let room = MAX_BYTES - self.bytes;
        file.take(room + 1).read_to_string(&mut text).map_err(failed)?;
        match text.len() as u64 {
            bytes if bytes <= room => self.bytes += bytes,
            _ => return Err(failed(io::Error::other("all files together are larger than 1 MiB"))),
        }
        Ok(text)
    }
}

fn wit_files(directory: &Path) -> Result<Vec<PathBuf>, WitError> {
    Ok(entries(directory)?.into_iter().filter(|path| is_wit(path)).collect())
}

fn is_wit(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wit") && !path.is_dir()
}

/// Returns the entries of a directory, sorted.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, WitError> {
    let failed = |source| WitError::Io { path: directory.to_owned(), source };
    let entries = fs::read_dir(directory).map_err(failed)?.take(MAX_FILES + 1);
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]
    use super::*;

    /// Writes files below a new directory.
    fn package(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    const WORDS: &str = "package acme:text@1.2.0;
        interface words {
            use acme:base/types.{span};
            /// One word.
            record word { /** Its letters. */ text: string, at: list<span> }
            /// Counts.
            /// Quickly.
            count: func(words: list<word>, limit: option<u32>) -> result<list<span>, string>;
        }
        world all {
            export words;
            /// Answers.
            export ping: func();
            export inline: interface {
                /// Is inline.
                f: func();
            }
        }";

    const BASE: &str = "package acme:base;
        interface types {
            record span { /// The first byte.
                start: u32 }
        }";

    #[test]
    fn comments_of_functions_and_types_are_descriptions() {
        let directory = package(&[("words.wit", WORDS), ("deps/base/base.wit", BASE)]);
        let words = Some("acme:text/words@1.2.0");
        let expected = Docs::default()
            .with(words, "count", "Counts.\nQuickly.")
            .with_part(words, "count", "words[]", "One word.")
            .with_part(words, "count", "words[].text", "Its letters.")
            .with_part(words, "count", "words[].at[].start", "The first byte.")
            .with_part(words, "count", "[].start", "The first byte.")
            .with(None, "ping", "Answers.")
            .with(Some("inline"), "f", "Is inline.");
        assert_eq!(docs(directory.path()).unwrap(), expected);
        let one = package(&[("deps.wit", BASE)]);
        assert!(docs(&one.path().join("deps.wit")).unwrap().is_empty(), "it has no function");
    }

    #[test]
    fn worlds_that_multiply_each_other_are_refused() {
        let chain = |worlds: usize| {
            let world = |at: usize| {
                let before = at.checked_sub(1).map(|before| format!("include w{before};"));
                format!("world w{at} {{ {} import x{at}: func(); }}\n", before.unwrap_or_default())
            };
            let worlds: String = (0..worlds).map(world).collect();
            package(&[("all.wit", &format!("package a:b;\n{worlds}"))])
        };
        assert!(docs(chain(500).path()).is_ok());
        let refused = docs(chain(1_000).path()).unwrap_err().to_string();
        assert!(refused.contains("its 1999 worlds, includes and renamed items could combine 2000"));
    }

    #[test]
    fn includes_of_one_world_are_bounded() {
        let including = |times: usize| {
            let interfaces: String = (0..500).map(|at| format!("interface i{at} {{}} ")).collect();
            let imports: String = (0..500).map(|at| format!("import i{at}; ")).collect();
            let includes = "include v; ".repeat(times);
            let worlds = format!("world v {{ {imports} }} world w {{ {includes} }}");
            package(&[("all.wit", &format!("package a:b; {interfaces} {worlds}"))])
        };
        assert!(docs(including(900).path()).is_ok());
        assert!(docs(including(2_000).path()).is_err());
    }

    #[test]
    fn items_that_are_renamed_are_bounded() {
        let renaming = |items: usize| {
            let all = |item: fn(usize) -> String| (0..items).map(item).collect::<String>();
            let (imports, names) =
                (all(|at| format!("import a{at}: func();")), all(|at| format!("a{at} as b{at},")));
            let text = format!(
                "package a:b; world w {{ {imports} }} world v {{ include w with {{ {names} }} }}"
            );
            package(&[("all.wit", &text)])
        };
        assert!(docs(renaming(900).path()).is_ok());
        let refused = docs(renaming(2_000).path()).unwrap_err().to_string();
        assert!(
            refused.contains("its 2003 worlds, includes and renamed items could combine"),
            "{refused}"
        );
    }

    #[test]
    fn unusable_wit_is_refused_with_its_place() {
        let cases: [(&[(&str, &str)], &str); 5] = [
            (&[], "no `.wit` file"),
            (&[("a.wit", "package a:b; interface")], "not valid"),
            (&[("words.wit", WORDS)], "acme:base"),
            (&[("a.wit", &" ".repeat((1 << 20) + 1))], "larger than 1 MiB"),
            (&[("a.wit", BASE), ("deps/c.wit", &" ".repeat(1 << 20))], "larger than 1 MiB"),
        ];
        for (files, reason) in cases {
            let directory = package(files);
            let refused = docs(directory.path()).unwrap_err().to_string();
            let place = directory.path().display().to_string();
            assert!(refused.contains(reason) && refused.contains(&place), "{refused}");
        }
    }

    #[test]
    fn longest_chain_of_uses_ends() {
        let mut text = "package a:b; interface i0 { type t = u8; }".to_owned();
        for at in 1.. {
            let next = format!(" interface i{at} {{ use i{}.{{t}}; }}", at - 1);
            if (text.len() + next.len()) as u64 > MAX_BYTES {
                break;
            }
            text += &next;
        }
        let directory = package(&[("a.wit", &text)]);
        let _ = docs(directory.path());
    }

    #[test]
    fn functions_and_types_that_multiply_each_other_are_refused() {
        let written = |functions: usize| {
            let fields: String = (0..500).map(|at| format!("/** about it */ a{at}: u8,")).collect();
            let functions: String =
                (0..functions).map(|at| format!("g{at}: func(r: r);")).collect();
            let interface = format!("interface i {{ record r {{ {fields} }} {functions} }}");
            package(&[("a.wit", &format!("package a:b; {interface}"))])
        };
        assert!(docs(written(1_000).path()).is_ok());
        let refused = docs(written(20_000).path()).unwrap_err().to_string();
        assert!(refused.contains("exceed 32 MiB"), "{refused}");
    }

    #[test]
    fn types_that_multiply_end() {
        let mut text = "package a:b; interface i { record t0 { /// Deep.\n x: u8 }".to_owned();
        for level in 1..=20 {
            let inner = level - 1;
            text += &format!("record t{level} {{ a: t{inner}, b: t{inner} }}");
        }
        let directory = package(&[("a.wit", &format!("{text} f: func(t: t20); }}"))]);
        assert!(docs(directory.path()).is_ok());
    }
}
