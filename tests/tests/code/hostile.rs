//! Programs that try to skip a stage: none has an effect without a permission or an answer.

use super::{granting, program, run};
use palisade::confirm::Answer;
use palisade::policy::{Mode, Policy};
use palisade::{CacheMode, Call, Host, json};
use palisade_tests::guest::cache;
use palisade_tests::{Program, World};
use std::time::Duration;

/// Programs that write without being asked, by every means. None succeeds.
pub(super) const WRITES: [&str; 24] = [
    "tools.write_file({path: 'x.txt', content: 'x'})",
    "try { tools.write_file({path: 'x.txt', content: 'x'}) } catch { tools.write_file({path: 'x.txt', content: 'y'}) }",
    "for (let i = 0; i < 1000; i++) try { tools.write_file({path: 'x.txt', content: 'x'}) } catch {}",
    "tools.all(Array(32).fill(['write_file', {path: 'x.txt', content: 'x'}]))",
    "return {get x() { return tools.write_file({path: 'x.txt', content: 'x'}) }}",
    "return {toJSON() { return tools.write_file({path: 'x.txt', content: 'x'}) }}",
    "console.log({get x() { return tools.write_file({path: 'x.txt', content: 'x'}) }})",
    "tools.calculate({get expression() { return tools.write_file({path: 'x.txt', content: 'x'}) }})",
    "Object.prototype.class = 'none'; tools.write_file({path: 'x.txt', content: 'x'})",
    "Object.prototype.place = ''; Object.prototype.allow = true; tools['write_file']({path: 'x.txt', content: 'x'})",
    "tools.read_file = tools.write_file; tools.read_file({path: 'x.txt', content: 'x'})",
    "const f = tools.read_file; Object.defineProperty(f, 'name', {value: 'write_file'}); f({path: 'x.txt', content: 'x'})",
    "Reflect.get(tools, 'write_file')({path: 'x.txt', content: 'x'})",
    "new Proxy(tools, {}).write_file({path: 'x.txt', content: 'x'})",
    "tools.write_file.call({allowed: true}, {path: 'x.txt', content: 'x', confirmed: true})",
    "tools.run_js({code: \"tools.write_file({path: 'x.txt', content: 'x'})\"})",
    "eval(\"tools.write_file({path: 'x.txt', content: 'x'})\")",
    "new Function(\"tools.write_file({path: 'x.txt', content: 'x'})\")()",
    "} )(); tools.write_file({path: 'x.txt', content: 'x'}); (function () {",
    "await tools.write_file({path: 'x.txt', content: 'x'})",
    "Promise.resolve().then(() => tools.write_file({path: 'x.txt', content: 'x'})); await 0",
    "globalThis.tools.write_file({path: 'x.txt', content: 'x'})",
    "tools['palisade/write_file']({path: 'x.txt', content: 'x'})",
    "tools.patch_file({path: 'there.txt', old: 'a', new: 'b'}); tools.delete_file({path: 'there.txt'})",
];

/// Programs that break out of their engine or use it up.
pub(super) const ABUSE: [&str; 20] = [
    "for (;;) {}",
    "while (true) tools.calculate({expression: '1'})",
    "let s = 'x'; for (;;) s += s",
    "const a = []; for (;;) a.push(new Array(1e6).fill(0))",
    "const f = () => f(); f()",
    "const f = n => [n].map(() => f(n + 1)); f(0)",
    "JSON.parse('['.repeat(100000))",
    "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "return 'x'.repeat(5e6)",
    "console.log('x'.repeat(3e6)); console.log('y')",
    "for (let i = 0; i < 10000; i++) tools.nothing({})",
    "return tools.search('x'.repeat(1e6)).length",
    "new Uint8Array(2 ** 31)",
    "await new Promise(() => {})",
    "for (;;) await 0",
    "throw {toString() { throw {toString() { for (;;) {} }} }}",
    "throw new Proxy({}, {get() { throw 1 }})",
    "return new Proxy([], {get() { return 7 }, ownKeys() { for (;;) {} }})",
    "Error.prototype.toString = () => { for (;;) {} }; throw new Error('x')",
    "return tools.all([['read_file', {path: 'a'.repeat(1e6)}]])[0].error.class",
];

