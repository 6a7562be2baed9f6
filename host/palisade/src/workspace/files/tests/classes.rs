//! Access to files by the class of a tool.

use super::*;
use crate::tool::SideEffects;

#[test]
fn tool_files_match_its_class() {
    for class in SideEffects::ALL {
        let world = World::new();
        let files = world.workspace.files_for(class.files());
        let reads = [
            ("read", files.read("file").map(drop)),
            ("read_bytes", files.read_bytes("file").map(drop)),
            ("exists", files.exists("file").map(drop)),
            ("list", files.list(".").map(drop)),
        ];
        let changes = [
            ("write", files.write("new/file", "x")),
            ("write_bytes", files.write_bytes("new/bytes", b"x")),
            ("append", files.append("file", "x")),
            ("patch", files.patch("file", "inside", "x")),
            ("delete", files.delete("file")),
        ];
        let (sees, alters) = match class {
            SideEffects::None | SideEffects::Network => (false, false),
            SideEffects::Read => (true, false),
            SideEffects::Write | SideEffects::Execute => (true, true),
        };
        for (operation, outcome) in reads {
            assert!(if sees { outcome.is_ok() } else { is_denied(outcome) }, "{class} {operation}");
        }
        for (operation, outcome) in changes {
            assert!(
                if alters { outcome.is_ok() } else { is_denied(outcome) },
                "{class} {operation}"
            );
        }
        assert_eq!(world.at("new").exists(), alters, "{class}");
        assert_eq!(world.at("file").exists(), !alters, "{class}");
    }
}

fn is_denied(outcome: Result<(), FileError>) -> bool {
    outcome.is_err_and(|error| ErrorKind::from(error).class() == ErrorClass::PermissionDenied)
}
