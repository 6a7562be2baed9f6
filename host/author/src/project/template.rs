//! The templates, with their placeholders. Their names differ from those of the files where cargo
//! or git would read them: cargo leaves a directory with a `Cargo.toml` out of a package.

use crate::language::Language;
use crate::name::PluginName;
use crate::sdk::Sdk;

/// A file of a project: its path, and its text with placeholders.
type File = (&'static str, &'static str);

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/", $path))
    };
}

const EDITOR: File = (".editorconfig", template!("common/editorconfig"));

const RUST: &[File] = &[
    ("Cargo.toml", template!("rust/Cargo.toml.in")),
    (".cargo/config.toml", template!("rust/cargo-config.toml")),
    ("src/lib.rs", template!("rust/lib.rs.in")),
    ("tests/two-lines.txt", template!("common/two-lines.txt")),
    ("tests/counts.json", template!("common/counts.json")),
    ("tests/missing-file.json", template!("common/missing-file.json")),
    ("README.md", template!("rust/README.md.in")),
    (".gitignore", template!("rust/gitignore")),
    (".github/workflows/ci.yml", template!("rust/ci.yml")),
    EDITOR,
];

const PYTHON: &[File] = &[
    ("pyproject.toml", template!("python/pyproject.toml.in")),
    ("requirements.txt", template!("python/requirements.txt.in")),
    ("@IDENT@.py", template!("python/tool.py.in")),
    ("tests/test_@IDENT@.py", template!("python/test_tool.py.in")),
    ("tests/counts.json", template!("common/counts.json")),
    ("README.md", template!("python/README.md.in")),
    (".gitignore", template!("python/gitignore")),
    (".github/workflows/ci.yml", template!("python/ci.yml")),
    EDITOR,
];

const JS: &[File] = &[
    ("package.json", template!("js/package.json.in")),
    (".npmrc", template!("js/npmrc")),
    ("jsconfig.json", template!("js/jsconfig.json")),
    ("src/index.js", template!("js/index.js.in")),
    ("tests/@IDENT@.test.js", template!("js/tool.test.js.in")),
    ("tests/counts.json", template!("common/counts.json")),
    ("tests/missing-file.json", template!("js/missing-file.json")),
    ("README.md", template!("js/README.md.in")),
    (".gitignore", template!("js/gitignore")),
    (".github/workflows/ci.yml", template!("js/ci.yml")),
    EDITOR,
];

const C: &[File] = &[
    ("compile_flags.txt", template!("c/compile_flags.txt.in")),
    ("Makefile", template!("c/Makefile")),
    ("src/@IDENT@.c", template!("c/tool.c.in")),
    ("tests/test_@IDENT@.c", template!("c/test_tool.c.in")),
    ("tests/two-lines.txt", template!("common/two-lines.txt")),
    ("tests/counts.json", template!("common/counts.json")),
    ("tests/missing-file.json", template!("common/missing-file.json")),
    ("README.md", template!("c/README.md.in")),
    (".gitignore", template!("c/gitignore")),
    (".github/workflows/ci.yml", template!("c/ci.yml")),
    EDITOR,
];

/// Returns the files of a new project, with placeholders in their names as well.
pub(super) fn files(language: Language) -> &'static [File] {
    match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::Js => JS,
        Language::C => C,
    }
}

/// Replaces the placeholders: `@NAME@`; `@IDENT@`, the name with `_`; `@SDK@`, the path of the SDK
/// as a string of JSON or TOML; `@SDK_FILE@`, the same as npm writes a local package; `@SDK_PATH@`,
/// the path as it is.
pub(super) fn filled(text: &str, name: &PluginName, sdk: &Sdk) -> String {
    let path = sdk.path().to_string_lossy();
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    text.replace("@NAME@", name.as_str())
        .replace("@IDENT@", &name.identifier())
        .replace("@SDK@", &quoted(path.to_string()))
        .replace("@SDK_FILE@", &quoted(format!("file:{path}")))
        .replace("@SDK_PATH@", &path)
}
