//! How a server over HTTP drains, and what it says of that.

use std::fmt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a server ends.
pub(super) struct Drain {
    /// The time that running calls have to end.
    pub(super) time: Duration,
    /// Cancelled to end them at once.
    pub(super) insisted: CancellationToken,
}

/// The beginning of a drain.
pub(super) struct Begun {
    /// The number of requests whose calls run or wait.
    pub(super) running: usize,
    /// The time that they have.
    pub(super) time: Duration,
}

/// The end of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything that ran has ended.
    ByItself,
    /// The time was up for so many requests.
    TimeUp { cancelled: usize, time: Duration },
    /// Another signal cancelled so many requests.
    Insisted { cancelled: usize },
}

impl Drain {
    /// Waits until everything has ended, the time is up, or another signal comes.
    pub(super) async fn wait(
        &self,
        drained: impl Future<Output = ()>,
        running: impl Fn() -> usize,
    ) -> Ended {
        tokio::select! {
            biased;
            () = drained => Ended::ByItself,
            () = self.insisted.cancelled() => Ended::Insisted { cancelled: running() },
            () = tokio::time::sleep(self.time) => {
                Ended::TimeUp { cancelled: running(), time: self.time }
            }
        }
    }
}

impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("draining: no more calls are taken, ")?;
        let time = humantime::format_duration(self.time);
        match self.running {
            0 => f.write_str("and none runs"),
            1 => write!(f, "and 1 request has {time} to end; another signal cancels it at once"),
            running => write!(
                f,
                "and {running} requests have {time} to end; another signal cancels them at once"
            ),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("drained: ")?;
        match self {
            Self::ByItself => f.write_str("all calls have ended"),
            Self::TimeUp { cancelled, time } => {
                let time = humantime::format_duration(*time);
                write!(f, "{} cancelled after {time}", Requests(*cancelled))
            }
            Self::Insisted { cancelled } => {
                write!(f, "{} cancelled by another signal", Requests(*cancelled))
            }
        }
    }
}

struct Requests(usize);

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 request was"),
            many => write!(f, "{many} requests were"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drain_says_what_it_waits_for_and_how_it_ended() {
        let time = Duration::from_secs(10);
        let begun = |running| Begun { running, time }.to_string();
        assert_eq!(begun(0), "draining: no more calls are taken, and none runs");
        assert!(begun(1).contains("1 request has 10s to end"), "{}", begun(1));
        assert!(begun(3).contains("3 requests have 10s to end"), "{}", begun(3));
        let ended = Ended::TimeUp { cancelled: 2, time }.to_string();
        assert_eq!(ended, "drained: 2 requests were cancelled after 10s");
        let ended = Ended::Insisted { cancelled: 1 }.to_string();
        assert_eq!(ended, "drained: 1 request was cancelled by another signal");
        assert_eq!(Ended::ByItself.to_string(), "drained: all calls have ended");
    }

    #[tokio::test(start_paused = true)]
    async fn drain_ends_by_itself_in_time_or_at_once() {
        let time = Duration::from_secs(10);
        let drain = Drain { time, insisted: CancellationToken::new() };
        let never = std::future::pending::<()>;
        assert_eq!(drain.wait(async {}, || 0).await, Ended::ByItself);
        assert_eq!(drain.wait(never(), || 2).await, Ended::TimeUp { cancelled: 2, time });
        drain.insisted.cancel();
        assert_eq!(drain.wait(never(), || 1).await, Ended::Insisted { cancelled: 1 });
    }
}
