//! The hosts file of the system, for names with a dot. `getaddrinfo` finds such a name there only
//! without a final dot, and then adds the search domains to it as well.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;

/// The hosts file.
const FILE: &str = "/etc/hosts";

/// The most bytes of the file that are read. Lists of blocked hosts have some megabytes.
const MAX_BYTES: u64 = 16 << 20;

/// Returns the addresses that the hosts file gives a name, in its order; none if it cannot be read.
/// Blocks.
pub(super) fn addresses(name: &str) -> Vec<IpAddr> {
    let mut text = Vec::new();
    let read = File::open(FILE).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
    read.map_or_else(|_| Vec::new(), |_| named(&String::from_utf8_lossy(&text), name))
}

/// Returns the addresses of a name in a text of this form.
fn named(text: &str, name: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        let (address, names) = line.trim().split_once(|c: char| c.is_ascii_whitespace())?;
        let is_name = |given: &str| given.trim_end_matches('.').eq_ignore_ascii_case(name);
        names.split_ascii_whitespace().any(is_name).then(|| address.parse().ok())?
    };
    text.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_the_addresses_of_its_lines() {
        let text = "# a comment\n127.0.0.1\tlocalhost\n\n 10.0.0.7  api.Example.test  api # no.test\n::1 api.example.test.\nnone api.example.test\n10.0.0.8";
        let found = |name| named(text, name).iter().map(IpAddr::to_string).collect::<Vec<_>>();
        assert_eq!(found("api.example.test"), ["10.0.0.7", "::1"]);
        assert_eq!(found("no.test"), Vec::<String>::new());
        assert_eq!(found("example.test"), Vec::<String>::new());
    }
}
