//! `palisade watch`: follows a running server, and answers its questions at the terminal.

mod answer_time;
mod event_line;
mod question;

use super::args::Watch as Args;
use super::exit::{Exit, Failure};
use super::output::{self, Reader};
use super::remote::{Remote, RemoteError, ServerEvent};
use super::wrap::columns;
use answer_time::AnswerTime;
use event_line::event_line;
use palisade::tool::text::visible;
use question::{Choice, Question};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The most messages that wait for the loop. A reader of the output that takes nothing stops the
/// loop, and through it the thread of the events, and then the server drops the connection. After
/// that the events are read again from the last one.
const QUEUE: usize = 16;
/// The wait before a lost connection is tried again, doubled each time up to the longest one.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// A message to the loop.
enum Message {
    /// The stream of events is open.
    Connected,
    /// An event came.
    Event(ServerEvent),
    /// The connection is lost, and is tried again.
    Lost(RemoteError),
    /// The server refuses the stream.
    Refused(RemoteError),
    /// A line was typed, or the terminal was closed.
    Typed(Option<(String, Instant)>),
}

/// The output of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Lines for a person, who is asked as well.
    Terminal,
    /// The lines of the events, for a program.
    Lines,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let remote = Arc::new(Remote::find(args.url.as_deref(), args.token_file.as_deref())?);
    let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    let mode = if is_terminal && !args.json { Mode::Terminal } else { Mode::Lines };
    let (send, receive) = sync_channel(QUEUE);
    follow(remote.clone(), mode, args.after.clone(), send.clone())?;
    if mode == Mode::Terminal {
        output::note(&format!("watching {}; Ctrl-C ends this, and nothing else", remote.base()));
        type_lines(send)?;
    }
    let waiting = VecDeque::new();
    Watcher {
        remote,
        mode,
        waiting,
        answers: AnswerTime::of_question(Instant::now()),
        is_connected: false,
    }
    .run(&receive)
}

/// Reads the events on a thread of their own.
fn follow(
    remote: Arc<Remote>,
    mode: Mode,
    mut after: Option<String>,
    send: SyncSender<Message>,
) -> io::Result<()> {
    let observer = if mode == Mode::Lines { "&observer=true" } else { "" };
    let follow = move || {
        let mut retry = FIRST_RETRY;
        loop {
            let position = after.clone().unwrap_or_else(|| "now".to_owned());
            let lost = match remote.events(Some(&format!("{position}{observer}"))) {
                Ok(mut stream) => {
                    retry = FIRST_RETRY;
                    if send.send(Message::Connected).is_err() {
                        return;
                    }
                    loop {
                        match stream.next() {
                            Ok(event) => {
                                if !event.id.is_empty() {
                                    after = Some(event.id.clone());
                                }
                                if send.send(Message::Event(event)).is_err() {
                                    return;
                                }
                            }
                            Err(error) => break RemoteError::Unreachable(error.to_string()),
                        }
                    }
                }
                Err(refused @ RemoteError::Refused { status: 401, .. })
                    if remote.has_new_token() =>
                {
                    refused
                }
                Err(refused @ RemoteError::Refused { status: 400..500, .. }) => {
                    let _ = send.send(Message::Refused(refused));
                    return;
                }
                Err(lost) => lost,
            };
            if send.send(Message::Lost(lost)).is_err() {
                return;
            }
            std::thread::sleep(retry);
            retry = (retry * 2).min(LONGEST_RETRY);
        }
    };
    std::thread::Builder::new().name("palisade-follow".to_owned()).spawn(follow).map(|_| ())
}

/// Reads typed lines on a thread of their own.
fn type_lines(send: SyncSender<Message>) -> io::Result<()> {
    /// The longest line, in bytes. The rest of a longer one is another line.
    const LINE: u64 = 256;
    let read = move || {
        let mut input = BufReader::new(io::stdin());
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut input, LINE).read_until(b'\n', &mut line);
            let typed = match read {
                Ok(0) | Err(_) => None,
                Ok(_) => Some((String::from_utf8_lossy(&line).trim().to_owned(), Instant::now())),
            };
            let is_over = typed.is_none();
            if send.send(Message::Typed(typed)).is_err() || is_over {
                return;
            }
        }
    };
    std::thread::Builder::new().name("palisade-type".to_owned()).spawn(read).map(|_| ())
}

/// The state of the command.
struct Watcher {
    remote: Arc<Remote>,
    mode: Mode,
    /// The open questions. The first one is on the screen.
    waiting: VecDeque<Question>,
    answers: AnswerTime,
    is_connected: bool,
}

impl Watcher {
    fn run(&mut self, messages: &Receiver<Message>) -> Result<Exit, Failure> {
        while let Ok(message) = messages.recv() {
            match message {
                Message::Connected => self.connected()?,
                Message::Event(event) => {
                    if self.receive(&event)? == Reader::Gone {
                        return Ok(Exit::Ok);
                    }
                }
                Message::Lost(error) => self.lost(&error),
                Message::Refused(error) => return Err(Failure::new(Exit::Denied, error)),
                Message::Typed(Some((line, typed))) if !self.answers.is_open(typed) => {
                    if !line.is_empty() && !self.waiting.is_empty() {
                        output::text("not taken: the question has just changed\n")?;
                    }
                }
                Message::Typed(Some((line, _))) => self.typed(&line)?,
                Message::Typed(None) => return Ok(Exit::Ok),
            }
        }
        Ok(Exit::Ok)
    }

