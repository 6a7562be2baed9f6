//! Tests of the precedence of values, and of the rule that a project only tightens.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]
use super::*;

fn settings(user: &str, project: &str) -> Result<Settings, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let user_file = dir.path().join("user.toml");
    let project_file = dir.path().join("palisade.toml");
    std::fs::write(&user_file, user).unwrap();
    std::fs::write(&project_file, project).unwrap();
    Settings::from_files(&user_file, &project_file)
}

#[test]
fn stricter_project_setting_wins() {
    let settings = settings(
        "[limits]\nmemory = \"256MiB\"\ntimeout = \"30s\"",
        "[limits]\nmemory = \"64MiB\"\n[confirm]\nread = \"deny\"",
    )
    .unwrap();
    assert_eq!(
        settings.limits(),
        Limits { memory: 64 << 20, timeout: Some(Duration::from_secs(30)), ..Limits::default() }
    );
    assert_eq!(settings.policy(Path::new(".")).class(SideEffects::Read), Mode::Deny);
}

#[test]
fn loosening_project_is_refused_with_key_and_file() {
    for (project, key) in [
        ("[confirm]\nwrite = \"auto\"", "confirm.write"),
        ("[confirm.tools]\nwrite_file = \"auto\"", "confirm.tools.write_file"),
        ("[confirm.tools]\n\"files/write_file\" = \"auto\"", "confirm.tools.files/write_file"),
        ("[confirm.tools]\n\"x/y\" = \"prompt_once\"", "confirm.tools.x/y"),
        ("[[trusted]]\nworkspace = \"/x\"", "trusted"),
        ("[limits]\nmemory = \"512MiB\"", "limits.memory"),
        ("[limits]\ntotal_memory = \"64GiB\"", "limits.total_memory"),
        ("[limits]\ntimeout = \"600s\"", "limits.timeout"),
        ("[limits]\nconcurrency = 5", "limits.concurrency"),
        ("[limits.tool_concurrency]\nshell = 9", "limits.tool_concurrency.shell"),
        ("[confirm]\ntimeout = \"1day\"", "confirm.timeout"),
        ("[limits]\ncompile_time = \"181s\"", "limits.compile_time"),
        ("[limits]\ncompile_memory = \"3GiB\"", "limits.compile_memory"),
        ("[paths]\ncommands = \"allow\"", "paths.commands"),
        ("[journal]\ninputs = \"digest\"", "journal"),
        ("[network]\nname_server = \"192.0.2.53\"", "network.name_server"),
        ("[mcp.servers.git]\ncommand = \"x\"", "mcp.servers.git"),
        ("[plugins]\ndirectories = [\"evil\"]", "plugins.directories"),
        ("[[adapt]]\nfile = \"/x.wasm\"\nclass = \"none\"", "adapt"),
        ("[shell]\nunconfined = true", "shell.unconfined"),
        ("[shell]\nnetwork = true", "shell.network"),
        ("[shell]\nprocesses = 1025", "shell.processes"),
        ("[shell]\nmemory = \"16TiB\"", "shell.memory"),
        ("[workspace]\nmay_hang = false", "workspace.may_hang"),
        ("[workspace]\nhard_links = \"allow\"", "workspace.hard_links"),
        ("[plugins.p]\nmemory = \"129MiB\"", "plugins.p.memory"),
        ("[plugins.p]\nprefix = \"p_\"", "plugins.p.prefix"),
        ("[plugins.p.rename]\na = \"b\"", "plugins.p.rename"),
        ("[plugins.p.config]", "plugins.p.config"),
        ("[plugins.p]\nworkspace = \"notes\"", "plugins.p.workspace"),
    ] {
        let error = settings("", project).unwrap_err().to_string();
        assert!(error.contains(&format!("`{key}`")) && error.contains("user.toml"), "{error}");
    }
}

#[test]
fn project_cannot_lift_a_trusted_workspaces_prompt() {
    let user = "[confirm]\nwrite = \"auto\"\nexecute = \"auto\"\nnetwork = \"auto\"\n[[trusted]]\nworkspace = \"/\"\nexecute = \"prompt\"";
    for mode in ["auto", "prompt_once"] {
        let error = settings(user, &format!("[confirm.tools]\nshell = \"{mode}\""))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`confirm.tools.shell`"), "{error}");
    }
    assert!(settings(user, "[confirm.tools]\nshell = \"prompt\"").is_ok());
}

#[test]
fn strictest_of_several_workspace_entries_applies() {
    let user = "[[trusted]]\nworkspace = \"/\"\n[[trusted]]\nworkspace = \"/\"\nexecute = \"deny\"\n[[trusted]]\nworkspace = \"/\"\nexecute = \"auto\"";
    let policy = settings(user, "").unwrap().policy(Path::new("/"));
    let tool = palisade::Definition::new(
        "t",
        "A tool.",
        SideEffects::Execute,
        serde_json::json!({"type": "object"}),
    );
    assert_eq!(policy.decide(&tool.unwrap(), &palisade::registry::Origin::Native), Mode::Deny);
}

