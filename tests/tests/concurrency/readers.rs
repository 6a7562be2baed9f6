//! A registry with many concurrent readers and a concurrent writer.

use std::sync::atomic::{AtomicBool, Ordering};

use palisade::registry::Registry;
use palisade_tests::native::echo;

#[test]
fn many_threads_read_a_registry_at_once() {
    let registry = Registry::new();
    (0..50).for_each(|number| drop(registry.register(echo(&format!("tool_{number}"))).map(|_| ())));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let registry = registry.clone();
            scope.spawn(move || {
                for number in 0..50 {
                    let name = format!("tool_{number}");
                    assert_eq!(registry.get(&name).unwrap().definition().name().as_str(), name);
                    assert_eq!(registry.definitions().len(), 50);
                }
            });
        }
    });
}

#[test]
fn registry_change_is_atomic_for_readers() {
    let registry = Registry::new();
    registry.register(echo("always")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    assert!(registry.has("always"));
                    let names: Vec<String> = registry.tool_names();
                    assert!(names == ["always"] || names == ["always", "sometimes"], "{names:?}");
                    let listed = registry.definitions();
                    assert!(listed.len() == 1 || listed[1]["name"] == "sometimes");
                }
            });
        }
        for _ in 0..500 {
            registry.register(echo("sometimes")).unwrap();
            registry.unregister("sometimes").unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn one_of_two_concurrent_registrations_wins() {
    for _ in 0..50 {
        let registry = Registry::new();
        let outcomes: Vec<bool> = std::thread::scope(|scope| {
            let register = || scope.spawn(|| registry.register(echo("one")).is_ok());
            [register(), register()].map(|thread| thread.join().unwrap()).to_vec()
        });
        assert_eq!(outcomes.iter().filter(|ok| **ok).count(), 1);
        assert_eq!(registry.len(), 1);
    }
}