    /// Shows the questions that were asked before, or while the connection was lost.
    fn connected(&mut self) -> Result<(), Failure> {
        self.is_connected = true;
        if self.mode == Mode::Lines {
            return Ok(());
        }
        let was_asking = self.waiting.front().map(|question| question.id.clone());
        let open = self.remote.get("/confirmations").map_err(failed)?;
        let ids: Vec<String> = open["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|question| question["request_id"].as_str().map(str::to_owned))
            .collect();
        self.waiting.retain(|question| ids.contains(&question.id));
        for id in ids {
            self.add(&id)?;
        }
        let asks = self.waiting.front().map(|question| question.id.clone());
        if asks != was_asking { self.ask() } else { Ok(()) }
    }

    fn lost(&mut self, error: &RemoteError) {
        if self.is_connected || self.mode == Mode::Terminal {
            output::problem("disconnected:", &format!("{error}; trying again"));
        }
        self.is_connected = false;
    }

    fn receive(&mut self, event: &ServerEvent) -> Result<Reader, Failure> {
        if self.mode == Mode::Lines {
            return output::text(&format!("{}\n", event.data));
        }
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if let Some(line) = event_line(&event.name, &data, columns(io::stdout())) {
            output::text(&line)?;
        }
        let id = data["request_id"].as_str().unwrap_or_default();
        match event.name.as_str() {
            "tool.confirmation_requested" => {
                let is_first = self.waiting.is_empty();
                self.add(id)?;
                if is_first {
                    self.ask()?;
                }
            }
            "tool.confirmation_resolved" => self.settled(id)?,
            "journal.gap" => self.connected()?,
            _ => {}
        }
        Ok(Reader::There)
    }

    fn add(&mut self, id: &str) -> Result<(), Failure> {
        if self.waiting.iter().any(|question| question.id == id) {
            return Ok(());
        }
        match self.remote.get(&format!("/confirmations/{id}")) {
            Ok(details) => self.waiting.extend(Question::read(details)),
            // It was answered meanwhile.
            Err(RemoteError::Refused { status: 404, .. }) => {}
            Err(error) => output::problem("question:", &error.to_string()),
        }
        Ok(())
    }

    /// Prints the first question, if there is one.
    fn ask(&mut self) -> Result<(), Failure> {
        let Some(question) = self.waiting.front() else { return Ok(()) };
        // Input that was typed for another question, also without the end of its line, is dropped.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        self.answers = AnswerTime::of_question(Instant::now());
        output::text(&question.text(columns(io::stdout()))).map(|_| ())
    }

    /// Takes a question off the screen that was answered, here or elsewhere.
    fn settled(&mut self, id: &str) -> Result<(), Failure> {
        let was_first = self.waiting.front().is_some_and(|question| question.id == id);
        self.waiting.retain(|question| question.id != id);
        if !was_first {
            return Ok(());
        }
        self.ask()?;
        if !self.waiting.is_empty() {
            self.answers = AnswerTime::of_replacement(Instant::now());
        }
        Ok(())
    }

    fn typed(&mut self, line: &str) -> Result<(), Failure> {
        let Some(question) = self.waiting.front() else {
            return match line {
                "" => Ok(()),
                _ => output::text("no question is open\n").map(|_| ()),
            };
        };
        let decision = match question.choice(line) {
            Choice::Decision(decision) => decision,
            Choice::Whole => {
                return output::text(&question.whole(columns(io::stdout()))).map(|_| ());
            }
            Choice::Unclear => {
                return output::text(&question.again(columns(io::stdout()))).map(|_| ());
            }
        };
        let path = question.path();
        let told = match self.remote.post(&path, &json!({"decision": decision})) {
            Ok(_) => None,
            Err(RemoteError::Refused { status: 409 | 410, problem, .. }) => {
                let won = &problem["resolution"];
                let said = won["decision"].as_str().unwrap_or("ended");
                let by = won["answered_by"].as_str().map(|by| format!(" by {by}"));
                Some(format!("it was settled before: {said}{}", by.unwrap_or_default()))
            }
            Err(RemoteError::Refused { status: 404, .. }) => {
                Some("it is no longer asked".to_owned())
            }
            Err(error) => {
                output::problem("not answered:", &error.to_string());
                return self.ask();
            }
        };
        let id = question.id.clone();
        if let Some(told) = told {
            output::text(&format!("{}\n", visible(&told)))?;
        }
        // The person has answered, and expects the next question.
        self.waiting.retain(|question| question.id != id);
        self.ask()
    }
}

fn failed(error: RemoteError) -> Failure {
    Failure::new(Exit::Internal, error)
}
