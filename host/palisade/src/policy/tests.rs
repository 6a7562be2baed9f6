//! Tests of rule precedence, for every order of rules and every origin of a tool.

#![allow(clippy::unwrap_used, reason = "a test whose definition is invalid has failed")]
mod renamed;

use super::*;
use crate::registry::Source;
use crate::tool::Digest;
use serde_json::json;

fn tool(class: SideEffects) -> Definition {
    Definition::new("t", "A tool.", class, json!({"type": "object"})).unwrap()
}

#[test]
fn reading_runs_and_riskier_classes_prompt_by_default() {
    let modes =
        SideEffects::ALL.map(|class| Policy::default().decide(&tool(class), &Origin::Native));
    assert_eq!(modes, [Mode::Auto, Mode::Auto, Mode::Prompt, Mode::Prompt, Mode::Prompt]);
}

#[test]
fn allow_lifts_prompts_of_its_class_only() {
    let policy = Policy::default().allowing(SideEffects::Write);
    assert_eq!(policy.decide(&tool(SideEffects::Write), &Origin::Native), Mode::Auto);
    assert_eq!(policy.decide(&tool(SideEffects::Execute), &Origin::Native), Mode::Prompt);
}

#[test]
fn allow_never_lifts_a_deny() {
    let by_class =
        Policy::default().with_class(SideEffects::Write, Mode::Deny).allowing(SideEffects::Write);
    let by_tool = Policy::default().with_tool("t", Mode::Deny).allowing(SideEffects::Write);
    assert_eq!(by_class.decide(&tool(SideEffects::Write), &Origin::Native), Mode::Deny);
    assert_eq!(by_tool.decide(&tool(SideEffects::Write), &Origin::Native), Mode::Deny);
}

#[test]
fn tools_own_mode_overrides_its_class_unless_denied() {
    let exempt = Policy::default().with_tool("t", Mode::Auto);
    assert_eq!(exempt.decide(&tool(SideEffects::Execute), &Origin::Native), Mode::Auto);
    let denied = exempt.with_class(SideEffects::Execute, Mode::Deny);
    assert_eq!(denied.decide(&tool(SideEffects::Execute), &Origin::Native), Mode::Deny);
}

#[test]
fn trusted_workspace_lifts_prompts_except_overrides() {
    let policy = Policy::default().trusting([(SideEffects::Execute, Mode::Prompt)]);
    let of = |class| policy.explain(&tool(class), &Origin::Native);
    assert_eq!(of(SideEffects::Write), Decision { mode: Mode::Auto, rule: Rule::Trusted });
    assert_eq!(of(SideEffects::Execute), Decision { mode: Mode::Prompt, rule: Rule::Override });
    assert_eq!(
        policy
            .clone()
            .allowing(SideEffects::Execute)
            .explain(&tool(SideEffects::Execute), &Origin::Native)
            .rule,
        Rule::Allowed
    );
}

#[test]
fn tools_own_mode_overrides_a_trusted_workspace() {
    let policy = Policy::default().trusting([]).with_tool("t", Mode::PromptOnce);
    assert_eq!(
        policy.explain(&tool(SideEffects::Write), &Origin::Native),
        Decision { mode: Mode::PromptOnce, rule: Rule::Tool }
    );
}

#[test]
fn deny_always_wins() {
    let write = tool(SideEffects::Write);
    let trusted =
        Policy::default().trusting([(SideEffects::Write, Mode::Deny)]).with_tool("t", Mode::Auto);
    assert_eq!(
        trusted.explain(&write, &Origin::Native),
        Decision { mode: Mode::Deny, rule: Rule::Override }
    );
    let class = Policy::default()
        .trusting([(SideEffects::Write, Mode::Auto)])
        .with_class(SideEffects::Write, Mode::Deny);
    assert_eq!(
        class.explain(&write, &Origin::Native),
        Decision { mode: Mode::Deny, rule: Rule::Class }
    );
    let own =
        Policy::default().trusting([]).with_tool("t", Mode::Deny).allowing(SideEffects::Write);
    assert_eq!(
        own.explain(&write, &Origin::Native),
        Decision { mode: Mode::Deny, rule: Rule::Tool }
    );
}

