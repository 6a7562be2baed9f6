//! `add` and `update` that are killed at a random moment: the plugin is the old one or the new one,
//! and the next run of the same command ends what was begun. `PALISADE_STORE_KILLS` sets the number
//! of kills of each.

use crate::server::{Reply, Server};
use crate::{add, files, lock_text, looks, program, versioned};
use palisade::tool::Digest;
use palisade_tests::dice::Dice;
use palisade_tests::{Program, World};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SEED: u64 = 2_300;

fn kills() -> u32 {
    let given = std::env::var("PALISADE_STORE_KILLS").ok();
    given.and_then(|number| number.parse().ok()).unwrap_or(12)
}

/// A user, and a server whose plugin has another version each time.
struct Place {
    world: World,
    server: Server,
    version: Arc<Mutex<u32>>,
    dice: Dice,
    /// The time of the last whole run.
    usual: Duration,
}

fn bytes(version: u32) -> Vec<u8> {
    versioned(&format!("1.0.{version}"))
}

impl Place {
    fn new() -> Self {
        let version = Arc::new(Mutex::new(0));
        let current = version.clone();
        let server = Server::start(move |request| match request.path.as_str() {
            "/git.wasm" => Reply::new(200, bytes(*current.lock().unwrap())),
            _ => Reply::new(404, ""),
        });
        let world = World::new();
        let mut place =
            Self { world, server, version, dice: Dice::new(SEED), usual: Duration::ZERO };
        place.finish(Self::add);
        place
    }

    /// Runs a command to its end, and takes its time.
    #[track_caller]
    fn finish(&mut self, command: impl Fn(&Self) -> Program<'_>) {
        let start = Instant::now();
        let _ = command(self).run().exits_with(0);
        self.usual = start.elapsed();
    }

    fn add(&self) -> Program<'_> {
        add(&self.world, &format!("http://{}/git.wasm", self.server.authority()))
    }

    fn update(&self) -> Program<'_> {
        program(&self.world, &["update", "--yes"])
    }

    /// Publishes the next version, and returns its number.
    fn next(&self) -> u32 {
        let mut version = self.version.lock().unwrap();
        *version += 1;
        *version
    }

    /// Kills a run at a random moment. Returns true if it had not ended.
    fn kill(&mut self, command: impl Fn(&Self) -> Program<'_>) -> bool {
        let most = self.usual.as_micros() + 1;
        let time = self.dice.roll(usize::try_from(most).unwrap());
        let mut child = command(self).open();
        std::thread::sleep(Duration::from_micros(time as u64));
        let was_running = child.try_wait().unwrap().is_none();
        let _ = child.kill();
        child.wait().unwrap();
        was_running
    }

    fn is_installed(&self, version: u32) -> bool {
        lock_text(&self.world).contains(&format!("\ndigest = \"{}\"", Digest::of(&bytes(version))))
    }

    /// Checks that this version alone is left.
    #[track_caller]
    fn has_only(&self, version: u32) {
        assert!(self.is_installed(version));
        let name = format!("git@{}.wasm", Digest::of(&bytes(version)).hex());
        assert_eq!(files(&self.world), [name], "the next change removes what was left");
        looks(&self.world);
    }
}

/// Runs rounds until as many of them were killed before their end as the test wants. A round
/// returns true if it was.
fn rounds(mut round: impl FnMut() -> bool) {
    let (mut killed, mut ended) = (0, 0);
    while killed < kills() {
        if round() {
            killed += 1;
        } else {
            ended += 1;
        }
        assert!(ended < 20 + 10 * kills(), "{killed} kills are too few for {ended} whole runs");
    }
}

#[test]
fn add_that_is_killed_has_installed_a_whole_plugin_or_none() {
    let mut place = Place::new();
    rounds(|| {
        let _ = program(&place.world, &["remove", "git"]).run().exits_with(0);
        let version = place.next();
        let was_running = place.kill(Place::add);
        let ran = program(&place.world, &["call", "look"]).run();
        match place.is_installed(version) {
            true => assert_eq!((ran.code, ran.stdout.as_str()), (0, "done"), "{ran:?}"),
            // Unknown, or written and not approved.
            false => assert!([3, 4].contains(&ran.code), "{ran:?}"),
        }
        place.finish(Place::add);
        place.has_only(version);
        was_running
    });
}

#[test]
fn update_that_is_killed_leaves_the_old_version_or_the_new_one() {
    let mut place = Place::new();
    let (mut old, mut new) = (0, 0);
    rounds(|| {
        let version = place.next();
        let was_running = place.kill(Place::update);
        let ran = program(&place.world, &["call", "look"]).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "done"), "{ran:?}");
        let is_new = place.is_installed(version);
        assert!(is_new != place.is_installed(version - 1));
        let usual = place.usual;
        place.finish(Place::update);
        match is_new {
            // Nothing was left to do.
            true => (new, place.usual) = (new + 1, usual),
            false => old += 1,
        }
        place.has_only(version);
        was_running
    });
    assert!(old > 0, "{old} were killed before the lock was replaced, and {new} ended after it");
}
