//! Checks the recipes of CONTRIBUTING.md: every file and name in them exists, and the recipe for a
//! subcommand describes the existing ones.

use super::{read, root, rust_files};
use syn::{Attribute, Item, Meta};

/// The folders that a path of a recipe may be relative to.
const BASES: [&str; 8] = [
    "",
    "host/palisade/src/",
    "host/wasi-fs/src/",
    "host/cli/src/",
    "host/cli/src/cli/",
    "host/cli/benches/suite/",
    "tests/tests/",
    "tests/tests/program/",
];

/// The placeholders of the recipes, each with an existing example.
const EXAMPLES: [(&str, &str); 4] =
    [("LANGUAGE", "js"), ("PLUGIN", "files"), ("TOOL", "read"), ("VERB", "call")];

/// One numbered step or one short recipe.
struct Step {
    text: String,
    files: Vec<String>,
    names: Vec<String>,
}

fn steps() -> Vec<Step> {
    let document = read("CONTRIBUTING.md");
    let recipes = document.split("## How to add").nth(1).expect("there are recipes");
    let recipes = recipes.split("\n## ").next().unwrap_or_default();
    let mut texts: Vec<String> = Vec::new();
    for line in recipes.lines() {
        let begins = line.starts_with(|first: char| first.is_ascii_digit() || first == '*');
        match texts.last_mut() {
            Some(text) if !begins => *text = format!("{text} {}", line.trim()),
            _ => texts.push(line.to_owned()),
        }
    }
    let is_step = |text: &String| text.starts_with(|c: char| c.is_ascii_digit() || c == '*');
    texts.into_iter().filter(is_step).map(Step::new).collect()
}

impl Step {
    fn new(text: String) -> Self {
        let quoted = text.split('`').skip(1).step_by(2);
        let plain =
            |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "_/.-".contains(c));
        let (files, names): (Vec<&str>, Vec<&str>) = quoted.filter(plain).partition(|word| {
            word.contains('/') || word.ends_with(".rs") || word.ends_with(".toml")
        });
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
        Self { files: owned(files), names: owned(names), text }
    }

    /// Returns the contents of the files that a path may mean, or the path as an error.
    fn contents(path: &str) -> Result<Vec<String>, String> {
        let path = EXAMPLES.iter().fold(path.to_owned(), |path, (from, to)| path.replace(from, to));
        let found: Vec<String> = BASES
            .iter()
            .map(|base| root().join(format!("{base}{path}")))
            .filter(|place| place.exists())
            .map(|place| std::fs::read_to_string(place).unwrap_or_default())
            .collect();
        if found.is_empty() { Err(path) } else { Ok(found) }
    }
}

