//! Builds a project in C with clang and wasi-libc. The component is made in this process, so that
//! an author needs no program that makes one.

use super::toolchain::{ask, plain_name, run};
use super::{BuildError, Made, encode};
use crate::bounded;
use crate::trial::scratch;
use palisade::tool::text::visible;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the compiler and its libraries are installed.
const INSTALL: &str = "sudo apt install clang lld wasi-libc libclang-rt-dev-wasm32";
/// The directory of the sources.
const SOURCES: &str = "src";
/// The line of the source that defines the tools.
const IMPLEMENTATION: &str = "#define PALISADE_IMPLEMENTATION";
/// Maximum size of a source, in bytes.
const LARGEST: u64 = 64 << 20;
/// Maximum size of the flags together, in bytes: a command line takes about as much.
const LARGEST_FLAGS: u64 = 64 << 10;
const TARGET: &str = "--target=wasm32-wasi";
/// The flags that the project's own may replace. Small code is faster to load than fast code is to
/// run, and a small stack makes each call cheaper.
const FLAGS: [&str; 6] =
    [TARGET, "-mexec-model=reactor", "-Os", "-flto", "-Wl,--strip-all", "-Wl,-z,stack-size=131072"];

pub(super) fn build(directory: &Path) -> Result<Made, BuildError> {
    let sources = sources(directory)?;
    let name = name(directory, &sources)?;
    let flags = flags(directory)?;
    find_toolchain()?;
    let scratch = scratch().map_err(|error| BuildError::io("create", directory, error))?;
    let module = scratch.path().join("module.wasm");
    let mut clang = Command::new("clang");
    clang.args(FLAGS).args(flags).arg("-o").arg(&module).args(sources).current_dir(directory);
    run(&mut clang, "clang", INSTALL)?;
    let module = fs::read(&module).map_err(|source| BuildError::io("read", &module, source))?;
    let bytes = encode::component(module).map_err(|reason| BuildError::Component { reason })?;
    Ok(Made { name, bytes })
}

/// Returns the sources, relative to the project.
fn sources(directory: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let place = directory.join(SOURCES);
    let entries = fs::read_dir(&place).map_err(|error| BuildError::io("list", &place, error))?;
    let names = entries.flatten().map(|entry| Path::new(SOURCES).join(entry.file_name()));
    let mut sources: Vec<PathBuf> =
        names.filter(|path| path.extension() == Some(OsStr::new("c"))).collect();
    sources.sort();
    Ok(sources)
}

/// Returns the name of the plugin: that of the source that defines the tools.
fn name(directory: &Path, sources: &[PathBuf]) -> Result<String, BuildError> {
    let mut defining = Vec::new();
    for source in sources {
        let file = directory.join(source);
        let text =
            bounded::read(&file, LARGEST).map_err(|error| BuildError::io("read", &file, error))?;
        let text = String::from_utf8_lossy(&text);
        if text.lines().any(|line| line.starts_with(IMPLEMENTATION)) {
            defining.push(source);
        }
    }
    let shown = |path: &Path| visible(&path.display().to_string());
    let reason = match defining.as_slice() {
        [only] => {
            let stem = only.file_stem().unwrap_or_default().to_string_lossy();
            return plain_name(&stem).ok_or_else(|| BuildError::Manifest {
                reason: format!("`{}` is not the name of a plugin: letters, digits, `-`, `_` and `.` are accepted", shown(only)),
            });
        }
        [] => format!(
            "no source in `{}` defines the tools: exactly one has the line `{IMPLEMENTATION}` before it includes palisade.h, and its name is that of the plugin",
            shown(&directory.join(SOURCES))
        ),
        [first, second, ..] => format!(
            "`{}` and `{}` both have the line `{IMPLEMENTATION}`: exactly one source has it, and its name is that of the plugin",
            shown(first),
            shown(second)
        ),
    };
    Err(BuildError::Manifest { reason })
}

/// Returns the flags of the project: one in each line, as clangd reads them.
fn flags(directory: &Path) -> Result<Vec<String>, BuildError> {
    let file = directory.join("compile_flags.txt");
    let text = bounded::read_text(&file, LARGEST_FLAGS)
        .map_err(|error| BuildError::io("read", &file, error))?;
    let lines = text.lines().map(str::trim);
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Checks that clang has all that it needs, since its own messages only name a missing file.
fn find_toolchain() -> Result<(), BuildError> {
    let parts = [
        ("-print-prog-name=wasm-ld", "the linker wasm-ld"),
        ("-print-file-name=crt1-reactor.o", "the C library wasi-libc"),
        ("-print-libgcc-file-name", "clang's run-time library for WebAssembly"),
    ];
    for (question, what) in parts {
        let mut clang = Command::new("clang");
        let answer = ask(clang.args([TARGET, question]), "clang", INSTALL)?;
        // Clang answers with the bare name if it has not found the file.
        let path = PathBuf::from(String::from_utf8_lossy(&answer).trim());
        if !path.is_absolute() || !path.exists() {
            return Err(BuildError::missing(what, INSTALL));
        }
    }
    Ok(())
}
