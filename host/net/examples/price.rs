//! Measures the price of grants: a fetch of a guest beside the same fetch by `reqwest`, and a call
//! that fetches nothing, of a plugin with and without a grant, and in a host without this crate.
//!
//! `cargo run --release -p palisade-net --example price -- GUEST.wasm`, with the guest `net_fetch`
//! of the suites. `-- GUEST.wasm MEASURE CALLS` makes calls of one measure alone and prints nothing,
//! for a count of instructions: that of one call is the difference between two numbers of calls.
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use palisade::sandbox::CompileStrategy;
use palisade::tool::Digest;
use palisade::{CacheMode, Host, json};
use palisade_net::{Grants, Network, PluginGrants};
use serde_json::Value;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Rounds of the measurement. The measures alternate, so that all meet the same machine.
const ROUNDS: usize = 2_000;

/// Calls of each measure before the first round: code is loaded at the first call.
const WARM: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Reqwest,
    Granted,
    IdleWithGrant,
    IdleBesideGrants,
    IdleWithoutCrate,
}

impl Measure {
    const ALL: [Self; 5] = [
        Self::Reqwest,
        Self::Granted,
        Self::IdleWithoutCrate,
        Self::IdleBesideGrants,
        Self::IdleWithGrant,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Reqwest => "reqwest",
            Self::Granted => "granted",
            Self::IdleWithoutCrate => "idle",
            Self::IdleBesideGrants => "idle-beside-grants",
            Self::IdleWithGrant => "idle-with-grant",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Reqwest => "a fetch by reqwest",
            Self::Granted => "a fetch of a guest with a grant",
            Self::IdleWithoutCrate => "calculate, in a host without palisade-net",
            Self::IdleBesideGrants => "calculate, in a host where another plugin has a grant",
            Self::IdleWithGrant => "calculate, with a grant of its own",
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let guest = words.next().ok_or("the path of the guest `net_fetch` is missing")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let authority = format!("127.0.0.1:{}", listener.local_addr()?.port());
    tokio::spawn(serve(listener));
    let measured = Measured::new(Path::new(&guest), &authority)?;
    match words.next() {
        None => measured.all().await,
        Some(name) => {
            let measure = Measure::ALL.into_iter().find(|measure| measure.name() == name);
            let measure = measure.ok_or_else(|| format!("there is no measure `{name}`"))?;
            let calls: usize = words.next().ok_or("the number of calls is missing")?.parse()?;
            for _ in 0..calls {
                measured.once(measure).await?;
            }
            Ok(())
        }
    }
}

/// The hosts that are compared, each with the same plugins.
struct Measured {
    /// Opens a connection for each request, as the host does: the server closes each one.
    client: reqwest::Client,
    without: Host,
    beside: Host,
    with: Host,
    url: String,
    fetch: Value,
    sum: Value,
}

impl Measured {
    fn new(guest: &Path, authority: &str) -> Result<Self, Box<dyn Error>> {
        // The hosts run the same code from the first call on.
        let strategy = CompileStrategy::OptimizedOnly;
        let builder = || Host::builder().cache(CacheMode::Off).compile_strategy(strategy);
        let without = builder().build()?;
        let calculate = without.registry().get("calculate")?.origin().digest();
        let calculate = calculate.ok_or("`calculate` is no plugin")?;
        let net_fetch = Digest::of(&std::fs::read(guest)?);
        let granted = || -> Result<PluginGrants, Box<dyn Error>> {
            let rule = format!("GET http://{authority} private").parse()?;
            Ok(PluginGrants::new(vec![rule], &[], Vec::new(), &|_| None))
        };
        let beside = Grants::new(Network::default()).plugin(net_fetch, granted()?);
        let with = Grants::new(Network::default())
            .plugin(net_fetch, granted()?)
            .plugin(calculate, granted()?);
        let host = |grants| builder().plugin_file(guest).powers(Arc::new(grants)).build();
        Ok(Self {
            client: reqwest::Client::builder().build()?,
            without,
            beside: host(beside)?,
            with: host(with)?,
            url: format!("http://{authority}/"),
            fetch: json!({"authority": authority}),
            sum: json!({"expression": "1 + 1"}),
        })
    }

    /// Runs one measure once.
    async fn once(&self, measure: Measure) -> Result<(), Box<dyn Error>> {
        let (host, tool, input) = match measure {
            Measure::Reqwest => {
                let _ = self.client.get(&self.url).send().await?.bytes().await?;
                return Ok(());
            }
            Measure::Granted => (&self.with, "send_read", &self.fetch),
            Measure::IdleWithoutCrate => (&self.without, "calculate", &self.sum),
            Measure::IdleBesideGrants => (&self.beside, "calculate", &self.sum),
            Measure::IdleWithGrant => (&self.with, "calculate", &self.sum),
        };
        let result = host.call(tool, input.clone(), json!({})).await;
        match result.is_success() {
            true => Ok(()),
            false => Err(format!("{tool}: {result}").into()),
        }
    }

    /// Runs all measures in turn, and prints the median of each.
    async fn all(&self) -> Result<(), Box<dyn Error>> {
        let mut times: [Vec<Duration>; Measure::ALL.len()] = Default::default();
        for round in 0..WARM + ROUNDS {
            for (measure, times) in Measure::ALL.into_iter().zip(&mut times) {
                // The caches of the processor hold this measure then, not the one before.
                self.once(measure).await?;
                let begin = Instant::now();
                self.once(measure).await?;
                if round >= WARM {
                    times.push(begin.elapsed());
                }
            }
        }
        for (measure, times) in Measure::ALL.into_iter().zip(&mut times) {
            times.sort();
            println!("{:<55} {:>9.1?}", measure.words(), times[times.len() / 2]);
        }
        Ok(())
    }
}

/// Answers every request with 1,000 bytes, and closes the connection.
async fn serve(listener: TcpListener) {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n";
    let answer = format!("{head}{}", "x".repeat(1_000));
    while let Ok((mut stream, _)) = listener.accept().await {
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut request = [0; 1024];
            if stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
    }
}
