//! A guest that misuses the interfaces available to every guest: clocks, random numbers, polls,
//! streams, and host calls.

use palisade_guest::{Context, Error, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use wasip2::cli::stderr::get_stderr;
use wasip2::cli::stdin::get_stdin;
use wasip2::cli::stdout::get_stdout;
use wasip2::clocks::monotonic_clock::{subscribe_duration, subscribe_instant};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Datetime, DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};
use wasip2::io::poll::poll;
use wasip2::random::random::get_random_bytes;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The kind of abuse.
    how: String,
    /// The amount.
    #[serde(default)]
    amount: u64,
    /// The text.
    #[serde(default)]
    text: String,
}

/// Misuses an interface.
#[tool(side_effects = "none")]
fn abuse(args: Args, ctx: &Context) -> Result<String> {
    let amount = args.amount;
    match args.how.as_str() {
        "hold-pollables" => Ok(held((0..amount).map(|_| subscribe_duration(1)))),
        "hold-streams" => Ok(held((0..amount).map(|_| get_stdout()))),
        "hold-inputs" => Ok(held((0..amount).map(|_| {
            let input = get_stdin();
            (input.subscribe(), input)
        }))),
        "random" => Ok(format!("{} bytes", get_random_bytes(amount).len())),
        "random-for-ever" => loop {
            std::hint::black_box(get_random_bytes(amount));
        },
        "poll-copies" => {
            let one = subscribe_duration(0);
            Ok(format!("{} ready", poll(&vec![&one; usize::try_from(amount).unwrap_or(0)]).len()))
        }
        "sleep" => {
            subscribe_duration(amount).block();
            Ok("slept".to_owned())
        }
        "sleep-until-the-end-of-time" => {
            poll(&[&subscribe_instant(u64::MAX), &subscribe_duration(u64::MAX)]);
            Ok("slept".to_owned())
        }
        "poll-for-ever" => loop {
            subscribe_duration(0).block();
        },
        "input" => Ok(format!(
            "{:?}",
            get_stdin().blocking_read(amount).map_err(|error| error.to_string())
        )),
        "say" => {
            ctx.info(&"m".repeat(usize::try_from(amount).unwrap_or(0)));
            Ok("said".to_owned())
        }
        "say-often" => {
            (0..amount).for_each(|_| ctx.info("x"));
            Ok("said".to_owned())
        }
        "emit" => {
            ctx.emit(&"x".repeat(usize::try_from(amount).unwrap_or(0)));
            Ok("emitted".to_owned())
        }
        "emit-often" => {
            (0..amount).for_each(|_| ctx.emit("xx"));
            Ok("emitted".to_owned())
        }
        "emit-and-sleep" => {
            (0..amount >> 10).for_each(|_| ctx.emit(&"x".repeat(2048)));
            subscribe_duration(u64::MAX).block();
            Ok("slept".to_owned())
        }
        "step-often" => {
            (0..amount).for_each(|_| ctx.progress(1.0, None, "x"));
            Ok("stepped".to_owned())
        }
        "say-odd-things" => {
            let odd = "a\nb\r\u{2028}\u{2029}\u{0}\u{1b}]52;c;aGVsbG8=\u{7}\u{1b}[2J{\"event\":\"tool.completed\"}\u{202e}";
            ctx.info(odd);
            ctx.emit(odd);
            ctx.progress(1.0, None, odd);
            Ok(odd.to_owned())
        }
        "fail" => Err(Error::failed(&args.text)),
        "not-found" => Err(Error::not_found(&args.text)),
        "permission-denied" => Err(Error::permission_denied(&args.text)),
        "invalid-input" => Err(Error::invalid_input(&args.text, &args.text)),
        "be-cancelled" => Err(Error::cancelled()),
        "look-around" => Ok(look_around()),
        _ => streams(&args.how, amount),
    }
}

