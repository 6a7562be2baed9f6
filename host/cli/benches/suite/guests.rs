//! Measures tools whose guests include an interpreter of 12 to 18 MB, against starting that
//! interpreter natively.

use crate::calls;
use crate::floor::Floor;
use crate::report::{self, Series};
use crate::road::Road;
use crate::spawned;
use crate::world::World;
use palisade::json;
use std::path::Path;

/// Calls of each kind.
const CALLS: usize = 400;
/// Processes of each kind.
const SPAWNS: usize = 20;

/// A language: its tool, and the native program that does the same work.
struct Language {
    name: &'static str,
    tools: &'static [&'static str],
    program: &'static str,
    arguments: [&'static str; 2],
    process: &'static str,
}

const LANGUAGES: [Language; 2] = [
    Language {
        name: "python",
        tools: &["python_echo"],
        program: "python3",
        arguments: ["-c", "import json; print(json.dumps(json.loads('{\"text\": \"hello\"}')))"],
        process: "a spawned process, `python3 -c`",
    },
    Language {
        name: "javascript",
        tools: &["javascript_echo"],
        program: "node",
        arguments: ["-e", "console.log(JSON.stringify(JSON.parse('{\"text\": \"hello\"}')))"],
        process: "a spawned process, `node -e`",
    },
];

pub(crate) fn run(world: &World) {
    for language in &LANGUAGES {
        let name = format!("echo in {}", language.name);
        match world.interpreted(language.name) {
            Ok(guest) => measure(world, language, &name, &guest),
            Err(why) => report::skipped(&name, &why),
        }
    }
}

fn measure(world: &World, language: &Language, name: &str, guest: &Path) {
    let tool = language.tools.first().copied().unwrap_or_default();
    let input = json!({"text": "hello"}).to_string();
    let floor = Floor::new(world).with(language.tools, &std::fs::read(guest).expect("the guest"));
    let road = Road::with(world.host().plugin_file(guest));
    let mut members =
        Vec::from(crate::on_one_thread().block_on(calls::both(&floor, &road, tool, &input, CALLS)));
    let mut program = Series::new("palisade, its program");
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::copy(guest, directory.path().join("guest.wasm")).expect("a copy of the guest");
    for _ in 0..SPAWNS {
        let plugins = directory.path().as_os_str();
        let words = [
            "call".as_ref(),
            tool.as_ref(),
            input.as_ref(),
            "--no-builtin".as_ref(),
            "--plugins".as_ref(),
            plugins,
        ];
        program.run(|| spawned::palisade(world, words));
    }
    members.push(program);
    if spawned::is_there(language.program) {
        let mut process = Series::new(language.process);
        for _ in 0..SPAWNS {
            process.run(|| spawned::run(language.program, language.arguments));
        }
        members.push(process);
    } else {
        report::skipped(language.process, "it does not start here");
    }
    report::group(name, &members);
}
