//! Measures `search_files` over a tree of 10,000 files, against the same work natively by ripgrep's
//! own library.

use crate::floor::Floor;
use crate::report::{self, Series};
use crate::road::Road;
use crate::spawned;
use crate::world::World;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::UTF8;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::{WalkBuilder, WalkState};
use palisade::json;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of folders, and of files in each.
const FOLDERS: usize = 100;
const FILES: usize = 100;
/// Searches of each kind.
const SEARCHES: usize = 20;
/// The pattern, which one file of a hundred matches.
const PATTERN: &str = r"needle_\d+";

pub(crate) fn run(world: &World) {
    let tree = world.workspace().join("tree");
    plant(&tree);
    let floor = Floor::new(world).with_shipped("search", &["search_files"]);
    let road = Road::new(world);
    let input = json!({"pattern": PATTERN, "path": "tree"}).to_string();
    let mut alone = Series::new("ripgrep's library, one thread");
    let mut threads = Series::new("ripgrep's library, every core");
    let mut by_hand = Series::new("hand-written wasmtime");
    let mut through = Series::new("palisade, the library");
    let mut program = Series::new("palisade, its program");
    let mut process = Series::new("a spawned process, `grep -rE`");
    let runtime = crate::on_one_thread();
    for round in 0..=SEARCHES {
        // The first round fills the page cache.
        if round == 1 {
            for series in
                [&mut alone, &mut threads, &mut by_hand, &mut through, &mut program, &mut process]
            {
                series.forget();
            }
        }
        assert_eq!(alone.run(|| one_thread(&tree)), FOLDERS);
        assert_eq!(threads.run(|| every_core(&tree)), FOLDERS);
        by_hand.run(|| runtime.block_on(floor.call("search_files", &input)));
        through.run(|| runtime.block_on(road.call("search_files", &input)));
        program.run(|| spawned::palisade(world, ["call", "search_files", input.as_str()]));
        process.run(|| {
            spawned::run("grep", ["-rE".as_ref(), "needle_[0-9]+".as_ref(), tree.as_os_str()])
        });
    }
    report::group(
        "10,000 files of 1 KiB, 100 matches",
        &[alone, threads, by_hand, through, program, process],
    );
}

/// Writes files of about 1 KiB; the last one of each folder has a match.
fn plant(tree: &Path) {
    for folder in 0..FOLDERS {
        let folder = tree.join(format!("folder_{folder:03}"));
        fs::create_dir_all(&folder).expect("a directory");
        for file in 0..FILES {
            let mut text = "let value = compute(first, second); // a line of a file\n".repeat(18);
            if file + 1 == FILES {
                let _ = writeln!(text, "let needle_{file} = 1;");
            }
            fs::write(folder.join(format!("file_{file:03}.rs")), text).expect("a file");
        }
    }
}

/// Returns the matcher with the settings of `rg` and of the tool.
fn matcher() -> RegexMatcher {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .build(PATTERN)
        .expect("a pattern")
}

fn searcher() -> Searcher {
    SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).build()
}

fn walk(tree: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(tree);
    walk.hidden(false).require_git(false);
    walk
}

/// Returns the number of matches in one file.
fn matches(searcher: &mut Searcher, matcher: &RegexMatcher, path: &Path) -> usize {
    let mut found = 0;
    let sink = UTF8(|_, line| {
        found += line.len().min(1);
        Ok(true)
    });
    searcher.search_path(matcher, path, sink).expect("a file that can be searched");
    found
}

/// Searches in the order of the names, as the tool does.
fn one_thread(tree: &Path) -> usize {
    let (matcher, mut searcher) = (matcher(), searcher());
    let files = walk(tree).sort_by_file_name(Ord::cmp).build().flatten();
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(|entry| matches(&mut searcher, &matcher, entry.path())).sum()
}

/// Searches in any order with all cores, as `rg` does.
fn every_core(tree: &Path) -> usize {
    let (matcher, found) = (matcher(), AtomicUsize::new(0));
    walk(tree).build_parallel().run(|| {
        let (mut searcher, matcher, found) = (searcher(), matcher.clone(), &found);
        Box::new(move |entry| {
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
            {
                found.fetch_add(matches(&mut searcher, &matcher, entry.path()), Ordering::Relaxed);
            }
            WalkState::Continue
        })
    });
    found.into_inner()
}