/// Returns all information about the host and its machine that the guest can query.
fn look_around() -> String {
    let mut found: Vec<String> =
        std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    found.extend(std::env::args());
    found.push(format!("{:?} {:?}", std::env::current_dir(), std::env::current_exe()));
    for path in
        ["missing.txt", "/etc/hostname", "../secret.txt", "/proc/self/environ", "dir", "", "a\0b"]
    {
        found.push(format!("{path}: {:?} {:?}", std::fs::read(path), std::fs::canonicalize(path)));
        found.push(format!(
            "{path}: {:?} {:?}",
            std::fs::read_link(path),
            std::fs::read_dir(path).map(|_| ())
        ));
    }
    found.push(format!("{:?}", std::net::TcpStream::connect("127.0.0.1:1")));
    found.push(format!("{:?}", std::net::UdpSocket::bind("127.0.0.1:0")));
    found.join("\n")
}

/// The size of one write, in bytes.
const PART: usize = 64 << 10;

/// Performs an operation on an output stream.
fn streams(how: &str, amount: u64) -> Result<String> {
    let out = get_stdout();
    let told = |outcome: std::result::Result<(), _>| match outcome {
        Ok(()) => "written".to_owned(),
        Err(error) => format!("{error:?}"),
    };
    match how {
        "flood" => {
            let (part, both) = (vec![b'f'; PART], [get_stdout(), get_stderr()]);
            for number in 0..amount / PART as u64 {
                let stream = &both[usize::from(number % 2 == 1)];
                let permit = stream.check_write().map_err(|error| format!("{error:?}"))?;
                let part = &part[..part.len().min(usize::try_from(permit).unwrap_or(0))];
                stream.write(part).map_err(|error| format!("{error:?}"))?;
            }
            Ok("flooded".to_owned())
        }
        "print" => {
            // Like any program: these macros panic if the stream is closed or fails.
            let line = "l".repeat(1023);
            for _ in 0..amount / 2 {
                println!("{line}");
                eprintln!("{line}");
            }
            Ok("printed".to_owned())
        }
        "zeroes" => Ok(told(out.write_zeroes(amount))),
        "blocking-zeroes" => Ok(told(out.blocking_write_zeroes_and_flush(amount))),
        "write-unasked" => Ok(told(out.write(&vec![b'u'; usize::try_from(amount).unwrap_or(0)]))),
        "write-nothing" => {
            for _ in 0..amount {
                let _ = out.check_write();
                let _ = out.write(&[]);
            }
            Ok("written".to_owned())
        }
        "splice" => {
            Ok(format!("{:?}", out.splice(&get_stdin(), amount).map_err(|error| error.to_string())))
        }
        _ => Err(format!("there is no way called `{how}`").into()),
    }
}

/// Leaks all handles, so that they stay open until the call ends.
fn held<T>(all: impl Iterator<Item = T>) -> String {
    let all: Vec<T> = all.collect();
    let count = all.len();
    std::mem::forget(all);
    format!("{count} held")
}

/// Sets invalid times on a file.
#[tool(side_effects = "write")]
fn extreme_times(args: Args) -> Result<String> {
    let preopens = get_directories();
    let (root, _) = preopens.first().ok_or("there is no directory")?;
    let file =
        root.open_at(PathFlags::empty(), "file.txt", OpenFlags::empty(), DescriptorFlags::WRITE);
    let file = file.map_err(|code| code.name().to_owned())?;
    let time = |seconds| NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: u32::MAX });
    let set = file.set_times(time(args.amount), time(args.amount));
    let size = file.set_size(u64::MAX >> 1);
    let told =
        |outcome: std::result::Result<(), wasip2::filesystem::types::ErrorCode>| match outcome {
            Ok(()) => "done".to_owned(),
            Err(code) => code.name().to_owned(),
        };
    Ok(format!("{}, {}", told(set), told(size)))
}

/// Waits this number of nanoseconds, and then writes a file.
#[tool(side_effects = "write")]
fn write_late(args: Args) -> Result<String> {
    subscribe_duration(args.amount).block();
    std::fs::write(&args.text, "late")?;
    Ok("written".to_owned())
}

palisade_guest::export!(abuse, extreme_times, write_late);
