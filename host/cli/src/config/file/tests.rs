//! Tests of the accepted content of a configuration file and of its error messages.

#![allow(clippy::unwrap_used, reason = "a test that cannot parse its fixture has failed")]
use super::*;

const EXAMPLE: &str = r#"
    [confirm]
    none = "auto"
    read = "auto"
    write = "prompt"
    execute = "prompt"
    network = "prompt"
    timeout = "5m"
    [confirm.tools]
    "git/git_status" = "auto"
    [[trusted]]
    workspace = "~/code/myproject"
    execute = "prompt"
    [limits]
    memory = "128MiB"
    timeout = "60s"
    concurrency = 4
    [plugins]
    directories = ["~/.local/share/palisade/plugins"]
    builtin = true
"#;

#[test]
fn documented_example_is_accepted() {
    let config = FileConfig::parse(EXAMPLE).unwrap();
    assert_eq!(config.classes.get(&SideEffects::Write), Some(&Mode::Prompt));
    assert_eq!(config.tools.get("git/git_status"), Some(&Mode::Auto));
    assert_eq!(config.memory, Some(128 << 20));
    assert_eq!(config.timeout, Some(Duration::from_secs(60)));
    assert_eq!(
        config.trusted.first().and_then(|t| t.overrides.get(&SideEffects::Execute)),
        Some(&Mode::Prompt)
    );
}

#[test]
fn largest_times_are_accepted() {
    let text = "[confirm]\ntimeout = \"24h\"\n[limits]\ntimeout = \"600s\"\ncompile_time = \"1h\"";
    let config = FileConfig::parse(text).unwrap();
    let seconds = [config.confirm_timeout, config.timeout, config.compile_time]
        .map(|time| time.unwrap().as_secs());
    assert_eq!(seconds, [86_400, 600, 3600]);
}

#[test]
fn unknown_key_is_refused_with_suggestion() {
    let error = FileConfig::parse("[limits]\nmemroy = \"1MiB\"").unwrap_err();
    assert!(error.contains("did you mean `memory`?"), "{error}");
}

#[test]
fn out_of_range_value_is_refused_with_the_range() {
    for (text, expected) in [
        ("[limits]\nmemory = \"16TiB\"", "1MiB to 512MiB"),
        ("[limits]\nmemory = \"much\"", "like 128MiB"),
        ("[limits]\nmemory = 128", "with its unit, like \"128MiB\""),
        ("[shell]\nprocesses = 9\nmemory = 128", "with its unit, like \"128MiB\""),
        ("limits.memory = 128", "with its unit, like \"128MiB\""),
        ("[trusted]\nworkspace = \"/srv\"", "write `[[trusted]]`"),
        ("[limits]\ntotal_memory = \"1MiB\"", "512MiB to 16TiB"),
        ("[limits]\ntotal_memory = \"17TiB\"", "512MiB to 16TiB"),
        ("[limits]\ntotal_memory = \"16EiB\"", "512MiB to 16TiB"),
        ("[limits]\ntimeout = \"11m\"", "600s"),
        ("[limits]\ntimeout = \"0s\"", "at least 1ms"),
        ("[limits]\ntimeout = \"1ns\"", "`limits.timeout` is 1ns; give at least 1ms"),
        ("[limits]\ncompile_time = \"999us\"", "`limits.compile_time` is 999us; give at least 1ms"),
        ("[limits.tool_timeout]\nshell = \"1ns\"", "`limits.tool_timeout.shell` is 1ns"),
        ("[confirm]\ntimeout = \"1ns\"", "`confirm.timeout` is 1ns"),
        ("[limits]\ntimeout = \"-1s\"", "like 30s"),
        ("[confirm]\ntimeout = \"24h 1ns\"", "`confirm.timeout` is 24h 1ns; at most 24h"),
        ("[confirm]\ntimeout = \"18446744073709551615s\"", "at most 24h"),
        ("[limits]\ntimeout = \"18446744073709551615s\"", "at most 600s"),
        ("[limits]\ncompile_time = \"18446744073709551615s\"", "at most 1h"),
        ("[limits.tool_timeout]\nshell = \"18446744073709551615s\"", "at most 600s"),
        ("[limits]\ntimeout = 60", "write \"60s\""),
        ("[limits]\ntimeout = -60", "write \"30s\""),
        ("[limits]\ntimeout = 1.5", "write \"30s\""),
        ("[limits.tool_timeout]\nshell = 5", "write \"5s\""),
        ("[confirm]\ntimeout = 300", "write \"300s\""),
        ("[limits]\nconcurrency = 0", "1 to 256"),
        ("[limits]\ncompile_time = \"2h\"", "at most 1h"),
        ("[limits]\ncompile_memory = \"1MiB\"", "256MiB to 64GiB"),
        ("[limits.tool_concurrency]\nshell = 0", "`limits.tool_concurrency.shell` is 0; 1 to 256"),
        ("[limits.tool_timeout]\nshell = \"1h\"", "600s"),
        ("[limits.tool_timeout]\nShell = \"1m\"", "`shell`"),
        ("[[trusted]]\nworkspace = \".\"", "the whole path"),
        ("[shell]\nprocesses = 1", "`shell.processes` is 1; 8 to 32768"),
        ("[shell]\nmemory = \"1MiB\"", "`shell.memory` is 1MiB; 16MiB to 16TiB"),
        ("[shell]\nmemory = \"16EiB\"", "16MiB to 16TiB"),
        ("[workspace]\nhard_links = \"some\"", "refuse and allow"),
        ("[confirm]\nwrite = \"maybe\"", "auto, prompt, prompt_once and deny"),
        ("[confirm.tools]\nRead-File = \"auto\"", "`read_file`"),
        ("[confirm.tools]\n\"files/Read-File\" = \"auto\"", "`read_file`"),
        ("[confirm.tools]\n\"/read_file\" = \"auto\"", "write \"PLUGIN/read_file\""),
        ("[tools]\nhide = [\"Read-File\"]", "`tools.hide`"),
        ("[tools]\nonly = [\"/read_file\"]", "`tools.only`: `/read_file` names no plugin"),
        ("[tools]\nhid = []", "did you mean `hide`?"),
    ] {
        let error = FileConfig::parse(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