#[test]
fn every_file_of_a_recipe_exists() {
    let missing: Vec<String> = steps()
        .iter()
        .flat_map(|step| step.files.iter().filter_map(|file| Step::contents(file).err()))
        .collect();
    assert!(steps().len() > 20, "the recipes are found");
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns true if the text contains the name, and not as a part of a longer one.
fn has_word(text: &str, name: &str) -> bool {
    let continues = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_whole = |at: usize| {
        !text[..at].ends_with(continues) && !text[at + name.len()..].starts_with(continues)
    };
    text.match_indices(name).any(|(at, _)| is_whole(at))
}

#[test]
fn every_recipe_name_is_in_the_file_of_its_step() {
    let mut missing = Vec::new();
    for step in steps() {
        let texts: Vec<String> =
            step.files.iter().filter_map(|file| Step::contents(file).ok()).flatten().collect();
        let is_missing = |name: &&String| !texts.iter().any(|text| has_word(text, name));
        let names = step.names.iter().filter(|_| !texts.is_empty()).filter(is_missing);
        missing.extend(names.map(|name| format!("{name}: {:.60}", step.text)));
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

/// A subcommand of the program, as `Verb` declares it.
struct Verb {
    variant: String,
    is_hidden: bool,
}

impl Verb {
    /// Returns the name of the subcommand's module.
    fn module(&self) -> String {
        let mut name = String::new();
        for letter in self.variant.chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

fn verbs() -> Vec<Verb> {
    let file = syn::parse_file(&read("host/cli/src/cli/args.rs")).expect("it is Rust");
    let verb = file.items.into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == "Verb" => Some(item),
        _ => None,
    });
    let hides = |attribute: &Attribute| match &attribute.meta {
        Meta::List(list) => list.tokens.to_string().contains("hide"),
        _ => false,
    };
    let variants = verb.expect("the subcommands are declared there").variants.into_iter();
    let variants = variants.map(|variant| Verb {
        is_hidden: variant.attrs.iter().any(hides),
        variant: variant.ident.to_string(),
    });
    variants.collect()
}

#[test]
fn every_verb_follows_its_recipe() {
    let [program, readme] = ["host/cli/src/cli.rs", "README.md"].map(read);
    let suites: Vec<String> = rust_files("tests/").iter().map(|path| read(path)).collect();
    let verbs = verbs();
    assert!(verbs.len() > 10);
    for verb in verbs {
        let module = verb.module();
        let own = read(&format!("host/cli/src/cli/{module}.rs"));
        assert!(own.contains("fn run("), "{module}.rs has `run`");
        assert!(program.contains(&format!("mod {module};")), "{module} is declared");
        assert!(program.contains(&format!("Verb::{}", verb.variant)), "{module} is run");
        let is_called = suites.iter().any(|text| text.contains(&format!("\"{module}\"")));
        if !verb.is_hidden {
            let is_named = ["`", "palisade "].map(|before| format!("{before}{module}"));
            let is_named = is_named.iter().any(|name| readme.contains(name));
            assert!(is_named, "README.md names the subcommand `{module}`");
            assert!(is_called, "a test calls `{module}`");
        }
    }
}

/// Returns the text of a suite's item: from this text to the end of the item at the left edge.
fn item(path: &str, begin: &str) -> String {
    let text = read(&format!("tests/tests/program/{path}"));
    let rest = text.split(begin).nth(1).unwrap_or_else(|| panic!("{path} has no {begin}"));
    rest.split("\n}").next().and_then(|rest| rest.split("\n];").next()).unwrap_or(rest).to_owned()
}

/// The subcommands whose test of a full disk stands apart, with that test, or `None` for one that
/// prints nothing unless a client asks.
const APART: [(&str, Option<&str>); 14] = [
    ("add", Some("fn unwritable_words_about_installations_are_1(")),
    ("adapt", Some("fn shown_tools_on_a_full_disk_are_1(")),
    ("build", Some("fn report_of_a_build_on_a_full_disk_is_1(")),
    ("check", Some("fn report_on_a_full_disk_is_1(")),
    ("console", Some("fn unwritable_output_about_a_server_is_1(")),
    ("dev", Some("fn report_of_a_build_on_a_full_disk_is_1(")),
    ("dispatch", Some("fn unwritable_answers_of_executed_tools_are_1(")),
    ("log", Some("fn unwritable_output_about_a_server_is_1(")),
    ("publish", Some("fn unwritable_words_about_installations_are_1(")),
    ("remove", Some("fn unwritable_words_about_installations_are_1(")),
    ("revoke", Some("fn unwritable_words_about_approvals_are_1(")),
    ("serve", None),
    ("sign", Some("fn unwritable_words_about_approvals_are_1(")),
    ("watch", Some("fn unwritable_output_about_a_server_is_1(")),
];
/// The subcommands whose test of `--json` stands apart, with that test: they need a journal, a
/// project or a plugin.
const JSON_APART: [(&str, &str); 5] = [
    ("adapt", "fn tools_are_shown_with_what_is_left_out_and_the_configuration("),
    ("build", "fn new_project_is_built_checked_called_and_broken("),
    ("check", "fn sound_plugin_passes_without_a_finding("),
    ("log", "fn one_call_has_its_question_with_who_answered("),
    ("run", "fn program_is_run_against_the_workspace("),
];

#[test]
fn every_verb_is_in_the_lists_of_its_recipe() {
    let full_disk = item("output.rs", "const VERBS");
    let help = item("verbs.rs", "fn help_and_version_go_to_standard_output");
    let json = item("verbs.rs", "fn every_json_verb_prints_one_json_value");
    let table = item("exit_codes.rs", "fn wrong_command_line_is_2");
    let suites: Vec<String> = rust_files("tests/").iter().map(|path| read(path)).collect();
    let mut missing = Vec::new();
    for module in verbs().iter().filter(|verb| !verb.is_hidden).map(Verb::module) {
        let quoted = format!("\"{module}\"");
        let begins = |list: &str| list.contains(&format!("&[{quoted}"));
        let own: String = rust_files("host/cli/src/cli/")
            .iter()
            .filter(|path| path.starts_with(&format!("host/cli/src/cli/{module}")))
            .map(|path| read(path))
            .collect();
        let is_there = |test: &str| suites.iter().any(|suite| suite.contains(test));
        let apart = APART.iter().find(|(verb, _)| *verb == module);
        let is_apart = apart.is_some_and(|(_, test)| test.is_none_or(is_there));
        let is_json_apart = JSON_APART.iter().any(|(verb, test)| *verb == module && is_there(test));
        let lists = [
            ("VERBS of output.rs", begins(&full_disk) || is_apart),
            ("--help in verbs.rs", help.contains(&quoted)),
            (
                "--json in verbs.rs",
                begins(&json) || is_json_apart || !own.contains("output::json("),
            ),
            ("the table in exit_codes.rs", begins(&table)),
        ];
        let absent = lists.iter().filter(|(_, is_there)| !is_there);
        missing.extend(absent.map(|(list, _)| format!("{module} in {list}")));
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}
