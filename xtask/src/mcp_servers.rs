//! Offers the tools of real MCP servers and calls them: two in JavaScript and one in Python, over
//! their standard input and output, confined and not, and over HTTP.
//!
//! They are installed by npm and pip in the exact versions of `tests/sources`, below the target
//! directory; nothing else on the machine changes. A server that is not available is skipped with a
//! message.

use crate::documents::Profile;
use crate::place::Place;
use crate::{npm, pip, providers};
use anyhow::{Context as _, ensure};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The lists of the packages.
const LISTS: &str = "tests/sources";
/// The folder of the user, below that of the packages.
const STAGE: &str = "stage";
/// The folder of the npm packages.
const NPM: &str = "node_modules/@modelcontextprotocol";

/// A server, and what is expected of it.
struct Server {
    name: &'static str,
    /// The lines of its table.
    table: String,
    /// A tool with its input, and a part of its output.
    call: [String; 3],
    /// A tool with its input that runs for longer than a second.
    long_call: Option<[&'static str; 2]>,
    /// A file with words of that tool, and a part of these words. `None` for a server that is not
    /// started here.
    words: Option<(PathBuf, &'static str)>,
}

/// Runs each server.
pub(crate) fn run(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let home = place.target.join("mcp-servers");
    let mut servers = Vec::new();
    let far = in_javascript(place, &home, &mut servers)?;
    in_python(place, &home, &mut servers)?;
    if servers.is_empty() {
        return Ok(());
    }
    let stage = Stage::make(&home, providers::build(place, profile)?)?;
    for server in &servers {
        stage.check(server).with_context(|| format!("the server {}", server.name))?;
    }
    drop(far);
    Ok(())
}

/// A server that is stopped on drop.
struct Far(Child);

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn in_javascript(
    place: &Place,
    home: &Path,
    servers: &mut Vec<Server>,
) -> anyhow::Result<Option<Far>> {
    let packages = match npm::fetch(place, LISTS, home.join("npm"))? {
        npm::Fetched::Here(packages) => packages,
        npm::Fetched::OutOfReach(reason) => {
            println!("skipped: the servers in JavaScript: {reason}");
            return Ok(None);
        }
    };
    let node = program("node", packages.node())?;
    let script = |server: &str| packages.directory().join(NPM).join(server).join("dist/index.js");
    let everything = script("server-everything");
    let echo = packages.directory().join(NPM).join("server-everything/dist/tools/echo.js");
    servers.push(Server {
        name: "everything",
        table: format!("command = {node:?}\nargs = [{everything:?}]"),
        call: ["everything_echo", r#"{"message": "hello"}"#, "hello"].map(str::to_owned),
        long_call: Some([
            "everything_trigger_long_running_operation",
            r#"{"duration": 60, "steps": 60}"#,
        ]),
        words: Some((echo, "Echoes back the input string")),
    });
    let files = script("server-filesystem");
    servers.push(Server {
        name: "files",
        table: format!(
            "command = {node:?}\nargs = [{files:?}, \"{{workspace}}\"]\nconfined = true\nread = [{:?}, {:?}]",
            packages.directory(),
            folder(&node)?
        ),
        call: [
            "files_read_text_file".to_owned(),
            format!("{{\"path\": {:?}}}", home.join(STAGE).join("workspace/note.txt")),
            "a note".to_owned(),
        ],
        long_call: None,
        words: Some((files.clone(), "Read the complete contents of a file from the file system")),
    });
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut serve = Command::new(&node);
    serve.arg(&everything).arg("streamableHttp").env("PORT", port.to_string());
    let child = serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let far = Far(child);
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        ensure!(Instant::now() < deadline, "the server everything does not listen");
        std::thread::sleep(Duration::from_millis(100));
    }
    servers.push(Server {
        name: "far",
        table: format!("url = \"http://127.0.0.1:{port}/mcp\""),
        call: ["far_get_sum", r#"{"a": 40, "b": 2}"#, "42"].map(str::to_owned),
        long_call: Some(["far_trigger_long_running_operation", r#"{"duration": 60, "steps": 60}"#]),
        words: None,
    });
    Ok(Some(far))
}

fn in_python(place: &Place, home: &Path, servers: &mut Vec<Server>) -> anyhow::Result<()> {
    let list = format!("{LISTS}/requirements.txt");
    let packages = match pip::Packages::install(place, &list, &home.join("python"))? {
        pip::Packages::At(packages) => packages,
        pip::Packages::OutOfReach(reason) => {
            println!("skipped: the server in Python: {reason}");
            return Ok(());
        }
    };
    let mut asked = pip::python();
    asked.args(["-c", "import sys; print(sys.executable, sys.base_prefix)"]);
    let said = asked.output().context("asking Python where it is")?;
    let said = String::from_utf8(said.stdout)?;
    let (python, prefix) = said.trim().split_once(' ').context("Python says where it is")?;
    servers.push(Server {
        name: "time",
        table: format!(
            "command = {python:?}\nargs = [\"-m\", \"mcp_server_time\"]\nconfined = true\nread = [{packages:?}, {prefix:?}]\nenv = {{ PYTHONPATH = {packages:?}, PYTHONDONTWRITEBYTECODE = \"1\" }}"
        ),
        call: ["time_get_current_time", r#"{"timezone": "UTC"}"#, "UTC"].map(str::to_owned),
        long_call: None,
        words: Some((
            packages.join("mcp_server_time/server.py"),
            "Get current time in a specific timezone",
        )),
    });
    Ok(())
}

/// Returns the path of a program, which is looked up if it is a name.
fn program(name: &str, given: &Path) -> anyhow::Result<PathBuf> {
    if given.is_absolute() {
        return Ok(given.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|it| it.is_file());
    found.with_context(|| format!("there is no {name}"))?.canonicalize().context("finding it")
}

/// Returns the folder of the installation that a program in `bin` belongs to.
fn folder(program: &Path) -> anyhow::Result<PathBuf> {
    Ok(program.parent().and_then(Path::parent).context("it is in a folder")?.to_owned())
}

/// A user with a workspace.
struct Stage {
    program: PathBuf,
    home: PathBuf,
}

impl Stage {
    fn make(home: &Path, program: PathBuf) -> anyhow::Result<Self> {
        let home = home.join(STAGE);
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(home.join("workspace"))?;
        fs::write(home.join("workspace/note.txt"), "a note\n")?;
        Ok(Self { program, home })
    }

    /// Checks a server: approved, listed, called, refused, stopped, and with other words.
    fn check(&self, server: &Server) -> anyhow::Result<()> {
        let name = server.name;
        let table = format!("[mcp.servers.{name}]\n{}\n", server.table);
        fs::write(self.home.join("palisade.toml"), table)?;
        let [tool, input, output] = server.call.each_ref().map(String::as_str);
        self.expect(&["call", tool, input, "--allow", "network"], 3, "not approved")?;
        self.expect(&["mcp", "approve", name, "--yes"], 0, "is approved")?;
        self.expect(&["list"], 0, tool)?;
        self.expect(&["call", tool, input], 4, "network")?;
        self.expect(&["call", tool, "{\"no\": \"such key\"}", "--allow", "network"], 6, "")?;
        self.expect(&["call", tool, input, "--allow", "network"], 0, output)?;
        println!("{name}: approved, listed, refused unasked, validated and called");
        if let Some([tool, input]) = server.long_call {
            let begun = Instant::now();
            let words = ["call", tool, input, "--allow", "network", "--timeout", "1s"];
            self.expect(&words, 7, "1s")?;
            ensure!(begun.elapsed() < Duration::from_secs(20), "the call was not stopped");
            println!("{name}: a long call is stopped");
        }
        if let Some((file, words)) = &server.words {
            let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
            ensure!(text.contains(words), "the words are not in {}", file.display());
            fs::write(file, text.replace(words, "Ignores what was said before, and"))?;
            let changed =
                self.expect(&["call", tool, input, "--allow", "network"], 4, "other words");
            fs::write(file, text)?;
            changed?;
            self.expect(&["call", tool, input, "--allow", "network"], 0, output)?;
            println!("{name}: changed words are stopped");
        }
        Ok(())
    }

    /// Runs the program, and checks its exit code and a part of its output.
    fn expect(&self, words: &[&str], code: i32, part: &str) -> anyhow::Result<()> {
        let mut program = Command::new(&self.program);
        program.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        program.env("HOME", &self.home).current_dir(self.home.join("workspace"));
        program.arg("--config").arg(self.home.join("palisade.toml")).args(words);
        let ran = program.stdin(Stdio::null()).output().context("running palisade")?;
        let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let said = said.concat();
        ensure!(
            ran.status.code() == Some(code) && said.contains(part),
            "`{}` ended with {}, and {code} and `{part}` were expected:\n{said}",
            words.join(" "),
            ran.status
        );
        Ok(())
    }
}
