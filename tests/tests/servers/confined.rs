//! A confined server: the kernel keeps it to the workspace, as it keeps a command of `shell`.

use super::{approved, configure, folder, program};
use palisade_tests::World;

fn confined(more: &str) -> World {
    approved("plain", &format!("confined = true\nread = [\"{}\"]\n{more}", folder().display()))
}

fn call(world: &World, tool: &str, text: &str) -> String {
    let input = serde_json::json!({"text": text}).to_string();
    let words = ["call", tool, &input, "--allow", "network"];
    program(world, &words).env("SECRET", "hush").run().exits_with(0).stdout
}

#[test]
fn confined_server_writes_in_the_workspace_only() {
    let world = confined("");
    assert_eq!(call(&world, "scripted_write", "inside"), "written");
    assert_eq!(world.read("inside").as_deref(), Some("written\n"));
    let outside = world.outer().join("elsewhere").display().to_string();
    assert_eq!(call(&world, "scripted_write", &outside), "refused");
    assert!(!std::path::Path::new(&outside).exists());
}

#[test]
fn server_without_confinement_has_the_rights_of_the_user() {
    let world = approved("plain", "");
    let outside = world.outer().join("elsewhere").display().to_string();
    assert_eq!(call(&world, "scripted_write", &outside), "written");
}

#[test]
fn server_gets_only_the_variables_that_its_table_names() {
    let world = approved("plain", "");
    assert_eq!(call(&world, "scripted_see", "SECRET"), "");
    assert_eq!(call(&world, "scripted_see", "HOME"), world.home().display().to_string());
    let world = confined("");
    assert_ne!(call(&world, "scripted_see", "HOME"), world.home().display().to_string());
    let world = confined("pass = [\"SECRET\"]\nenv = { OWN = \"value\" }");
    assert_eq!(call(&world, "scripted_see", "SECRET"), "hush");
    assert_eq!(call(&world, "scripted_see", "OWN"), "value");
}

#[test]
fn program_of_a_server_in_the_workspace_is_told_before_its_approval() {
    let world = approved("plain", "");
    std::fs::copy(folder().join("scripted.sh"), world.root().join("server.sh")).unwrap();
    let words = r#"["{workspace}/server.sh", "plain", "{workspace}"]"#;
    let table = format!("[mcp.servers.scripted]\ncommand = \"sh\"\nargs = {words}\n");
    std::fs::write(world.home().join(".config/palisade/palisade.toml"), table).unwrap();
    let ran = program(&world, &["mcp", "approve", "scripted", "--yes"]).run().exits_with(0);
    ran.stderr_contains(&["tools that write can change", "server.sh", "outside of the workspace"]);
}

#[test]
fn process_of_a_server_ends_with_the_program() {
    let world = approved("plain", "");
    let pid = world.root().join("pid");
    let line = format!("echo $$ > {}; exec sh \"$@\"", pid.display());
    let script = folder().join("scripted.sh").display().to_string();
    let table = format!(
        "[mcp.servers.scripted]\ncommand = \"sh\"\nargs = [\"-c\", {line:?}, \"sh\", {script:?}, \"plain\", \"{{workspace}}\"]\n"
    );
    std::fs::write(world.home().join(".config/palisade/palisade.toml"), table).unwrap();
    super::approve(&world);
    assert_eq!(call(&world, "scripted_echo", "x"), "x");
    let pid = world.wait_for("pid");
    let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while process.exists() && std::time::Instant::now() < deadline {
        // Poll: the helper ends the process after the program has exited.
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert!(!process.exists(), "the server lives on");
}

#[test]
fn rights_of_a_confined_server_are_shown_before_its_approval() {
    let world = World::new();
    let read = folder().display().to_string();
    for (network, rights, said) in [
        ("", "confined", "; no network;"),
        ("network = true", "confined, with the network", "; the network;"),
    ] {
        let more = format!("confined = true\nread = [\"{read}\", \"~/tools\"]\n{network}");
        configure(&world, "plain", &more);
        let approve = program(&world, &["mcp", "approve", "scripted", "--yes"]);
        let shown = approve.run().exits_with(0).stdout;
        for said in ["the workspace, read-write", said, "the programs of the system", &read] {
            assert!(shown.contains(said), "{said}: {shown}");
        }
        assert!(shown.contains("`~/tools`"), "{shown}");
        let listed = program(&world, &["mcp", "list", "--json"]).run().exits_with(0).json();
        assert_eq!(listed[0]["rights"], rights, "{listed}");
    }
}

#[test]
fn program_that_is_no_server_is_told_what_it_lacks() {
    let world = World::new();
    configure(&world, "plain", "");
    let keeps_running = "a server of MCP keeps running and answers on its standard output";
    let links = "also the directories that links in them lead to";
    for (table, is_said, is_not_said) in [
        ("command = \"true\"", &[keeps_running][..], &[links][..]),
        ("command = \"false\"", &[], &[keeps_running, links]),
        ("command = \"false\"\nconfined = true", &[links], &[keeps_running]),
    ] {
        let file = world.home().join(".config/palisade/palisade.toml");
        std::fs::write(file, format!("[mcp.servers.scripted]\n{table}\n")).unwrap();
        let ran = program(&world, &["mcp", "approve", "scripted", "--yes"]).run().exits_with(5);
        assert!(is_said.iter().all(|said| ran.stderr.contains(said)), "{table}: {}", ran.stderr);
        let is_quiet = !is_not_said.iter().any(|said| ran.stderr.contains(said));
        assert!(is_quiet, "{table}: {}", ran.stderr);
    }
}
