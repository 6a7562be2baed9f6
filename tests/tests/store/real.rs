//! A registry and a program of others: Debian's `docker-registry`, and `wkg` of the WebAssembly
//! ecosystem. `palisade` gets the plugins that `wkg` publishes, and the reverse.

use crate::oci::publish;
use crate::{add, file, lock_text, looks, plugin};
use palisade_tests::{World, skip};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An upper bound for the start of the registry, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A running registry, which ends with this.
struct Real {
    child: Child,
    authority: String,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Real {
    /// Starts the registry. `None` if it is not installed.
    fn start(world: &World) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let store = world.outer().join("registry");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:{port}'}}\n",
            store.display()
        );
        let config = file(world, "registry.yml", text.as_bytes());
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(config).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().ok()?;
        let real = Self { child, authority: format!("localhost:{port}") };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < PATIENCE, "the registry does not start");
            std::thread::sleep(PAUSE);
        }
        Some(real)
    }

    fn wkg(&self, words: &[&str]) -> Option<std::process::Output> {
        let mut command = Command::new("wkg");
        command.args(["oci", words[0], "--insecure", &self.authority]).args(&words[1..]);
        command.output().ok()
    }
}

#[test]
fn real_registry_takes_and_gives_a_plugin() {
    let world = World::new();
    let Some(registry) = Real::start(&world) else {
        return skip("the real registry: `docker-registry` of Debian is not installed");
    };
    let to = format!("oci://{}/me/git:1.0.0", registry.authority);
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let _ = publish(&world, &plugin("peek"), &to).run().exits_with(2);
    let _ = add(&world, &to).run().exits_with(0);
    looks(&world);
    let text = lock_text(&world);
    let manifest = text.split("resolved = \"").nth(1).unwrap().split('"').next().unwrap();
    let pinned = format!("oci://{}/me/git@{manifest}", registry.authority);
    let _ = add(&world, &pinned).args(["--name", "pinned"]).run().exits_with(0);
}

#[test]
fn wkg_gets_what_palisade_publishes_and_the_reverse() {
    let world = World::new();
    let Some(registry) = Real::start(&world) else {
        return skip("`wkg` with the real registry: `docker-registry` of Debian is not installed");
    };
    let (out, bytes) = (world.outer().join("pulled.wasm"), plugin("look"));
    let ours = format!("{}/ours:1.0.0", registry.authority);
    let _ = publish(&world, &bytes, &format!("oci://{ours}")).run().exits_with(0);
    let Some(pulled) = registry.wkg(&["pull", &ours, "--output", text(&out)]) else {
        return skip("`wkg`, which is not installed; `cargo install wkg` installs it");
    };
    assert!(pulled.status.success(), "{pulled:?}");
    assert!(fs::read(&out).unwrap() == bytes);
    let theirs = format!("{}/theirs:1.0.0", registry.authority);
    let path = file(&world, "git.wasm", &bytes);
    let pushed = registry.wkg(&["push", &theirs, text(&path)]).unwrap();
    assert!(pushed.status.success(), "{pushed:?}");
    let _ = add(&world, &format!("oci://{theirs}")).run().exits_with(0);
    looks(&world);
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
