//! Checks by parsing which modules and crates each source names.

use super::orders::{LIBRARY, Layers, MCP, ORDERS, SERVER, SOURCES};
use super::{read, rust_files, without_tests};
use palisade_tests::circles::{self, circles, folders};
use palisade_tests::sources::{module_of, named};
use std::collections::BTreeSet;

/// The telemetry exporter, which is compiled only with its feature.
const TELEMETRY: &str = "host/cli/src/cli/otel";

/// A dependency, and the folders and files that may name it or a crate of its family.
struct Dependency {
    name: &'static str,
    users: &'static [&'static str],
}

const ENGINE: [&str; 3] = ["host/palisade/src/sandbox", "host/wasi-fs/src/", "host/net/src/"];
const SIGNATURES: [&str; 2] = ["host/cli/src/cli/sign.rs", "host/trust/src/signature.rs"];
const LANDLOCK: [&str; 2] = [CONFINE, "host/palisade/src/sandbox/compile/child.rs"];
const CONFINE: &str = "host/shell/src/confine";
const DEPENDENCIES: [Dependency; 14] = [
    Dependency { name: "wasmtime", users: &ENGINE },
    Dependency { name: "rmcp", users: &["host/mcp/", "host/mcp-client/"] },
    Dependency { name: "seccompiler", users: &[CONFINE] },
    Dependency { name: "landlock", users: &LANDLOCK },
    Dependency { name: "minisign_verify", users: &["host/trust/src/signature.rs"] },
    Dependency { name: "minisign", users: &SIGNATURES },
    Dependency { name: "rusqlite", users: &["host/server/src/journal"] },
    Dependency { name: "rustls", users: &["host/net/src/"] },
    Dependency { name: "jsonschema", users: &["host/schema/src/"] },
    Dependency {
        name: "hyper",
        users: &["host/mcp/src/http", "host/mcp/src/transport/http", "host/net/src/", TELEMETRY],
    },
    Dependency { name: "opentelemetry", users: &[TELEMETRY, "host/mcp/src/telemetry/otel.rs"] },
    Dependency { name: "clap", users: &["host/cli/"] },
    Dependency { name: "anyhow", users: &["host/cli/"] },
    Dependency { name: "indicatif", users: &["host/cli/"] },
];

/// The macros and functions that print.
const PRINTING: [&str; 6] = ["println", "print", "eprintln", "eprint", "io::stdout", "io::stderr"];
/// The folder whose files may print.
const PRINTERS: [&str; 1] = ["host/cli/"];

/// The pure folders, and the paths that none of them names.
const PURE: [&str; 4] =
    ["host/palisade/src/tool", "host/palisade/src/policy", "host/formats/src", "host/schema/src"];
const IMPURE: [&str; 7] = ["tokio", "fs", "env", "Instant", "SystemTime", "net", "process"];

/// The folders of the library in which no module depends on itself through others, at any level.
const WITHOUT_CIRCLES: [&str; 4] = ["sandbox", "dispatch", "execution", "plugins"];

/// A source with its path from the root of the repository.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn names(&self) -> BTreeSet<String> {
        let file = self.path.split_once("/src/").map_or(self.path.as_str(), |(_, file)| file);
        named(&self.text, &module_of(file)).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }
}

/// Returns the sources of the library, with their paths below its root.
fn library() -> Vec<circles::Source> {
    let own = sources().into_iter().filter_map(|source| {
        let file = source.path.strip_prefix(LIBRARY.sources)?.to_owned();
        Some(circles::Source { file, text: source.text })
    });
    own.collect()
}

/// Returns the circles of [`WITHOUT_CIRCLES`], each as its modules.
fn all_circles(library: &[circles::Source]) -> Vec<String> {
    let all_folders = WITHOUT_CIRCLES.iter().flat_map(|top| folders(top, library));
    let mut found = Vec::new();
    for folder in all_folders {
        for circle in circles(&folder, library).unwrap_or_else(|error| panic!("{folder}: {error}"))
        {
            found.push(circle.into_iter().collect::<Vec<_>>().join(" "));
        }
    }
    found
}

/// Returns the sources of the host's crates.
fn sources() -> Vec<Source> {
    let paths = without_tests(rust_files("host/").into_iter());
    let paths = paths.filter(|path| path.contains("/src/"));
    paths.map(|path| Source { text: read(&path), path }).collect()
}

