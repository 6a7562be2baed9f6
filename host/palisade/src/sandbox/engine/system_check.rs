//! A check of the process limits before anything is started. Below these bounds libraries panic or
//! abort without a useful message.

use super::error::EngineError;

/// The number of open files that the process needs: for its runtimes, the plugins, the cache, the
/// events, and some for tools.
const DESCRIPTORS: u64 = 64;
/// The address space that the process needs, in bytes: for the program, its threads, and plugins
/// while they are loaded.
const ADDRESS_SPACE: u64 = 256 << 20;

/// Checks the limits on open files, address space and private memory.
///
/// # Errors
///
/// Returns [`EngineError`], with the limit and how to raise it.
pub fn check() -> Result<(), EngineError> {
    use rustix::process::{Resource, getrlimit};
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    judge(limit(Resource::Nofile), limit(Resource::As), limit(Resource::Data))
}

fn judge(descriptors: u64, address_space: u64, private: u64) -> Result<(), EngineError> {
    if descriptors < DESCRIPTORS {
        return Err(EngineError(format!(
            "this process may open {descriptors} files, and {DESCRIPTORS} are needed; raise the limit with `ulimit -n`"
        )));
    }
    for (limit, what, option) in
        [(address_space, "address space", "-v"), (private, "private memory", "-d")]
    {
        if limit < ADDRESS_SPACE {
            let (has, needs) = (limit >> 20, ADDRESS_SPACE >> 20);
            return Err(EngineError(format!(
                "this process may use {has} MiB of {what}, and {needs} are needed; raise the limit with `ulimit {option}`"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_requirements_are_checked_by_name() {
        assert!(judge(DESCRIPTORS, ADDRESS_SPACE, ADDRESS_SPACE).is_ok());
        let refusal = |descriptors, space| {
            judge(descriptors, space, u64::MAX).err().map(|error| error.to_string())
        };
        let private = judge(64, u64::MAX, 255 << 20).err().map(|error| error.to_string());
        assert!(private.is_some_and(|text| text.contains("255 MiB of private memory")));
        assert!(
            refusal(63, u64::MAX)
                .is_some_and(|text| text.contains("63 files") && text.contains("ulimit -n"))
        );
        assert!(
            refusal(64, 255 << 20)
                .is_some_and(|text| text.contains("255 MiB") && text.contains("ulimit -v"))
        );
    }
}