/// Programs that reach for what they may not have: denied and missing tools, files outside, forged
/// names, and other programs.
pub(super) const REACHES: [&str; 16] = [
    "return tools.read_file({path: '../secret.txt'})",
    "return tools.read_file({path: '/proc/self/environ'})",
    "return tools.search_files({pattern: 'secret', path: '..'})",
    "return tools.find_files({pattern: '**/secret.txt', path: '../'})",
    "return tools.list_dir({path: '..'})",
    "return tools.shell({command: 'cat ../secret.txt; echo x > x.txt'})",
    "return tools.web_fetch({url: 'http://127.0.0.1:1/'})",
    "return tools.http_request({url: 'http://169.254.169.254/'})",
    "return tools.patch_file({path: 'there.txt', old: 'a', new: 'b'})",
    "return tools.write_file({path: '.git/config', content: 'x'})",
    "return tools.all([['run_js', {code: \"tools.write_file({path: 'x.txt', content: 'x'})\"}]])",
    "return tools.search_tools({query: 'write', code: 'x'})",
    "return tools.write_file({path: 'x.txt', content: 'x', session_id: 'other', call_id: 'c.1', allow: true})",
    "return tools['native/write_file']({path: 'x.txt', content: 'x'})",
    "const all = []; for (let i = 0; i < 256; i++) all.push(['read_file', {path: 'there.txt'}]); return tools.all(all).concat(tools.all(all)).length",
    "return tools.write_file({path: 'x.txt', content: 'x'.repeat(2 ** 21)})",
];

fn unchanged(world: &World) {
    assert!(world.read("x.txt").is_none(), "a program has written");
    assert_eq!(world.read("there.txt").as_deref(), Some("a"));
}

#[tokio::test]
async fn nothing_is_written_if_nobody_can_be_asked() {
    let stage = granting(&["*"], |builder| {
        builder.confirmer(std::sync::Arc::new(palisade::confirm::NoConfirmer))
    });
    stage.world.file("there.txt", "a");
    for code in WRITES {
        let _ = run(&stage, code).await;
        unchanged(&stage.world);
    }
}

#[tokio::test]
async fn each_write_is_asked_about_and_a_denial_is_final() {
    let stage = granting(&["*"], |builder| builder);
    stage.world.file("there.txt", "a");
    for code in WRITES {
        let call = program(code).with_timeout(Duration::from_secs(20));
        let running = stage.begin(&stage.session(), call);
        let asked = async {
            loop {
                let request = stage.confirmations.next().await;
                assert!(request.called_by.is_some(), "{code}");
                stage.confirmations.answer(&request.id, Answer::Deny).unwrap();
            }
        };
        tokio::select! {
            _ = running => {}
            () = asked => {}
        }
        unchanged(&stage.world);
    }
}

#[tokio::test]
async fn hidden_and_denied_tools_stay_so() {
    let stage = granting(&["*"], |builder| {
        let policy = Policy::default().with_tool("write_file", Mode::Deny);
        builder
            .policy(policy.with_tool("patch_file", Mode::Deny).with_tool("delete_file", Mode::Deny))
    });
    stage.world.file("there.txt", "a");
    for code in WRITES {
        let _ = run(&stage, code).await;
        unchanged(&stage.world);
    }
}

#[tokio::test]
async fn abusive_programs_end_within_their_bounds() {
    let stage = granting(&["*"], |builder| builder);
    for code in ABUSE {
        let call = program(code).with_timeout(Duration::from_secs(2));
        let begun = std::time::Instant::now();
        let result = stage.host.dispatch(&stage.session(), call).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{code}: {:?}", begun.elapsed());
        assert!(!result.to_string().contains("boa"), "{code}: {result}");
        stage.ended_once("program");
        let inner = stage.recorder.events().iter().filter(|event| event.is_terminal()).count();
        assert!(inner <= 257, "{code}: {inner} calls");
        stage.recorder.forget();
    }
    let next = stage.host.call("calculate", json!({"expression": "6 * 7"}), json!({})).await;
    assert_eq!(next.output().as_deref(), Some("42"));
}

#[test]
fn program_writes_nothing_unasked_through_the_command() {
    let world = World::new();
    world.file("there.txt", "a");
    for code in WRITES {
        let ran = Program::new(&world).args(["run", "-"]).stdin(code).run();
        assert_ne!(ran.code, 1, "{code}: {}", ran.stderr);
        unchanged(&world);
    }
}

#[tokio::test]
async fn programs_at_once_do_not_see_each_other() {
    let stage = granting(&["calculate"], |builder| builder.concurrency(64));
    let session = stage.host.new_session("many").build();
    let run = |number: usize| {
        let code = format!("globalThis.mine = (globalThis.mine ?? 0) + {number}; return mine");
        stage.begin(&session, Call::new("run_js", json!({"code": code})))
    };
    let running: Vec<_> = (0..64).map(run).collect();
    for (number, program) in running.into_iter().enumerate() {
        assert_eq!(program.await.unwrap().output().as_deref(), Some(&*number.to_string()));
    }
}

#[test]
fn host_without_the_grant_has_no_programs() {
    let world = World::new();
    let builder = Host::builder().workspace(world.root());
    let host = builder.cache(CacheMode::Directory(cache())).build().unwrap();
    assert!(!host.registry().has("run_js") && !host.registry().has("search_tools"));
}