/// The files that may read the wall clock. It can be set while a call runs, so it only dates output
/// and is compared with file times; timeouts never depend on it.
const DATED: [&str; 19] = [
    "host/cli/src/cli/args/server.rs",
    "host/cli/src/cli/prompt/question.rs",
    "host/cli/src/cli/publish.rs",
    "host/mcp/src/http/logins.rs",
    "host/mcp/src/http/stored_logins.rs",
    "host/palisade/src/confirm/request.rs",
    "host/palisade/src/dispatch/approve/question.rs",
    "host/palisade/src/events.rs",
    "host/palisade/src/events/lines.rs",
    "host/palisade/src/events/payload.rs",
    "host/palisade/src/events/subscribe.rs",
    "host/palisade/src/host/recorded/records.rs",
    "host/palisade/src/plugins/watch/snapshot.rs",
    "host/palisade/src/sandbox/cache/identity.rs",
    "host/palisade/src/sandbox/cache/usage.rs",
    "host/server/src/journal/time.rs",
    "host/trust/src/lock/revoked.rs",
    "host/trust/src/review.rs",
    "host/wasip2/src/sysroot.rs",
];

/// The only file with an `unsafe` block: it loads compiled code.
const UNSAFE: &str = "host/palisade/src/sandbox/deserialize.rs";

/// Returns every violation of the rules above.
fn violations(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let names = source.names();
        let forbidden = names.iter().filter(|name| {
            is_foreign(source, name)
                || is_upward(source, name)
                || prints(source, name)
                || is_impure(source, name)
                || is_out_of_place(source, name)
        });
        found.extend(forbidden.map(|name| format!("{}: {name}", source.path)));
    }
    found
}

