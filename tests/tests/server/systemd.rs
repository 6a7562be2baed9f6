//! The unit for systemd: systemd knows each of its settings, they confine the server, and a server
//! that systemd runs with them makes calls of every kind.

use palisade_tests::World;
use palisade_tests::api::{Sender, until, write};
use palisade_tests::program::executable;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const UNIT: &str = "docs/systemd/palisade.service";
/// The script that boots systemd in namespaces of its own.
const BOOT: &str = "tests/tests/server/systemd/boot.sh";
/// The program and the address in the unit.
const PROGRAM: &str = "/usr/local/bin/palisade";
const ADDRESS: &str = "127.0.0.1:8080";
/// The highest exposure that `systemd-analyze security` may find, in tenths of its levels 0 to 10;
/// those up to 4.0 count as low.
const EXPOSURE: &str = "25";
/// The programs that the container needs.
const PROGRAMS: [&str; 5] = ["/lib/systemd/systemd", "nsenter", "setpriv", "systemctl", "unshare"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn run(program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).stdin(Stdio::null()).output().unwrap()
}

fn is_there(program: &str) -> bool {
    let started = Command::new(program).arg("--version").output();
    started.is_ok_and(|output| output.status.success())
}

/// Writes the unit with other words in place of some of its own.
fn unit(world: &World, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(repository().join(UNIT)).unwrap();
    for (own, other) in changes {
        assert!(text.contains(own), "the unit has no {own}");
        text = text.replace(own, other);
    }
    let file = world.outer().join("palisade.service");
    std::fs::write(&file, text).unwrap();
    file
}

/// Returns what `systemd-analyze` says about a unit, and whether it accepts it.
fn analyze(words: &[&str], unit: &Path) -> (bool, String) {
    let output = run("systemd-analyze", &[words, &[unit.to_str().unwrap()]].concat());
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn every_setting_of_the_unit_is_known_and_together_they_confine() {
    if !is_there("systemd-analyze") {
        palisade_tests::skip("the unit: there is no systemd-analyze");
        return;
    }
    let world = World::new();
    let program = executable();
    let with_program = (PROGRAM, program.to_str().unwrap());
    let sound = unit(&world, &[with_program]);
    assert_eq!(analyze(&["verify", "--man=no"], &sound), (true, String::new()));
    let threshold = format!("--threshold={EXPOSURE}");
    let security = ["security", "--offline=true", "--no-pager", &threshold];
    let (is_low, said) = analyze(&security, &sound);
    assert!(is_low, "{said}");
    // Both tools see a unit that is worse.
    let unknown = unit(&world, &[with_program, ("PrivateTmp=", "PrivateTemp=")]);
    assert!(analyze(&["verify", "--man=no"], &unknown).1.contains("PrivateTemp"));
    let open = unit(&world, &[with_program, ("\nSystemCallFilter=", "\n#")]);
    assert!(!analyze(&security, &open).0, "without a filter of system calls");
}

/// systemd with the unit, as the first process of its own namespaces.
struct Machine {
    script: Child,
    /// The process id of systemd.
    first: String,
}

impl Machine {
    /// Boots, or returns the reason why this machine cannot.
    fn boot(world: &World) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can make all of its namespaces".to_owned());
        }
        if let Some(missing) = PROGRAMS.iter().find(|program| !is_there(program)) {
            return Err(format!("there is no {missing}"));
        }
        let namespaces = ["--mount", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "true"];
        if !run("unshare", &namespaces).status.success() {
            return Err("this system makes no namespaces".to_owned());
        }
        let root = world.outer().join("root");
        std::fs::create_dir(&root).unwrap();
        let unit = unit(world, &[(ADDRESS, "127.0.0.1:0")]);
        let script = Command::new(repository().join(BOOT))
            .args([&root, &executable(), &unit])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut machine = Self { script, first: String::new() };
        let first = world.outer().join("root.pid");
        until("systemd has begun", || {
            let ended = machine.script.try_wait().unwrap();
            assert!(ended.is_none(), "the script ended: {ended:?}");
            first.exists()
        });
        machine.first = std::fs::read_to_string(first).unwrap().trim().to_owned();
        until("systemd answers", || !machine.property("ActiveState").is_empty());
        Ok(machine)
    }

    /// Runs a program inside, and returns its output.
    fn run(&self, words: &[&str]) -> String {
        let inside = ["--target", &self.first, "--mount", "--pid", "--cgroup", "--"];
        let output = run("nsenter", &[&inside, words].concat());
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns a property of the server's unit.
    fn property(&self, name: &str) -> String {
        self.run(&["systemctl", "show", "palisade", "--value", "--property", name])
    }

    /// Returns what the server and systemd have said about it.
    fn log(&self) -> String {
        self.run(&["journalctl", "--unit=palisade", "--no-pager", "--output=cat"])
    }

    /// Waits until the unit is in this state.
    fn wait_for(&self, state: &str) {
        until(&format!("the unit is {state}"), || {
            let is = self.property("ActiveState");
            assert!(is != "failed" || state == "failed", "{}", self.log());
            is == state
        });
    }

    /// Returns a path inside, as it is reached from the outside.
    fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.first))
    }

    /// Returns the address of the server, and the senders of requests with the operator's and the
    /// clients' token.
    fn senders(&self) -> (String, Sender, Sender) {
        let tokens = self.path("/run/palisade/palisade/tokens");
        let mut names = std::fs::read_dir(&tokens).unwrap().flatten().map(|it| it.file_name());
        let operators = names
            .find_map(|name| name.to_str()?.strip_suffix(".operator.token").map(str::to_owned));
        let name = operators.unwrap();
        let address = name.replacen('-', ":", 1);
        let sender = |kind: &str| {
            let token = std::fs::read_to_string(tokens.join(format!("{name}{kind}.token")));
            Sender::new(&address).bearer(token.unwrap().trim())
        };
        let (operator, client) = (sender(".operator"), sender(""));
        (address, operator, client)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Ends everything inside. The script then removes the control group.
        if !self.first.is_empty() {
            run("kill", &["-KILL", &self.first]);
        }
        let _ = self.script.wait();
    }
}

