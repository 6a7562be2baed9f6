//! The command line and environment that a client starts, with all current settings made explicit.

use super::super::args::{Common, McpConfig};
use super::super::exit::{Exit, Failure};
use super::super::setup;
use super::listed;
use crate::config::Settings;
use palisade::CacheMode;
use palisade::SideEffects;
use palisade::plugins::Shipped;
use palisade::tool::text::first_deceptive;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The option of a server that has a console.
pub(super) const CONSOLE: &str = "--console";

/// The command line of `serve` and its environment. Every path is absolute.
pub(super) struct Program {
    pub(super) path: String,
    pub(super) workspace: String,
    pub(super) plugins: Vec<String>,
    /// Components of other worlds, each as `FILE=CLASS`.
    pub(super) adapted: Vec<String>,
    pub(super) shipped: Shipped,
    pub(super) config: Option<String>,
    pub(super) allow: BTreeSet<SideEffects>,
    /// The timeout of a call, as typed.
    pub(super) timeout: Option<String>,
    /// Options without a value.
    pub(super) switches: Vec<&'static str>,
    /// Settings that have no option and are passed in environment variables.
    pub(super) environment: BTreeMap<&'static str, String>,
}

impl Program {
    /// Returns this program with its current settings spelled out, because the client starts it in
    /// a directory and an environment of its own.
    pub(super) fn here(common: &Common, config: &McpConfig) -> Result<Self, Failure> {
        let own = std::env::current_exe().map_err(|error| {
            Failure::new(Exit::Internal, format!("this program does not find itself: {error}"))
        })?;
        let switches = [
            ("--watch", config.watch),
            (CONSOLE, config.console),
            ("--code-mode", config.code_mode),
            ("--locked", common.locked),
            ("--verbose", common.verbose),
        ];
        Ok(Self {
            path: carried(&own)?,
            workspace: carried(&common.workspace)?,
            plugins: directories(common)
                .iter()
                .map(|path| carried(path))
                .collect::<Result<_, _>>()?,
            adapted: common
                .adapt
                .iter()
                .map(|adapted| Ok(format!("{}={}", carried(&adapted.file)?, adapted.class)))
                .collect::<Result<_, Failure>>()?,
            shipped: if common.no_builtin { Shipped::LeftOut } else { Shipped::Included },
            config: settings_file(common).as_deref().map(carried).transpose()?,
            allow: config.allow.iter().copied().collect(),
            timeout: config.timeout.clone(),
            switches: switches
                .into_iter()
                .filter_map(|(option, is_given)| is_given.then_some(option))
                .collect(),
            environment: environment()?,
        })
    }

    /// Returns the arguments after the program's path.
    pub(super) fn args(&self) -> Vec<String> {
        let mut args = vec!["serve".to_owned()];
        let mut add = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));
        add(&["--workspace", &self.workspace]);
        self.plugins.iter().for_each(|directory| add(&["--plugins", directory]));
        self.adapted.iter().for_each(|component| add(&["--adapt", component]));
        if self.shipped != Shipped::Included {
            add(&["--no-builtin"]);
        }
        if let Some(file) = &self.config {
            add(&["--config", file]);
        }
        if !self.allow.is_empty() {
            add(&["--allow", &listed(&self.allow)]);
        }
        if let Some(time) = &self.timeout {
            add(&["--timeout", time]);
        }
        add(&self.switches);
        args
    }

    /// Returns the whole command line.
    pub(super) fn words(&self) -> Vec<String> {
        [vec![self.path.clone()], self.args()].concat()
    }
}

/// Returns the user's file of settings, if there is one. It is spelled out even at its usual place:
/// client libraries pass a part of the environment only, so that a server would look elsewhere, and
/// run without the user's restrictions.
fn settings_file(common: &Common) -> Option<PathBuf> {
    let usual = || Some(setup::user_file(common)).filter(|file| file.exists());
    common.config.clone().or_else(usual)
}