/// Returns true if a path leads into a dependency that the source may not name.
fn is_foreign(source: &Source, name: &str) -> bool {
    let first = name.split("::").next().unwrap_or_default();
    let is_of = |family: &str| {
        first.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    // A single identifier may be a variable of that name.
    name.contains("::")
        && DEPENDENCIES.iter().any(|known| is_of(known.name) && !source.is_in(known.users))
}

/// Returns true if a path leads to a module above the source's own.
fn is_upward(source: &Source, name: &str) -> bool {
    ORDERS.iter().any(|layers| layers.leads_upward(source, name))
}

impl Layers {
    fn leads_upward(&self, source: &Source, name: &str) -> bool {
        let rank = |module: &str| self.order.iter().position(|known| *known == module);
        let Some(file) = source.path.strip_prefix(self.sources) else { return false };
        let own = module_of(file).first().and_then(|module| rank(module));
        let other = name.strip_prefix("crate::").and_then(|path| rank(path.split("::").next()?));
        matches!((own, other), (Some(own), Some(other)) if other > own)
    }
}

fn prints(source: &Source, name: &str) -> bool {
    let is_it = |word: &&str| name == *word || name.ends_with(&format!("::{word}"));
    PRINTING.iter().any(is_it) && !source.is_in(&PRINTERS)
}

fn is_impure(source: &Source, name: &str) -> bool {
    source.is_in(&PURE) && name.split("::").any(|part| IMPURE.contains(&part))
}

/// Returns true for the wall clock, `unsafe`, and an input that skips validation, outside of their
/// files, and for the protocol in the HTTP server, which serves any service.
fn is_out_of_place(source: &Source, name: &str) -> bool {
    name.split("::").any(|part| part == "SystemTime") && !source.is_in(&DATED)
        || name == "unsafe" && source.path != UNSAFE
        || name.ends_with("ValidInput::new") && !source.is_in(&["host/palisade/src/dispatch"])
        || source.is_in(&["host/mcp/src/http"])
            && name.starts_with("crate::")
            && !["crate::http", "crate::rate_limit"].iter().any(|own| name.starts_with(own))
}

#[test]
fn sources_name_only_what_their_layer_allows() {
    let found = violations(&sources());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let planted = [
        (
            "host/palisade/src/tool/planted.rs",
            "#[cfg(test)] mod tests; use crate::{host::Host, tool::x};",
        ),
        (
            "host/palisade/src/session/planted.rs",
            "mod tests; fn f() { super::super::host::serve() }",
        ),
        (
            "host/palisade/src/dispatch/planted.rs",
            "#[cfg(not(test))] fn f() -> wasmtime::Engine { x }",
        ),
        (
            "host/palisade/src/workspace/planted.rs",
            "fn f(linker: &wasmtime::component::Linker<()>) {}",
        ),
        ("host/wasi-fs/src/planted.rs", "fn f() { std::io::stderr().flush() }"),
        ("host/palisade/src/plugins/planted.rs", "fn f() { tracing::info!(x = rmcp::y()) }"),
        ("host/shell/src/helper/planted.rs", "use seccompiler::apply_filter;"),
        ("host/palisade/src/sandbox/compile/child.rs", "fn f() { seccompiler::apply_filter(x) }"),
        ("host/palisade/src/sandbox/compile/planted.rs", "fn f() { use landlock::Ruleset; }"),
        ("host/cli/src/cli/planted.rs", "fn f() -> landlock::ABI { x }"),
        ("host/shell/src/planted.rs", "fn f() { eprintln!() }"),
        ("host/mcp/src/http/planted.rs", "fn f() { println!(\"{}\", 1) }"),
        ("host/schema/src/planted.rs", "use std::{fs as files, path::Path};"),
        ("host/formats/src/planted.rs", "fn f() { tokio::spawn(g()) }"),
        ("host/palisade/src/events/planted.rs", "fn f() { std::time::SystemTime::now() }"),
        ("host/palisade/src/execution/planted.rs", "fn f() { unsafe { g() } }"),
        (
            "host/mcp/src/http/planted.rs",
            "use crate::rate_limit::x; use crate::settings::Settings;",
        ),
        ("host/mcp/src/messages/planted.rs", "use crate::{handler::McpHandler, protocol::x};"),
        ("host/server/src/journal/planted.rs", "use crate::{api::App, role::Role};"),
        ("host/mcp/src/clients/planted.rs", "fn f() { super::super::calls::x() }"),
        ("host/mcp/src/planted.rs", "fn f() { palisade::ValidInput::new(x) }"),
    ];
    for (path, text) in planted {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(violations(&[source]).len(), 1, "{path}: {text}");
    }
    let inside = "#[cfg(test)] mod tests { use crate::host::Host; fn f() { println!() } }";
    let test = Source { path: "host/palisade/src/tool/x.rs".to_owned(), text: inside.to_owned() };
    assert_eq!(violations(&[test]), Vec::<String>::new(), "tests may name everything");
}

#[test]
fn no_module_depends_on_itself_through_others() {
    let library = library();
    let checked = WITHOUT_CIRCLES.iter().flat_map(|top| folders(top, &library)).count();
    assert!(checked > 10, "{checked} folders");
    let found = all_circles(&library);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn planted_circles_are_found() {
    let planted = [
        // Another module of the folder.
        ("dispatch/pipeline.rs", "use super::run::run;", ["dispatch/pipeline", "dispatch/run"]),
        // A module at a deeper level.
        (
            "execution/share/pool.rs",
            "use crate::execution::share::acquire::Acquire;",
            ["execution/share/acquire", "execution/share/pool"],
        ),
        // A type that the parent re-exports.
        ("plugins/plugin.rs", "fn f() -> super::Rescan { x }", ["plugins", "plugins/plugin"]),
    ];
    for (file, line, circle) in planted {
        let mut library = library();
        let source = library.iter_mut().find(|source| source.file == file);
        let source = source.unwrap_or_else(|| panic!("{file} is missing"));
        source.text = format!("{}\n{line}\n", source.text);
        let found = all_circles(&library);
        let has = |module: &&str| found[0].split(' ').any(|known| known == *module);
        assert!(found.len() == 1 && circle.iter().all(has), "{file}: {found:?}");
    }
}

#[test]
fn only_one_block_is_unsafe() {
    let text = read(UNSAFE);
    assert_eq!(text.lines().filter(|line| line.contains("unsafe {")).count(), 1);
}

#[test]
fn no_timeout_depends_on_the_wall_clock() {
    for file in DATED {
        let text = read(file);
        assert!(text.contains("SystemTime"), "{file} does not read the wall clock any more");
        let waits = text.lines().find(|line| {
            line.contains("SystemTime") && (line.contains("sleep") || line.contains("timeout"))
        });
        assert_eq!(waits, None, "{file}");
    }
    palisade_tests::skip("the machine's clock is not set: that would affect all its users");
}

#[test]
fn every_module_has_its_place_in_the_order() {
    for Layers { sources, order } in [LIBRARY, MCP, SERVER, SOURCES] {
        let root = read(&format!("{sources}lib.rs"));
        let declared = root.lines().filter_map(|line| {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            line.strip_prefix("mod ")?.strip_suffix(';')
        });
        let declared: Vec<_> = declared.collect();
        assert!(declared.len() > 10, "{declared:?}");
        assert!(declared.iter().all(|module| order.contains(module)), "{declared:?}");
    }
}

#[test]
fn the_mcp_server_documents_the_order_of_its_modules() {
    let root = read("host/mcp/src/lib.rs");
    let rows = root.lines().filter_map(|line| line.strip_prefix("//! | "));
    let modules = rows.filter_map(|row| row.split('`').nth(1));
    assert_eq!(modules.collect::<Vec<_>>(), MCP.order);
}