/// Returns the tool `t` of class *write* from a plugin of this name.
fn plugin_tool(plugin: &str, source: Source) -> (Definition, Origin) {
    let digest = Digest::from_bytes([7; 32]);
    (tool(SideEffects::Write), Origin::Plugin { name: plugin.into(), digest, source })
}

fn file(plugin: &str) -> (Definition, Origin) {
    plugin_tool(plugin, Source::File(format!("/p/{plugin}.wasm").into()))
}

#[test]
fn bare_name_loosens_only_shipped_tools() {
    for mode in [Mode::Auto, Mode::PromptOnce] {
        let policy = Policy::default().with_tool("t", mode);
        let (definition, shipped) = plugin_tool("files", Source::Shipped);
        let own = Decision { mode, rule: Rule::Tool };
        assert_eq!(policy.explain(&definition, &shipped), own);
        assert_eq!(policy.explain(&definition, &Origin::Native), own);
        let (definition, file) = file("aaa");
        let class = Decision { mode: Mode::Prompt, rule: Rule::Class };
        assert_eq!(policy.explain(&definition, &file), class, "{mode}");
    }
}

#[test]
fn bare_name_tightens_every_plugin() {
    let (definition, file) = file("aaa");
    let trusted = Policy::default().trusting([]);
    for mode in [Mode::PromptOnce, Mode::Prompt, Mode::Deny] {
        let policy = trusted.clone().with_tool("t", mode);
        assert_eq!(policy.explain(&definition, &file), Decision { mode, rule: Rule::Tool });
        let both = policy.with_tool("aaa/t", Mode::Auto);
        assert_eq!(both.explain(&definition, &file), Decision { mode, rule: Rule::Tool }, "{mode}");
    }
    let lifted = trusted.with_tool("t", Mode::Prompt).allowing(SideEffects::Write);
    assert_eq!(lifted.explain(&definition, &file).rule, Rule::Allowed);
}

#[test]
fn qualified_name_applies_to_its_plugin_only() {
    let policy = Policy::default().with_tool("csv/t", Mode::Auto);
    let holds = Decision { mode: Mode::Auto, rule: Rule::PluginTool };
    for (definition, origin) in [file("csv"), plugin_tool("csv", Source::Shipped)] {
        assert_eq!(policy.explain(&definition, &origin), holds, "{origin:?}");
    }
    for (definition, origin) in [
        file("aaa"),
        plugin_tool("files", Source::Shipped),
        (tool(SideEffects::Write), Origin::Native),
    ] {
        assert_eq!(policy.explain(&definition, &origin).mode, Mode::Prompt, "{origin:?}");
    }
    let (definition, origin) = file("csv");
    let denied = policy.with_class(SideEffects::Write, Mode::Deny);
    assert_eq!(denied.decide(&definition, &origin), Mode::Deny);
}

#[test]
fn stricter_of_two_rules_for_a_tool_applies() {
    let (definition, shipped) = plugin_tool("files", Source::Shipped);
    for (bare, full, rule) in
        [(Mode::Prompt, Mode::Auto, Rule::Tool), (Mode::Auto, Mode::PromptOnce, Rule::PluginTool)]
    {
        let policy = Policy::default().with_tool("t", bare).with_tool("files/t", full);
        let mode = stricter((bare, Rule::Tool), (full, Rule::PluginTool)).0;
        assert_eq!(policy.explain(&definition, &shipped), Decision { mode, rule });
    }
}

