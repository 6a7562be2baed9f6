//! Ten tasks over a small repository, each solved by single calls and by a program.

use serde_json::{Value, json};

/// A task: the calls that solve it one by one, a program that solves it, and the answer.
pub struct Task {
    /// The name of the task.
    pub name: &'static str,
    /// The calls that solve it one by one.
    pub calls: fn() -> Vec<(&'static str, Value)>,
    /// A program that solves it.
    pub program: &'static str,
    /// The answer.
    pub answer: &'static str,
}

fn read(numbers: std::ops::Range<usize>) -> Vec<(&'static str, Value)> {
    numbers.map(|n| ("read_file", json!({"path": format!("src/m{n}.rs")}))).collect()
}

/// The tasks.
pub const TASKS: [Task; 10] = [
    Task {
        name: "count the lines of 20 files",
        calls: || read(0..20),
        program: "let n = 0; for (let i = 0; i < 20; i++) n += tools.read_file({path: `src/m${i}.rs`}).split('\\n').length - 1; return n",
        answer: "1000",
    },
    Task {
        name: "find the longest of 20 files",
        calls: || read(0..20),
        program: "let best = ['', -1]; for (let i = 0; i < 20; i++) { const l = tools.read_file({path: `src/m${i}.rs`}).length; if (l > best[1]) best = [`src/m${i}.rs`, l] } return best[0]",
        answer: "src/m19.rs",
    },
    Task {
        name: "find a word in the one file that has it",
        calls: || {
            vec![
                ("search_files", json!({"pattern": "needle"})),
                ("read_file", json!({"path": "src/m7.rs"})),
            ]
        },
        program: "return tools.read_file({path: tools.search_files({pattern: 'needle'}).split(':')[0].trim()}).includes('needle')",
        answer: "true",
    },
    Task {
        name: "sum the numbers of 20 files",
        calls: || read(0..20),
        program: "let s = 0; for (let i = 0; i < 20; i++) s += Number(tools.read_file({path: `src/m${i}.rs`}).match(/= (\\d+)/)[1]); return s",
        answer: "190",
    },
    Task {
        name: "compare two files",
        calls: || read(3..5),
        program: "return tools.read_file({path: 'src/m3.rs'}) === tools.read_file({path: 'src/m4.rs'})",
        answer: "false",
    },
    Task {
        name: "name the files without a test",
        calls: || read(0..20),
        program: "const r = tools.all([...Array(20).keys()].map(i => ['read_file', {path: `src/m${i}.rs`}])); return r.map((f, i) => f.value.includes('#[test]') ? null : i).filter(i => i !== null)",
        answer: "[0,2,4,6,8,10,12,14,16,18]",
    },
    Task {
        name: "compute with what is read",
        calls: || {
            let mut calls = read(5..7);
            calls.push(("calculate", json!({"expression": "5 * 6"})));
            calls
        },
        program: "const n = i => tools.read_file({path: `src/m${i}.rs`}).match(/= (\\d+)/)[1]; return tools.calculate({expression: `${n(5)} * ${n(6)}`})",
        answer: "30",
    },
    Task {
        name: "list the directory and count",
        calls: || vec![("list_dir", json!({"path": "src"}))],
        program: "return tools.list_dir({path: 'src'}).trim().split('\\n').length",
        answer: "20",
    },
    Task {
        name: "collect the first lines of 10 files",
        calls: || read(0..10),
        program: "return [...Array(10).keys()].map(i => tools.read_file({path: `src/m${i}.rs`}).split('\\n')[0].length).join()",
        answer: "12,12,12,12,12,12,12,12,12,12",
    },
    Task {
        name: "stop at the first file that fits",
        calls: || read(0..8),
        program: "for (let i = 0; i < 20; i++) if (tools.read_file({path: `src/m${i}.rs`}).includes('needle')) return i",
        answer: "7",
    },
];

/// Returns the files of the repository, each with its path and its text.
pub fn repository() -> impl Iterator<Item = (String, String)> {
    (0..20).map(|number| {
        let test = if number % 2 == 1 { "#[test]\n" } else { "// plain\n" };
        let word = if number == 7 { "// needle\n" } else { "// padded\n" };
        let rest = format!("// {}\n", "x".repeat(40 + number)).repeat(47);
        (format!("src/m{number}.rs"), format!("let n{number:02} = {number};\n{test}{word}{rest}"))
    })
}
