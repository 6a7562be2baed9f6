//! Runs tests: alone, to learn which faults each of them reaches, and with a fault switched on.

use super::build::{Binary, Built};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The timeout of tests: this time, and this multiple of their time without a fault.
const TIME: (Duration, u32) = (Duration::from_secs(8), 3);
/// The time between two polls of the tests' output.
const PAUSE: Duration = Duration::from_millis(10);
/// The memory limit of a process, in KiB: a fault may cause endless allocation.
const MEMORY: u64 = 6 << 20;

/// A test, and the faults that it reaches.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) binary: Binary,
    pub(super) name: String,
    pub(super) time: Duration,
    pub(super) reaches: BTreeSet<usize>,
}

/// The verdict of some tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// The name of a failed test, or the exit status of the process.
    Failed(String),
    /// The tests reached their timeout.
    Endless,
}

/// A runner of tests.
pub(super) struct TestRunner {
    /// The directory of the switch, of the tests' output, and of the faults that they reach.
    home: PathBuf,
    /// The compiled guests: a copy made without a fault, and the cache of the suites.
    compiled: [PathBuf; 2],
    /// The temporary directory of the tests.
    scratch: tempfile::TempDir,
}

impl TestRunner {
    pub(super) fn new(home: &Path, built: &Built) -> anyhow::Result<Self> {
        for folder in ["switch", "reach"] {
            fs::create_dir_all(home.join(folder)).with_context(|| format!("creating {folder}"))?;
        }
        let _ = fs::remove_file(home.join("switch/reached"));
        // The suites share the cache of their nearest ancestor process of this name
        // (tests/src/caches.rs).
        fs::write("/proc/self/comm", "cargo-mutants").context("setting the process name")?;
        let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        let start = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(19))
            .context("no start time in /proc/self/stat")?;
        let cache = built.cache.join(format!("{}-{start}", std::process::id()));
        let scratch = tempfile::tempdir().context("a temporary directory")?;
        Ok(Self { home: home.to_owned(), compiled: [home.join("compiled"), cache], scratch })
    }

    /// Returns every test of these executables, with the faults that it reaches.
    pub(super) fn tests(&self, binaries: &[Binary]) -> anyhow::Result<Vec<Test>> {
        self.restore()?;
        let mut tests = Vec::new();
        for binary in binaries {
            tests.extend(self.of_binary(binary)?);
        }
        let reach = tests.iter().any(|test: &Test| !test.reaches.is_empty());
        anyhow::ensure!(reach, "the tests reach no fault, so the switch does not work");
        Ok(tests)
    }

    fn of_binary(&self, binary: &Binary) -> anyhow::Result<Vec<Test>> {
        let kept = self.home.join("reach").join(binary.path.file_name().unwrap_or_default());
        let time = |path: &Path| {
            fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
        };
        if time(&kept) < time(&binary.path) {
            let start = Instant::now();
            let lines = self.reached(binary)?;
            println!("{}: reach of {} tests, {:.0?}", binary.name, lines.len(), start.elapsed());
            fs::write(&kept, lines.join("\n")).context("storing the reach of tests")?;
            copy(&self.compiled[1], &self.compiled[0])?;
        }
        let text = fs::read_to_string(&kept).context("reading the reach of tests")?;
        Ok(text.lines().filter_map(|line| test(binary, line)).collect())
    }

    /// Runs each test of an executable alone, and returns a line for each: its name, its time, and
    /// the faults that it reaches.
    fn reached(&self, binary: &Binary) -> anyhow::Result<Vec<String>> {
        let list = Command::new(&binary.path)
            .args(["--list", "--format", "terse", "--skip", "oracle::"])
            .output();
        let list =
            String::from_utf8(list.context("listing tests")?.stdout).context("a list of tests")?;
        self.switch(0)?;
        // A pipe instead of a file: processes with a file size limit of zero can write to it. Both
        // ends are open here, so that opening it never blocks.
        let reached = self.home.join("switch/reached");
        let made = Command::new("mkfifo").arg(&reached).status().context("running mkfifo")?;
        anyhow::ensure!(made.success(), "mkfifo ended with {made}");
        let pipe =
            fs::File::options().read(true).write(true).open(&reached).context("opening a pipe")?;
        let mut lines = Vec::new();
        let mut reader = BufReader::new(pipe.try_clone().context("a second end of a pipe")?);
        for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
            let (verdict, took, numbers) = self.run_watched(binary, name, &pipe, &mut reader)?;
            if verdict == Verdict::Passed {
                lines.push(format!("{name}\t{}\t{}", took.as_millis(), numbers.join(",")));
            } else {
                println!("{}: {name} fails without a fault, and is excluded", binary.name);
            }
        }
        fs::remove_file(&reached).context("removing the switch")?;
        Ok(lines)
    }

    /// Runs a test, and returns its verdict, its time, and the faults that it reported through the
    /// pipe.
    fn run_watched(
        &self,
        binary: &Binary,
        name: &str,
        mut pipe: &fs::File,
        reader: &mut (impl BufRead + Send),
    ) -> anyhow::Result<(Verdict, Duration, Vec<String>)> {
        std::thread::scope(|scope| {
            let numbers = scope.spawn(|| {
                let lines = reader.lines().map_while(Result::ok).take_while(|line| line != "end");
                lines.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
            });
            let start = Instant::now();
            let verdict = self.run(binary, &[name], Duration::from_secs(120));
            let took = start.elapsed();
            pipe.write_all(b"end\n").context("writing to a pipe")?;
            let numbers = numbers.join().map_err(|_| anyhow::anyhow!("the reader panicked"))?;
            Ok((verdict?, took, numbers))
        })
    }

    /// Switches a fault on, and runs the tests that reach it, the fastest first, until one fails.
    pub(super) fn judge(&self, number: usize, tests: &[&Test]) -> anyhow::Result<Verdict> {
        let mut tests: Vec<&Test> = tests.to_vec();
        tests.sort_by_key(|test| test.time);
        let (mut budget, mut verdict) = (Duration::from_millis(500), Verdict::Passed);
        while !tests.is_empty() && verdict == Verdict::Passed {
            let mut sum = Duration::ZERO;
            let few = tests
                .iter()
                .take_while(|test| (sum < budget).then(|| sum += test.time).is_some())
                .count();
            let rest = tests.split_off(few);
            verdict = self.judge_few(number, &tests)?;
            (tests, budget) = (rest, budget * 4);
        }
        self.clean()?;
        Ok(verdict)
    }

    fn judge_few(&self, number: usize, tests: &[&Test]) -> anyhow::Result<Verdict> {
        let programs: BTreeSet<&Path> =
            tests.iter().map(|test| test.binary.path.as_path()).collect();
        for program in programs {
            let own: Vec<&Test> =
                tests.iter().filter(|test| test.binary.path == program).copied().collect();
            let verdict = self.judge_binary(number, &own)?;
            if verdict != Verdict::Passed {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Passed)
    }

    /// Runs tests of one executable. The load of the machine must not decide: a failure counts if
    /// it is repeated, and a timeout counts if the tests pass without the fault.
    fn judge_binary(&self, number: usize, tests: &[&Test]) -> anyhow::Result<Verdict> {
        let Some(first) = tests.first() else { return Ok(Verdict::Passed) };
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let time = tests.iter().map(|test| test.time).sum::<Duration>() * TIME.1 + TIME.0;
        self.switch(number)?;
        match self.run(&first.binary, &names, time)? {
            Verdict::Passed => Ok(Verdict::Passed),
            Verdict::Failed(by) if names.contains(&by.as_str()) => {
                self.run(&first.binary, &[&by], time)
            }
            Verdict::Failed(_) => self.run(&first.binary, &names, time),
            Verdict::Endless => {
                self.switch(0)?;
                if self.run(&first.binary, &names, time)? == Verdict::Passed {
                    return Ok(Verdict::Endless);
                }
                self.switch(number)?;
                self.run(&first.binary, &names, time * 5)
            }
        }
    }

    fn switch(&self, number: usize) -> anyhow::Result<()> {
        fs::write(self.home.join("switch/on"), number.to_string()).context("writing the switch")
    }

    fn run(&self, binary: &Binary, names: &[&str], time: Duration) -> anyhow::Result<Verdict> {
        let output = self.home.join("output.txt");
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("ulimit -d {MEMORY}; exec \"$@\""),
            "sh",
            "timeout",
            "--signal=KILL",
        ]);
        command.arg(format!("{}", time.as_secs_f64())).arg(&binary.path).arg("--exact").args(names);
        command.current_dir(&binary.directory).env("CARGO_MANIFEST_DIR", &binary.directory);
        command
            .env("TMPDIR", self.scratch.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        // A file instead of a pipe: processes that outlive their test do not keep it open for us.
        let file = fs::File::create(&output).context("creating a file")?;
        let start = Instant::now();
        let mut child =
            command.stderr(file.try_clone()?).stdout(file).spawn().context("running tests")?;
        let failed = || {
            let text = String::from_utf8_lossy(&fs::read(&output).ok()?).into_owned();
            text.lines().find_map(|line| {
                Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned())
            })
        };
        loop {
            let status = child.try_wait().context("waiting for tests")?;
            match (failed(), status) {
                (Some(name), None) => {
                    // The other tests need not finish; `timeout` passes the signal on.
                    Command::new("kill")
                        .arg(child.id().to_string())
                        .status()
                        .context("running kill")?;
                    child.wait().context("waiting for tests")?;
                    return Ok(Verdict::Failed(name));
                }
                (_, Some(status)) if status.success() => return Ok(Verdict::Passed),
                (_, Some(_)) if start.elapsed() >= time => return Ok(Verdict::Endless),
                (name, Some(status)) => {
                    return Ok(Verdict::Failed(name.unwrap_or_else(|| status.to_string())));
                }
                (None, None) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Removes the files that the tests left behind, so that they do not affect the next fault.
    fn clean(&self) -> anyhow::Result<()> {
        for entry in fs::read_dir(self.scratch.path())?.flatten() {
            let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        }
        if listing(&self.compiled[0]) != listing(&self.compiled[1]) {
            self.restore()?;
        }
        Ok(())
    }

    fn restore(&self) -> anyhow::Result<()> {
        if self.compiled[0].exists() { copy(&self.compiled[0], &self.compiled[1]) } else { Ok(()) }
    }
}

fn test(binary: &Binary, line: &str) -> Option<Test> {
    let mut cells = line.split('\t');
    let (name, time) =
        (cells.next()?.to_owned(), Duration::from_millis(cells.next()?.parse().ok()?));
    let reaches = cells.next()?.split(',').filter_map(|number| number.parse().ok()).collect();
    Some(Test { binary: binary.clone(), name, time, reaches })
}

/// Returns the names, sizes and times of all files below a directory.
fn listing(folder: &Path) -> BTreeSet<(PathBuf, u64, SystemTime)> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = PathBuf::from(entry.file_name());
        match entry.metadata() {
            Ok(data) if data.is_dir() => {
                all.extend(
                    listing(&entry.path())
                        .into_iter()
                        .map(|(file, size, time)| (name.join(file), size, time)),
                );
            }
            Ok(data) => drop(all.insert((
                name,
                data.len(),
                data.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            ))),
            Err(_) => {}
        }
    }
    all
}

/// Replaces a directory by a copy of another one, with times and permissions.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to.parent().context("a directory without a parent")?)?;
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().context("running cp")?;
    anyhow::ensure!(status.success(), "cp ended with {status}");
    Ok(())
}
