//! The settings of projects, at any depth and under any form of their name.

use std::fs;

use super::{REFUSED, nothing_changes};
use crate::Refusal;
use crate::tests::everywhere;

#[test]
fn project_settings_are_protected_at_any_depth_and_case() {
    everywhere(|call| {
        for directory in ["dir/project", "dir/palisade.toml"] {
            fs::create_dir_all(call.host(directory)).unwrap();
        }
        for file in ["dir/project/palisade.toml", "dir/palisade.toml/x"] {
            fs::write(call.host(file), "[limits]").unwrap();
        }
        for path in [
            "palisade.toml",
            "Palisade.TOML",
            "dir/project/palisade.toml",
            "dir/project/../project/palisade.toml",
            "dir/project/PALISADE.toml",
            "dir/project/pali\u{17f}ade.toml",
            "dir/project/pali\u{ad}sade.toml",
            "dir/project/palisade.toml. .",
            "dir/project/palisade.toml::$DATA",
            "dir/project/PALISA~1.TOM",
            "dir/palisade.toml/x",
            "dir/palisade.toml/new",
            "new/palisade.toml",
        ] {
            nothing_changes(call, path);
        }
        let tree = call.fs.refusal().and_then(Refusal::tree).map(|tree| &**tree);
        assert_eq!(tree, Some("palisade.toml"));
        assert_eq!(call.read("dir/project/palisade.toml").unwrap(), "[limits]");
        for path in ["palisade.toml.bak", "dir/project/my-palisade.toml", "palisade", "palisa~1"] {
            call.write(path, "x").unwrap();
        }
        // The name moves along with its directory.
        call.rename("dir/project", "dir/moved").unwrap();
        assert_eq!(call.unlink("dir/moved/palisade.toml"), REFUSED);
    });
}