#[test]
fn project_cannot_loosen_a_limit_by_naming_the_plugin() {
    for (key, user, looser, tighter) in
        [("tool_timeout", "\"5s\"", "\"9s\"", "\"4s\""), ("tool_concurrency", "2", "3", "1")]
    {
        let file = |tool: &str, value: &str| format!("[limits.{key}]\n\"{tool}\" = {value}");
        for named in ["slow", "plugin/slow"] {
            let user = file(named, user);
            assert!(settings(&user, &file("plugin/slow", looser)).is_err(), "{key} {named}");
            assert!(settings(&user, &file("plugin/slow", tighter)).is_ok(), "{key} {named}");
        }
    }
    assert!(settings("[limits.tool_timeout]\n\"/slow\" = \"5s\"", "").is_err());
}

#[test]
fn project_may_only_lower_a_tool_timeout() {
    let project = "[limits.tool_timeout]\nslow = \"5s\"";
    let five = Duration::from_secs(5);
    let of = |held: Settings| held.tool_time("slow", held.tool_timeout["slow"].value);
    assert_eq!(
        of(settings("", project).unwrap()),
        ToolTime::AtMost(five),
        "a plugin's own may be shorter"
    );
    assert_eq!(of(settings(project, "").unwrap()), ToolTime::Set(five));
    assert!(settings("[limits.tool_timeout]\nslow = \"9s\"", project).is_ok());
    assert!(settings("[limits.tool_timeout]\nslow = \"4s\"", project).is_err());
}

#[test]
fn project_may_refuse_hard_links() {
    let user = "[workspace]\nhard_links = \"allow\"";
    assert_eq!(settings(user, "").unwrap().hard_links.value, HardLinks::Allow);
    assert_eq!(
        settings(user, "[workspace]\nhard_links = \"refuse\"").unwrap().hard_links.value,
        HardLinks::Refuse
    );
}

#[test]
fn environment_overrides_files() {
    let mut settings = settings("[limits]\nmemory = \"256MiB\"", "").unwrap();
    settings
        .apply_environment(|name| (name == "PALISADE_MEMORY").then(|| "32MiB".to_owned()))
        .unwrap();
    assert_eq!(
        settings.memory,
        Value { value: 32 << 20, origin: Origin::Environment("PALISADE_MEMORY") }
    );
}

#[test]
fn project_tightens_a_users_rule_under_either_name() {
    let user = "[confirm.tools]\n\"csv/chart\" = \"auto\"";
    for (name, mode) in [("chart", "prompt"), ("csv/chart", "prompt_once"), ("csv/chart", "deny")] {
        let held = settings(user, &format!("[confirm.tools]\n\"{name}\" = \"{mode}\"")).unwrap();
        let object = serde_json::json!({"type": "object"});
        let chart =
            palisade::Definition::new("chart", "A tool.", SideEffects::Write, object).unwrap();
        let origin = palisade::registry::Origin::Plugin {
            name: "csv".into(),
            digest: palisade::tool::Digest::from_bytes([1; 32]),
            source: palisade::registry::Source::File("/p/csv.wasm".into()),
        };
        assert_eq!(held.policy(Path::new(".")).decide(&chart, &origin).as_str(), mode, "{name}");
    }
    for name in ["chart", "other/chart"] {
        let error = settings(user, &format!("[confirm.tools]\n\"{name}\" = \"auto\""))
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("`confirm.tools.{name}`")), "{error}");
    }
}

#[test]
fn project_lowers_a_plugins_limits_and_adds_path_rules() {
    let user = "[plugins.p]\nmemory = \"256MiB\"\ntimeout = \"2m\"\npaths.deny = [\"a\"]";
    let project = "[plugins.p]\nmemory = \"64MiB\"\ntimeout = \"1m\"\npaths.deny = [\"b\"]";
    let both = settings(user, project).unwrap().plugins.remove("p").unwrap();
    let effect = |options: &PluginOptions| {
        let (memory, timeout) = (options.memory.clone().unwrap(), options.timeout.clone().unwrap());
        (memory.value.value >> 20, memory.effect, timeout.value.value.as_secs(), timeout.effect)
    };
    assert_eq!(effect(&both), (64, Effect::Replaces, 60, Effect::Replaces));
    assert_eq!(both.paths.len(), 2);
    let alone = settings("", project).unwrap().plugins.remove("p").unwrap();
    assert_eq!(effect(&alone), (64, Effect::Lowers, 60, Effect::Lowers));
    for more in ["memory = \"257MiB\"", "timeout = \"121s\""] {
        assert!(settings(user, &format!("[plugins.p]\n{more}")).is_err(), "{more}");
    }
}
