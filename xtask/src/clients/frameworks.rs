//! The agent frameworks in Python and JavaScript among the clients, and Claude Code.

use super::{Attended, BOTH, Client, Selected, TYPESCRIPT};
use crate::npm;
use crate::pip;
use crate::place::Place;
use crate::served::Transport;
use anyhow::{Context as _, anyhow, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// The clients, each in a folder with the list of its packages.
const FRAMEWORKS: &str = "tests/clients/frameworks";
/// The folder of the promises, which all clients import.
const SHARED: &str = "tests/clients/frameworks/shared";

/// A framework.
#[derive(Debug, Clone, Copy)]
struct Framework {
    /// The name for people.
    name: &'static str,
    /// The folder of the client, which is also the name on the command line.
    folder: &'static str,
    language: Language,
    part: Part,
    attended: Attended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    JavaScript,
    /// A program, which a client in Python starts.
    Program,
}

/// Whether a framework is in the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In the sample, which covers both languages, both interfaces of models, one session for all
    /// calls and one for each.
    Sample,
    Rest,
}

const ALL: [Framework; 10] = [
    python("FastMCP", "fastmcp", Part::Rest),
    python("pydantic-ai", "pydantic-ai", Part::Rest),
    python("the OpenAI Agents SDK", "openai-agents", Part::Rest).attended(),
    python("LangChain", "langchain-mcp-adapters", Part::Sample),
    python("LlamaIndex", "llama-index", Part::Rest),
    python("Semantic Kernel", "semantic-kernel", Part::Rest),
    python("mcp-use", "mcp-use", Part::Rest),
    javascript("the AI SDK", "ai-sdk", Part::Sample),
    javascript("Mastra", "mastra", Part::Rest),
    program("Claude Code", "claude-code").attended(),
];

const fn python(name: &'static str, folder: &'static str, part: Part) -> Framework {
    Framework { name, folder, language: Language::Python, part, attended: Attended::Never }
}

const fn javascript(name: &'static str, folder: &'static str, part: Part) -> Framework {
    Framework { name, folder, language: Language::JavaScript, part, attended: Attended::Never }
}

const fn program(name: &'static str, folder: &'static str) -> Framework {
    let (language, part) = (Language::Program, Part::Rest);
    Framework { name, folder, language, part, attended: Attended::Never }
}