#[test]
fn native_rules_do_not_loosen_plugins() {
    let definition = tool(SideEffects::Write);
    for mode in [Mode::Auto, Mode::PromptOnce, Mode::Deny] {
        let policy = Policy::default().with_tool("native/t", mode);
        let holds = Decision { mode, rule: Rule::PluginTool };
        assert_eq!(policy.explain(&definition, &Origin::Native), holds);
        assert_eq!(
            policy.decide(&definition, &plugin_tool("files", Source::Shipped).1),
            Mode::Prompt,
            "{mode}"
        );
        for name in ["native", "files"] {
            let policy = Policy::default().with_tool(format!("{name}/t"), mode);
            let (definition, file) = file(name);
            let decided = policy.decide(&definition, &file);
            assert_eq!(
                decided,
                stricter((Mode::Prompt, Rule::Class), (mode, Rule::Tool)).0,
                "{name}"
            );
        }
    }
    assert_eq!(Rule::PluginTool.key(&definition, &Origin::Native), "confirm.tools.native/t");
}

#[test]
fn advice_names_the_applicable_key() {
    let said = |(definition, origin): (Definition, Origin), rule: Rule| {
        rule.advice_on_prompt(&definition, &origin).told(&crate::tool::Places::new("in mine"))
    };
    assert!(
        said(file("csv"), Rule::Class)
            .ends_with("or set `\"csv/t\" = \"auto\"` under `[confirm.tools]` in mine")
    );
    assert!(said(plugin_tool("files", Source::Shipped), Rule::Class).contains("`t = \"auto\"`"));
    assert!(said(file("csv"), Rule::Tool).ends_with("or change `confirm.tools.t` in mine"));
    assert!(
        said(file("csv"), Rule::PluginTool).ends_with("or change `confirm.tools.csv/t` in mine")
    );
}

#[test]
fn rule_of_another_plugin_prevents_advice() {
    let (definition, origin) = file("aaa");
    let said = |policy: Policy, rule| {
        policy
            .advice_on_prompt(rule, &definition, &origin)
            .told(&crate::tool::Places::new("in mine"))
    };
    let policy = Policy::default().with_tool("charts/t", Mode::Auto);
    for rule in [Rule::Class, Rule::Override] {
        let said = said(policy.clone(), rule);
        assert!(
            said.contains("`charts/t` is about another plugin") && !said.contains("aaa/t"),
            "{said}"
        );
        assert!(said.contains(origin.file().unwrap_or("no file")), "{said}");
    }
    assert!(
        said(policy.with_tool("aaa/t", Mode::Prompt), Rule::PluginTool)
            .contains("confirm.tools.aaa/t")
    );
    assert!(said(Policy::default(), Rule::Class).contains("`\"aaa/t\" = \"auto\"`"));
}

#[test]
fn namesake_plugins_are_tightened_and_never_loosened() {
    let (definition, origin) = plugin_tool("csv", Source::Namesake("/p/csv.wasm".into()));
    let policy = Policy::default();
    for name in ["csv/t", "t"] {
        for mode in [Mode::Auto, Mode::PromptOnce] {
            let decided = policy.clone().with_tool(name, mode).explain(&definition, &origin);
            assert_eq!(
                decided,
                Decision { mode: Mode::Prompt, rule: Rule::Class },
                "{name} {mode}"
            );
        }
        assert_eq!(
            policy.clone().with_tool(name, Mode::Deny).decide(&definition, &origin),
            Mode::Deny,
            "{name}"
        );
    }
    let advice =
        Rule::Class.advice_on_prompt(&definition, &origin).told(&crate::tool::Places::new("here"));
    assert_eq!(advice, "allow it with `--allow write`", "no rule would do");
}

#[test]
fn modes_and_rules_have_their_configuration_names() {
    for (mode, name) in Mode::ALL.into_iter().zip(["auto", "prompt", "prompt_once", "deny"]) {
        assert_eq!(
            (mode.as_str(), mode.to_string().as_str(), name.parse()),
            (name, name, Ok(mode))
        );
    }
    assert_eq!("ask".parse::<Mode>(), Err(UnknownMode("ask".to_owned())));
    let rules =
        [Rule::Class, Rule::Tool, Rule::PluginTool, Rule::Override, Rule::Trusted, Rule::Allowed];
    let names = ["class", "tool", "tool", "trusted_override", "trusted_workspace", "allow"];
    assert_eq!(rules.map(Rule::as_str), names);
}