#[test]
fn server_run_by_systemd_makes_every_kind_of_call() {
    let world = World::new();
    let machine = match Machine::boot(&world) {
        Ok(machine) => machine,
        Err(why) => return palisade_tests::skip(&format!("systemd: {why}")),
    };
    machine.wait_for("active");
    let (address, operator, client) = machine.senders();
    until("all plugins are compiled", || operator.get("/readyz").status == 200);
    let plugins = operator.get("/plugins").message();
    assert_eq!(plugins["rejected"], json!([]), "{plugins}");
    assert_eq!(client.post("/sessions", &json!({"id": "s1"})).status, 201);
    calls(&machine, &operator, &client);
    let main = machine.property("MainPID");
    let status = machine.run(&["cat", &format!("/proc/{main}/status")]);
    for line in ["Uid:\t990\t", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "no {line} in {status}");
    }
    // The way to the console that the unit names. The log has neither the link nor a token.
    let url = format!("http://{address}");
    let as_user = ["setpriv", "--reuid=990", "--regid=990", "--clear-groups", "env"];
    let of_unit = ["XDG_STATE_HOME=/var/lib", "XDG_RUNTIME_DIR=/run/palisade", PROGRAM];
    let link = machine.run(&[&as_user[..], &of_unit, &["console", &url]].concat());
    let port = address.rsplit(':').next().expect("a port");
    assert!(link.contains(&format!(".localhost:{port}/#login=")), "{link}");
    let log = machine.log();
    assert!(log.contains(&format!("`palisade console {url}`")), "{log}");
    assert!(!log.contains("#login=") && !log.contains("Bearer"), "{log}");
    // A killed server is started again, and one that is told to end is not.
    machine.run(&["kill", "-KILL", &main]);
    until("it is started again", || {
        let again = machine.property("MainPID");
        again != "0" && again != main
    });
    machine.wait_for("active");
    machine.run(&["systemctl", "stop", "palisade"]);
    machine.wait_for("inactive");
    let log = machine.log();
    assert!(log.trim_end().lines().any(|line| line.contains("Deactivated successfully")), "{log}");
}

/// Makes calls of each class. Those that need an answer are allowed.
fn calls(machine: &Machine, operator: &Sender, client: &Sender) {
    let workspace = machine.path("/srv/workspace");
    let call = |call: &Value| {
        let running = client.begin_call("s1", call);
        let asks = ["write_file", "shell"].iter().any(|tool| call["tool"] == *tool);
        if asks {
            let mut question = Value::Null;
            until("the call asks", || {
                question = operator.get("/confirmations").message()["items"][0].clone();
                !question.is_null() || running.is_finished()
            });
            assert!(!question.is_null(), "{}", running.join().unwrap());
            assert_eq!(operator.decide(&question, "allow").status, 200);
        }
        running.join().unwrap()
    };
    let result = call(&json!({"tool": "calculate", "input": {"expression": "6 * 7"}}));
    assert_eq!(result["output"], "42", "{result}");
    let result = call(&write("c1", "a.txt"));
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "written\n");
    let result = call(&json!({"tool": "read_file", "input": {"path": "a.txt"}}));
    assert_eq!(result["output"], "written\n", "{result}");
    // A command writes in the workspace, and not where only Landlock keeps it from writing.
    let command = "cp a.txt b.txt; (touch /tmp/planted /var/lib/palisade/planted) 2>&1; echo end";
    let result = call(&json!({"tool": "shell", "input": {"command": command}}));
    let said = result["output"].as_str().unwrap_or_else(|| panic!("{result}"));
    assert!(said.trim_end().ends_with("end"), "{said}");
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
    assert_eq!(std::fs::read_to_string(workspace.join("b.txt")).unwrap(), "written\n");
}