/// Returns the selected frameworks that are available. Those of both languages are downloaded at
/// the same time.
pub(super) fn gather(
    place: &Place,
    home: &Path,
    selected: &Selected,
) -> anyhow::Result<Vec<Client>> {
    let selected = select(selected)?;
    let of = |language: Language| -> anyhow::Result<Vec<Client>> {
        let spoken = selected.iter().filter(|(framework, _)| framework.language == language);
        let clients =
            spoken.map(|(framework, transports)| framework.client(place, home, transports));
        Ok(clients.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
    };
    thread::scope(|scope| {
        let javascript = scope.spawn(|| of(Language::JavaScript));
        let python = [of(Language::Python)?, of(Language::Program)?].concat();
        let javascript = javascript
            .join()
            .map_err(|_| anyhow!("installing the JavaScript clients panicked"))??;
        Ok([python, javascript].concat())
    })
}

/// Returns the selected frameworks with their transports.
fn select(selected: &Selected) -> anyhow::Result<Vec<(Framework, &'static [Transport])>> {
    let named = match selected {
        Selected::All => return Ok(ALL.map(|framework| (framework, BOTH)).to_vec()),
        Selected::Sample => {
            let sampled = ALL.into_iter().filter(|framework| framework.part == Part::Sample);
            return Ok(sampled.map(|framework| (framework, &[Transport::Http][..])).collect());
        }
        Selected::Frameworks(named) => named,
    };
    let known = ALL.map(|framework| framework.folder);
    for name in named {
        ensure!(
            known.contains(&name.as_str()),
            "`{name}` is no framework; known are {}",
            known.join(", ")
        );
    }
    let is_named = |framework: &Framework| named.iter().any(|name| name == framework.folder);
    Ok(ALL.into_iter().filter(is_named).map(|framework| (framework, BOTH)).collect())
}

/// The result of installing a framework.
enum Installed {
    Here(Client),
    /// Its packages are not available, for this reason.
    OutOfReach(String),
}

impl Framework {
    /// Runs the framework also against a server with an operator.
    const fn attended(self) -> Self {
        Self { attended: Attended::Also, ..self }
    }

    /// Installs the framework. Returns `None` with a message if it is not available.
    fn client(
        self,
        place: &Place,
        home: &Path,
        transports: &'static [Transport],
    ) -> anyhow::Result<Option<Client>> {
        let installed = match self.language {
            Language::Python => self.in_python(place, home, transports)?,
            Language::JavaScript => self.in_javascript(place, home, transports)?,
            Language::Program => self.as_program(place, home, transports)?,
        };
        Ok(match installed {
            Installed::Here(client) => Some(client),
            Installed::OutOfReach(reason) => {
                println!("skipped: {}: {reason}", self.name);
                None
            }
        })
    }

    /// Returns the folder of the client, relative to the root.
    fn sources(self) -> String {
        format!("{FRAMEWORKS}/{}", self.folder)
    }

    fn in_python(
        self,
        place: &Place,
        home: &Path,
        transports: &'static [Transport],
    ) -> anyhow::Result<Installed> {
        let list = format!("{}/requirements.txt", self.sources());
        let packages = match pip::Packages::install(place, &list, &home.join(self.folder))? {
            pip::Packages::At(packages) => packages,
            pip::Packages::OutOfReach(reason) => return Ok(Installed::OutOfReach(reason)),
        };
        Ok(Installed::Here(Client {
            name: self.name,
            program: "python3".into(),
            words: vec![place.root.join(self.sources()).join("client.py").into()],
            packages: vec![packages, place.root.join(SHARED)],
            transports,
            attended: self.attended,
        }))
    }

    fn as_program(
        self,
        place: &Place,
        home: &Path,
        transports: &'static [Transport],
    ) -> anyhow::Result<Installed> {
        let directory = home.join(self.folder);
        if let Some(reason) = npm::fetch_programs(place, &self.sources(), &directory)? {
            return Ok(Installed::OutOfReach(reason));
        }
        let Some(program) = claude_code(&directory) else {
            return Ok(Installed::OutOfReach("npm has none for this system".to_owned()));
        };
        let script = place.root.join(self.sources()).join("client.py");
        Ok(Installed::Here(Client {
            name: self.name,
            program: "python3".into(),
            words: vec![script.into(), "--program".into(), program.into()],
            packages: vec![place.root.join(SHARED)],
            transports,
            attended: self.attended,
        }))
    }

    fn in_javascript(
        self,
        place: &Place,
        home: &Path,
        transports: &'static [Transport],
    ) -> anyhow::Result<Installed> {
        let packages = match npm::fetch(place, &self.sources(), home.join(self.folder))? {
            npm::Fetched::Here(packages) => packages,
            npm::Fetched::OutOfReach(reason) => return Ok(Installed::OutOfReach(reason)),
        };
        let sources = self.sources();
        let scripts =
            [(TYPESCRIPT, "common.mjs"), (SHARED, "promises.mjs"), (&sources, "client.mjs")];
        for (folder, script) in scripts {
            let from = place.root.join(folder).join(script);
            fs::copy(&from, packages.directory().join(script))
                .with_context(|| format!("copying {}", from.display()))?;
        }
        Ok(Installed::Here(Client {
            name: self.name,
            program: packages.node().to_owned(),
            words: vec![packages.directory().join("client.mjs").into()],
            packages: Vec::new(),
            transports,
            attended: self.attended,
        }))
    }
}

/// Returns the program of Claude Code, which is in a package for each system.
fn claude_code(directory: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(directory.join("node_modules/@anthropic-ai")).ok()?;
    packages.flatten().map(|package| package.path().join("claude")).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace")
    }

    fn read(path: &str) -> String {
        fs::read_to_string(root().join(path)).expect(path)
    }

    /// Returns the version of the framework that its list names.
    fn version(framework: Framework) -> String {
        match framework.language {
            Language::Python => {
                let list = read(&format!("{FRAMEWORKS}/{}/requirements.txt", framework.folder));
                let named = list.lines().find(|line| !line.starts_with('#')).expect("a package");
                named.split_once("==").expect("a version").1.to_owned()
            }
            Language::JavaScript | Language::Program => {
                let list = read(&format!("{FRAMEWORKS}/{}/package.json", framework.folder));
                let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
                let versions = list["dependencies"].as_object().expect("dependencies");
                let own = ["@ai-sdk/mcp", "@mastra/mcp", "@anthropic-ai/claude-code"];
                let own = own.iter().find_map(|name| versions.get(*name));
                own.and_then(|version| version.as_str()).expect("a version").to_owned()
            }
        }
    }

    #[test]
    fn sample_has_both_languages_over_http_only() {
        let sample = select(&Selected::Sample).expect("a sample");
        let languages = sample.iter().map(|(framework, _)| framework.language);
        assert_eq!(languages.collect::<Vec<_>>(), [Language::Python, Language::JavaScript]);
        assert!(sample.iter().all(|(_, transports)| **transports == [Transport::Http]));
        assert_eq!(select(&Selected::All).expect("all").len(), ALL.len());
    }

    #[test]
    fn unknown_framework_is_refused_with_the_known_names() {
        let named = |name: &str| select(&Selected::Frameworks(vec![name.to_owned()]));
        assert_eq!(named("mastra").expect("a framework").len(), 1);
        let refusal = named("mastro").expect_err("a refusal").to_string();
        assert!(refusal.contains("`mastro`") && refusal.contains("mastra"), "{refusal}");
    }

    #[test]
    fn document_has_each_framework_with_its_version() {
        let document = read("docs/mcp.md");
        for framework in ALL {
            let (folder, version) = (framework.folder, version(framework));
            // Other tables name the same clients, several in a row.
            let is_row =
                |line: &str| line.starts_with('|') && line.contains(&format!("| `{folder}` |"));
            let row = document.lines().find(|line| is_row(line));
            let row = row.unwrap_or_else(|| panic!("docs/mcp.md has no row for {folder}"));
            assert!(row.contains(&format!("| {version} |")), "{folder} is {version}: {row}");
        }
    }
}
