//! Measures the price of grants: a fetch of a guest beside the same fetch by hand, and a call that
//! fetches nothing, in a host with and without grants.
//!
//! `cargo run -p palisade-net --example price -- GUEST.wasm`, with the guest `net_fetch` of the
//! suites.
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use palisade::tool::Digest;
use palisade::{CacheMode, Host, json};
use palisade_net::{Grants, Network, PluginGrants};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use wasmtime_wasi_http::io::TokioIo;

/// Rounds of each measurement. They alternate, so that all meet the same machine.
const ROUNDS: usize = 2_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let guest = std::env::args().nth(1).ok_or("the path of the guest `net_fetch` is missing")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let authority = format!("127.0.0.1:{}", listener.local_addr()?.port());
    tokio::spawn(serve(listener));
    let rule = format!("GET http://{authority} private").parse()?;
    let granted = PluginGrants::new(vec![rule], &[], Vec::new(), &|_| None);
    let digest = Digest::of(&std::fs::read(&guest)?);
    let grants = Grants::new(Network::default()).plugin(digest, granted);
    let with = Host::builder().cache(CacheMode::Off).plugin_file(&guest).powers(Arc::new(grants));
    let (with, without) = (with.build()?, Host::builder().cache(CacheMode::Off).build()?);
    let input = json!({"authority": authority});
    let sum = json!({"expression": "1 + 1"});
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        by_hand(&authority).await?;
        times[0].push(begin.elapsed());
        let calls = [
            (&with, "send_read", &input),
            (&with, "variable", &input),
            (&with, "calculate", &sum),
            (&without, "calculate", &sum),
        ];
        for (index, (host, tool, input)) in calls.into_iter().enumerate() {
            let begin = Instant::now();
            let result = host.call(tool, input.clone(), json!({})).await;
            times[index + 1].push(begin.elapsed());
            if !result.is_success() {
                return Err(format!("{tool}: {result}").into());
            }
        }
    }
    let names = [
        "a fetch by hand",
        "a fetch of a guest",
        "a guest that fetches nothing",
        "calculate, in a host with grants",
        "calculate, in a host without grants",
    ];
    for (name, times) in names.iter().zip(&mut times) {
        times.sort();
        println!("{name:<36} {:>9.1?}", times[times.len() / 2]);
    }
    Ok(())
}

/// Fetches over a new connection, as the host does for a guest.
async fn by_hand(authority: &str) -> Result<usize, Box<dyn Error>> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = http::Request::get("/").header("host", authority);
    let response = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?).await?;
    let body = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok(body.len())
}

/// Answers every request with 1,000 bytes.
async fn serve(listener: TcpListener) {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", "x".repeat(1_000));
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
