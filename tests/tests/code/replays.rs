//! Random programs of reads, writes and questions, cut at every question: each effect happens once,
//! and the results are those of the same program without cuts.
//!
//! `PALISADE_REPLAYS` sets the number of programs.

use super::rounds::{answer, questions, round};
use super::served::{FORMS, client, run, text};
use palisade_tests::World;
use palisade_tests::mcp::Client;
use serde_json::{Value, json};
use std::fmt::Write as _;

const FILES: usize = 3;

/// A generator of random numbers (SplitMix64), so that a failure names the seed that repeats it.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }
}

/// Returns a program. A write appends to its file, so that a second run of it would show.
fn program(random: &mut Random) -> String {
    let mut code = String::from(
        "const attempt = f => { try { return f() } catch (e) { return e.class } };\n\
         const read = n => tools.read_file({path: `${n}.txt`});\n\
         const write = (n, x) => ['write_file', {path: `${n}.txt`, content: read(n) + x}];\n\
         const log = [];\n",
    );
    for step in 0..=random.below(6) {
        let file = random.below(FILES);
        let word = if random.below(4) == 0 { "no" } else { "yes" };
        let line = match random.below(5) {
            0 => format!("log.push(attempt(() => read({file})));"),
            1 => format!("log.push(attempt(() => tools.calculate({{expression: '{step} + 1'}})));"),
            2 => "log.push(attempt(() => read('missing')), Math.random());".to_owned(),
            3 => format!(
                "log.push(tools.all([0, 1, 2].map(n => write(n, '{word}{step}'))).map(r => r.error ? r.error.class : 1));"
            ),
            _ => format!(
                "log.push(attempt(() => {{ const [t, i] = write({file}, '{word}{step}'); tools[t](i); return 1 }}));"
            ),
        };
        writeln!(code, "{line}").unwrap();
    }
    code + "return log;"
}

fn repository() -> World {
    let world = World::new();
    fill(&world);
    world
}

fn fill(world: &World) {
    for number in 0..FILES {
        world.file(&format!("{number}.txt"), "-");
    }
}

fn files(world: &World) -> Vec<Option<String>> {
    (0..FILES).map(|number| world.read(&format!("{number}.txt"))).collect()
}

/// The user refuses the writes whose input ends with `no`, and a digit.
fn decision(form: &Value) -> &'static str {
    let message = form["message"].as_str().unwrap();
    let content = message.split("\"content\":\"").nth(1).unwrap().split('"').next().unwrap();
    match content.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("no") {
        true => "deny",
        false => "allow_once",
    }
}

/// Runs a program whose questions are answered while it waits.
fn without_cuts(client: &mut Client, code: &str) -> String {
    let id = client.begin("tools/call", &run(code));
    loop {
        let message = client.receive();
        if message["id"] == id && message.get("method").is_none() {
            return text(&message).to_owned();
        }
        if message["method"] == "elicitation/create" {
            let content = json!({"decision": decision(&message["params"])});
            let result = json!({"action": "accept", "content": content});
            client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
    }
}

/// Runs a program that ends at each question, and is run again with the answers.
fn with_cuts(client: &mut Client, code: &str) -> (String, usize) {
    let mut asked = round(client, code, &Value::Null, &Value::Null);
    let mut cuts = 0;
    while asked["result"]["resultType"] == "input_required" {
        let (keys, state) = questions(&asked);
        let mut answers = serde_json::Map::new();
        for key in keys {
            let number = key.rsplit('.').next().unwrap().parse().unwrap();
            let form = &asked["result"]["inputRequests"][&key]["params"];
            answers.extend(answer(number, decision(form)).as_object().unwrap().clone());
        }
        asked = round(client, code, &state, &Value::Object(answers));
        cuts += 1;
    }
    (text(&asked).to_owned(), cuts)
}

#[test]
fn effects_happen_once_and_results_are_those_without_cuts() {
    let programs = std::env::var("PALISADE_REPLAYS").map_or(40, |text| text.parse().unwrap());
    let (whole, cut) = (repository(), repository());
    let forms = serde_json::from_str(FORMS).unwrap();
    let mut stateful = client(&whole).shake_hands(&forms);
    let mut stateless = client(&cut);
    let mut cuts = 0;
    for seed in 0..programs {
        let code = program(&mut Random(seed));
        let expected = without_cuts(&mut stateful, &code);
        let (result, number) = with_cuts(&mut stateless, &code);
        assert_eq!(result, expected, "seed {seed}:\n{code}");
        assert_eq!(files(&cut), files(&whole), "seed {seed}:\n{code}");
        cuts += number;
        for world in [&whole, &cut] {
            fill(world);
        }
    }
    assert!(cuts > usize::try_from(programs).unwrap() / 2, "{cuts} cuts");
}