/// Returns the plugin directories: those of the environment first, then those of the command line.
fn directories(common: &Common) -> Vec<PathBuf> {
    let variable = std::env::var_os("PALISADE_PLUGINS").unwrap_or_default();
    let named = std::env::split_paths(&variable).filter(|path| !path.as_os_str().is_empty());
    named.chain(common.plugins.iter().cloned()).collect()
}

/// Returns the variables that change `serve` and have no equivalent option. The token never appears
/// in a snippet, and the log level only concerns the terminal it was set in.
fn environment() -> Result<BTreeMap<&'static str, String>, Failure> {
    // Report an environment that `serve` would reject.
    setup::environment(&mut Settings::default())?;
    let mut found: BTreeMap<_, _> = ["PALISADE_MEMORY", "PALISADE_TIMEOUT"]
        .into_iter()
        .filter_map(|name| Some((name, std::env::var(name).ok()?)))
        .collect();
    let cache = match setup::cache_mode() {
        CacheMode::Off => Some("off".to_owned()),
        CacheMode::Directory(path) => Some(carried(&path)?),
        _ => None,
    };
    found.extend(cache.map(|cache| ("PALISADE_CACHE", cache)));
    Ok(found)
}

/// Makes a path absolute, and refuses characters that a client's file would not show or keep.
fn carried(path: &Path) -> Result<String, Failure> {
    let refused = |why: &str| {
        Failure::usage(format!(
            "the path `{}` cannot stand in a client's configuration: {why}",
            path.display()
        ))
    };
    let absolute = std::path::absolute(path).map_err(|error| refused(&error.to_string()))?;
    let text = absolute.to_str().ok_or_else(|| refused("it is not UTF-8; use one that is"))?;
    if text.contains(['\n', '\t']) || first_deceptive(text).is_some() {
        return Err(refused(
            "it has characters that nobody sees or that break a line; use one without them",
        ));
    }
    if text.contains("${") {
        return Err(refused(
            "some clients take `${` for the beginning of a variable; use one without it",
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serve_options_are_minimal_and_ordered() {
        let mut program = Program {
            path: "/opt/palisade".to_owned(),
            workspace: "/srv/my own".to_owned(),
            plugins: Vec::new(),
            adapted: Vec::new(),
            shipped: Shipped::Included,
            config: None,
            allow: BTreeSet::new(),
            timeout: None,
            switches: Vec::new(),
            environment: BTreeMap::new(),
        };
        assert_eq!(program.words(), ["/opt/palisade", "serve", "--workspace", "/srv/my own"]);
        program.plugins = vec!["/b".to_owned(), "/a".to_owned()];
        program.adapted = vec!["/d.wasm=read".to_owned()];
        program.shipped = Shipped::LeftOut;
        program.config = Some("/c.toml".to_owned());
        program.allow = BTreeSet::from([SideEffects::Network, SideEffects::Write]);
        program.timeout = Some("90s".to_owned());
        program.switches = vec!["--watch"];
        let expected = "serve --workspace /srv/my own --plugins /b --plugins /a --adapt /d.wasm=read --no-builtin --config /c.toml --allow write,network --timeout 90s --watch";
        assert_eq!(program.args().join(" "), expected);
    }

    #[test]
    fn path_is_complete_and_absolute() {
        let odd = "/srv/it's \"my\" own $HOME\\ ~ ünï";
        assert_eq!(carried(Path::new(odd)).expect("a path"), odd);
        let here = std::env::current_dir().expect("a directory").join("plug ins");
        assert_eq!(carried(Path::new("plug ins")).expect("a path"), here.to_str().expect("UTF-8"));
    }

    #[test]
    fn unprintable_path_is_refused() {
        for path in
            ["", "/a\nb", "/a\tb", "/a\u{1b}[2J", "/a\u{202e}b", "/a\u{200b}b", "/${HOME}/a"]
        {
            assert_eq!(
                carried(Path::new(path)).expect_err("no path").exit(),
                Exit::Usage,
                "{path:?}"
            );
        }
    }
}
