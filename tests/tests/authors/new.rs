//! `new`: a project from the templates, without a network.

use crate::program;
use palisade_tests::World;
use std::fs;

#[test]
fn project_has_the_files_of_its_language() {
    let world = World::new();
    let words = ["new", "word-count", "--lang", "rust", "--json"];
    let made = program(&world, &words).run().exits_with(0).json();
    assert_eq!((&made["name"], &made["language"]), (&"word-count".into(), &"rust".into()));
    let project = world.outer().join("word-count");
    for file in made["files"].as_array().unwrap() {
        assert!(project.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("name = \"word-count\"") && manifest.contains("guest-sdk"),
        "{manifest}"
    );
    let source = fs::read_to_string(project.join("src/lib.rs")).unwrap();
    assert!(source.contains("palisade_guest::export!(word_count);"), "{source}");
}

#[test]
fn text_says_what_to_do_next() {
    let world = World::new();
    let ran = program(&world, &["new", "say-hello", "--lang", "rust"]).run().exits_with(0);
    assert!(ran.stdout.contains("palisade build") && ran.stderr.is_empty(), "{ran:?}");
    assert!(ran.stdout.contains("the plugin `say_hello`"), "{ran:?}");
    let taken = program(&world, &["new", "read-file", "--lang", "rust"]).run().exits_with(0);
    taken.stderr_contains(&["`read_file` is a tool of this program"]);
}

#[test]
fn bad_name_is_2_with_what_is_accepted() {
    let world = World::new();
    for (name, language, said) in [
        ("Greet", "rust", "such as `word-count`"),
        ("class", "rust", "reserved word"),
        ("json", "python", "a module of Python; add another word, such as `json-tool`"),
        ("serde", "rust", "a crate that the project uses; add another word, such as `serde-tool`"),
    ] {
        let ran = program(&world, &["new", name, "--lang", language]).run().exits_with(2);
        ran.stderr_contains(&[said]);
        assert!(!world.outer().join(name).exists());
    }
}

#[test]
fn full_directory_is_2_and_unchanged() {
    let world = World::new();
    let project = world.outer().join("greet");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("mine.txt"), "mine").unwrap();
    let ran = program(&world, &["new", "greet", "--lang", "rust"]).run().exits_with(2);
    ran.stderr_contains(&["is not empty"]);
    assert_eq!(fs::read_dir(&project).unwrap().count(), 1);
}

#[test]
fn missing_sdk_is_2_with_the_option() {
    let world = World::new();
    let words = ["new", "greet", "--lang", "rust", "--sdk", "workspace"];
    program(&world, &words).run().exits_with(2).stderr_contains(&["--sdk or PALISADE_SDK"]);
}