#[test]
fn deny_advice_names_the_denying_setting() {
    let said = |rule: Rule| {
        let advice = rule.advice_on_deny(&tool(SideEffects::Write), &Origin::Native);
        advice.told(&crate::tool::Places::new("in mine"))
    };
    assert!(said(Rule::Override).contains("`write = \"deny\"`, which stands under `[[trusted]]`"));
    assert!(said(Rule::Class).contains("`confirm.write = \"deny\"`"));
    assert!(said(Rule::Tool).contains("`confirm.tools.t = \"deny\"`"));
}

#[test]
fn name_in_a_list_grants_only_to_the_plugin_that_it_means() {
    let definition = tool(SideEffects::Read);
    let of = |name: &str, source| Origin::Plugin {
        name: name.into(),
        digest: Digest::of(b"its code"),
        source,
    };
    let file = || Source::File("/plugins/p.wasm".into());
    for (origin, name, named, granted) in [
        (Origin::Native, "t", true, true),
        (Origin::Native, "native/t", true, true),
        (Origin::Native, "u", false, false),
        (of("p", file()), "t", true, true),
        (of("p", file()), "p/t", true, true),
        (of("p", file()), "q/t", false, false),
        (of("p", file()), "p/u", false, false),
        // Another plugin has the name as well, so that it can only hide.
        (of("p", Source::Namesake("/plugins/p.wasm".into())), "p/t", true, false),
        (of("files", file()), "files/t", true, false),
        (of("files", Source::Shipped), "files/t", true, true),
    ] {
        assert_eq!(is_named(name, &definition, &origin), named, "{name} of {origin:?}");
        assert_eq!(is_granted(name, &definition, &origin), granted, "{name} of {origin:?}");
    }
}

#[test]
fn advice_without_an_operators_settings_names_functions() {
    let definition = tool(SideEffects::Write);
    let nowhere = crate::tool::Places::default();
    for rule in [Rule::Class, Rule::Tool, Rule::PluginTool, Rule::Override] {
        let asks = rule.advice_on_prompt(&definition, &Origin::Native).told(&nowhere);
        let denies = rule.advice_on_deny(&definition, &Origin::Native).told(&nowhere);
        for advice in [&asks, &denies] {
            assert!(!advice.contains("--") && !advice.contains("palisade.toml"), "{advice}");
        }
        assert!(asks.contains("`HostBuilder::confirmer`"), "{asks}");
        assert!(asks.contains("`Policy::allowing`"), "{asks}");
        assert!(denies.contains("the host's policy"), "{denies}");
    }
}

#[test]
fn floor_can_be_tightened_and_never_loosened() {
    let write = tool(SideEffects::Write);
    let of =
        |own: &Policy, floor: &Policy| own.clone().at_least(floor).explain(&write, &Origin::Native);
    for floor_mode in Mode::ALL {
        let floor = Policy::default().with_class(SideEffects::Write, floor_mode);
        for own_mode in Mode::ALL {
            let own = Policy::default().with_tool("t", own_mode);
            let decided = of(&own, &floor);
            assert!(decided.mode.is_at_least_as_strict_as(floor_mode));
            assert!(decided.mode.is_at_least_as_strict_as(own_mode));
            let by_floor = floor_mode.is_at_least_as_strict_as(own_mode);
            assert_eq!(decided.rule, if by_floor { Rule::Class } else { Rule::Session });
        }
        // A permission that lifts prompts of the session lifts none of the floor.
        for own in [Policy::default().trusting([]), Policy::default().allowing(SideEffects::Write)]
        {
            assert_eq!(of(&own, &floor).mode, floor_mode);
        }
    }
}

#[test]
fn second_floor_does_not_replace_the_first() {
    let write = tool(SideEffects::Write);
    let denied = Policy::default().with_class(SideEffects::Write, Mode::Deny);
    let open = Policy::default().with_class(SideEffects::Write, Mode::Auto);
    for (first, second) in [(&denied, &open), (&open, &denied)] {
        let policy = open.clone().at_least(first).at_least(second);
        assert_eq!(policy.decide(&write, &Origin::Native), Mode::Deny);
    }
}
