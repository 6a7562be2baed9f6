//! Running tests: alone, to learn which faults each of them reaches, and with a fault on.

use super::build::{Binary, Built};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// What tests get at least, and how many times what they take without a fault.
const TIME: (Duration, u32) = (Duration::from_secs(8), 3);
/// Between two looks at what tests say.
const PAUSE: Duration = Duration::from_millis(10);
/// What a process may take of memory, in KiB: a fault may ask for more and more.
const MEMORY: u64 = 6 << 20;

/// One test, and what it reaches.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) binary: Binary,
    pub(super) name: String,
    pub(super) time: Duration,
    pub(super) reaches: BTreeSet<usize>,
}

/// How some tests ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Passed,
    /// With the name of a test that failed, or how the process ended.
    Failed(String),
    Endless,
}

/// Where tests are run.
pub(super) struct Stand {
    /// The switch, what tests write, and what they reach.
    home: PathBuf,
    /// What the guests of the suites were compiled to before a fault was on, and where the suites
    /// look for it.
    compiled: [PathBuf; 2],
    /// The temporary directory of the tests.
    scratch: tempfile::TempDir,
}

impl Stand {
    pub(super) fn new(home: &Path, built: &Built) -> anyhow::Result<Self> {
        for folder in ["switch", "reach"] {
            fs::create_dir_all(home.join(folder)).with_context(|| format!("creating {folder}"))?;
        }
        let _ = fs::remove_file(home.join("switch/reached"));
        // The suites share compiled code below the nearest program of this name
        // (tests/src/caches.rs).
        fs::write("/proc/self/comm", "cargo-mutants").context("taking a name")?;
        let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        let start = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(19))
            .context("no start")?;
        let cache = built.cache.join(format!("{}-{start}", std::process::id()));
        let scratch = tempfile::tempdir().context("a temporary directory")?;
        Ok(Self { home: home.to_owned(), compiled: [home.join("compiled"), cache], scratch })
    }

    /// Every test of these programs, with what it reaches.
    pub(super) fn tests(&self, binaries: &[Binary]) -> anyhow::Result<Vec<Test>> {
        self.restore()?;
        let mut tests = Vec::new();
        for binary in binaries {
            tests.extend(self.of_binary(binary)?);
        }
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
            println!("{}: what {} tests reach, {:.0?}", binary.name, lines.len(), start.elapsed());
            fs::write(&kept, lines.join("\n")).context("keeping what tests reach")?;
            copied(&self.compiled[1], &self.compiled[0])?;
        }
        let text = fs::read_to_string(&kept).context("reading what tests reach")?;
        Ok(text.lines().filter_map(|line| test(binary, line)).collect())
    }

    /// Each test of a program, in a line: its name, what it takes, what it reaches.
    fn reached(&self, binary: &Binary) -> anyhow::Result<Vec<String>> {
        let list = Command::new(&binary.path)
            .args(["--list", "--format", "terse", "--skip", "oracle::"])
            .output();
        let list =
            String::from_utf8(list.context("listing tests")?.stdout).context("a list of tests")?;
        self.switch(0)?;
        // A pipe, since processes that may write no file write to it as well; kept open here, so
        // that nobody waits for its other end.
        let reached = self.home.join("switch/reached");
        let made = Command::new("mkfifo").arg(&reached).status().context("running mkfifo")?;
        anyhow::ensure!(made.success(), "mkfifo ended with {made}");
        let pipe =
            fs::File::options().read(true).write(true).open(&reached).context("opening a pipe")?;
        let mut lines = Vec::new();
        let mut reader = BufReader::new(pipe.try_clone().context("a second end of a pipe")?);
        for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
            let (ended, took, numbers) = self.watched(binary, name, &pipe, &mut reader)?;
            if ended == Ended::Passed {
                lines.push(format!("{name}\t{}\t{}", took.as_millis(), numbers.join(",")));
            } else {
                println!("{}: {name} fails without a fault, and is left out", binary.name);
            }
        }
        fs::remove_file(&reached).context("removing the switch")?;
        Ok(lines)
    }

    /// How a test ends, what it takes, and the numbers that come out of the pipe meanwhile.
    fn watched(
        &self,
        binary: &Binary,
        name: &str,
        mut pipe: &fs::File,
        reader: &mut (impl BufRead + Send),
    ) -> anyhow::Result<(Ended, Duration, Vec<String>)> {
        std::thread::scope(|scope| {
            let numbers = scope.spawn(|| {
                let lines = reader.lines().map_while(Result::ok).take_while(|line| line != "end");
                lines.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
            });
            let start = Instant::now();
            let ended = self.run(binary, &[name], Duration::from_secs(120));
            let took = start.elapsed();
            pipe.write_all(b"end\n").context("writing to a pipe")?;
            let numbers = numbers.join().map_err(|_| anyhow::anyhow!("no numbers"))?;
            Ok((ended?, took, numbers))
        })
    }

    /// Puts a fault on and runs the tests that reach it, the fastest first, until one fails; tells
    /// that one.
    pub(super) fn judge(&self, number: usize, tests: &[&Test]) -> anyhow::Result<Ended> {
        let mut tests: Vec<&Test> = tests.to_vec();
        tests.sort_by_key(|test| test.time);
        let (mut budget, mut ended) = (Duration::from_millis(500), Ended::Passed);
        while !tests.is_empty() && ended == Ended::Passed {
            let mut sum = Duration::ZERO;
            let few = tests
                .iter()
                .take_while(|test| (sum < budget).then(|| sum += test.time).is_some())
                .count();
            let rest = tests.split_off(few);
            ended = self.judge_few(number, &tests)?;
            (tests, budget) = (rest, budget * 4);
        }
        self.clean()?;
        Ok(ended)
    }

    fn judge_few(&self, number: usize, tests: &[&Test]) -> anyhow::Result<Ended> {
        let programs: BTreeSet<&Path> =
            tests.iter().map(|test| test.binary.path.as_path()).collect();
        for program in programs {
            let own: Vec<&Test> =
                tests.iter().filter(|test| test.binary.path == program).copied().collect();
            let ended = self.judge_at_once(number, &own)?;
            if ended != Ended::Passed {
                return Ok(ended);
            }
        }
        Ok(Ended::Passed)
    }

    /// With tests of one program. What other programs do to the machine must not count: a failure
    /// has to come twice, and tests that do not come to their end with the fault have to come there
    /// without.
    fn judge_at_once(&self, number: usize, tests: &[&Test]) -> anyhow::Result<Ended> {
        let Some(first) = tests.first() else { return Ok(Ended::Passed) };
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let time = tests.iter().map(|test| test.time).sum::<Duration>() * TIME.1 + TIME.0;
        self.switch(number)?;
        match self.run(&first.binary, &names, time)? {
            Ended::Passed => Ok(Ended::Passed),
            Ended::Failed(by) if names.contains(&by.as_str()) => {
                self.run(&first.binary, &[&by], time)
            }
            Ended::Failed(_) => self.run(&first.binary, &names, time),
            Ended::Endless => {
                self.switch(0)?;
                if self.run(&first.binary, &names, time)? == Ended::Passed {
                    return Ok(Ended::Endless);
                }
                self.switch(number)?;
                self.run(&first.binary, &names, time * 5)
            }
        }
    }

    fn switch(&self, number: usize) -> anyhow::Result<()> {
        fs::write(self.home.join("switch/on"), number.to_string()).context("writing the switch")
    }

    fn run(&self, binary: &Binary, names: &[&str], time: Duration) -> anyhow::Result<Ended> {
        let told = self.home.join("told.txt");
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
        // A file, which nobody who is left over can keep open for us.
        let file = fs::File::create(&told).context("creating a file")?;
        let start = Instant::now();
        let mut child =
            command.stderr(file.try_clone()?).stdout(file).spawn().context("running tests")?;
        let failed = || {
            let text = String::from_utf8_lossy(&fs::read(&told).ok()?).into_owned();
            text.lines().find_map(|line| {
                Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned())
            })
        };
        loop {
            let status = child.try_wait().context("waiting for tests")?;
            match (failed(), status) {
                (Some(name), None) => {
                    // The others need not come to their end; what stands between them and us hands
                    // the signal on.
                    Command::new("kill")
                        .arg(child.id().to_string())
                        .status()
                        .context("running kill")?;
                    child.wait().context("waiting for tests")?;
                    return Ok(Ended::Failed(name));
                }
                (_, Some(status)) if status.success() => return Ok(Ended::Passed),
                (_, Some(_)) if start.elapsed() >= time => return Ok(Ended::Endless),
                (name, Some(status)) => {
                    return Ok(Ended::Failed(name.unwrap_or_else(|| status.to_string())));
                }
                (None, None) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// What a fault may have left must not meet the next one.
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
        if self.compiled[0].exists() {
            copied(&self.compiled[0], &self.compiled[1])
        } else {
            Ok(())
        }
    }
}

fn test(binary: &Binary, line: &str) -> Option<Test> {
    let mut cells = line.split('\t');
    let (name, time) =
        (cells.next()?.to_owned(), Duration::from_millis(cells.next()?.parse().ok()?));
    let reaches = cells.next()?.split(',').filter_map(|number| number.parse().ok()).collect();
    Some(Test { binary: binary.clone(), name, time, reaches })
}

/// Names, sizes and times of all files below.
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

/// Copies a directory with times and permissions in place of what is there.
fn copied(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to.parent().context("a directory in no other")?)?;
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().context("running cp")?;
    anyhow::ensure!(status.success(), "cp ended with {status}");
    Ok(())
}
