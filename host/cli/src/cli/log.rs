//! `palisade log`: shows what a journal has recorded.

mod call_text;
mod call_value;
mod follow;

use super::args::Log as Args;
use super::exit::{Exit, Failure};
use super::journal;
use super::output::{self, Reader};
use super::wrap::columns;
use call_text::{call_line, call_page};
use call_value::call_value;
use palisade::tool::text::visible_json;
use palisade_server::journal::{
    CallFilter, CallPage, CallRef, CallRow, CallState, Journal, JournalError, Page, Timestamp,
};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use tokio::runtime::Builder;

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    // Report a wrong option before a missing journal.
    let filter = filter(args)?;
    let path = path(args)?;
    let journal = Journal::read_only(&path).map_err(|error| failed(&error))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.call {
            Some(id) => show_call(&journal, args, id).await,
            None => show_calls(&journal, args, &filter).await,
        }
    })
}

/// Returns the file of the journal.
fn path(args: &Args) -> Result<PathBuf, Failure> {
    let usual = || {
        journal::default_file().ok_or_else(|| {
            Failure::usage("there is no state directory; --journal names the journal")
        })
    };
    let path = args.journal.clone().map_or_else(usual, Ok)?;
    match path.exists() {
        true => Ok(path),
        false => Err(Failure::new(
            Exit::NotFound,
            format!(
                "there is no journal `{}` yet: `palisade serve --http` and `palisade serve --console` keep one",
                path.display()
            ),
        )),
    }
}

async fn show_call(journal: &Journal, args: &Args, id: &str) -> Result<Exit, Failure> {
    let page = match find_call(journal, CallRef::Id { id: id.into(), client: None }).await? {
        Some(page) => page,
        // The console shows the journal's own numbers.
        None => match id.parse().ok() {
            Some(number) => find_call(journal, CallRef::Key(number)).await?,
            None => find_call(journal, unique_beginning(journal, id).await?).await?,
        }
        .ok_or_else(|| no_call(id))?,
    };
    match args.json {
        true => output::json(&call_value(&page))?,
        false => output::text(&call_page(&page, columns(io::stdout())))?,
    };
    Ok(Exit::Ok)
}

async fn find_call(journal: &Journal, of: CallRef) -> Result<Option<CallPage>, Failure> {
    journal.call(of).await.map_err(|error| failed(&error))
}

/// Returns the only call whose id begins like this, among the newest that have this text.
async fn unique_beginning(journal: &Journal, beginning: &str) -> Result<CallRef, Failure> {
    /// The number of ids that a refusal lists.
    const LISTED: usize = 5;
    let filter = CallFilter { text: Some(beginning.into()), ..CallFilter::default() };
    let rows = newest_rows(journal, &filter, 1_000).await.map_err(|error| failed(&error))?;
    let mut found = rows.iter().filter(|row| row.id.starts_with(beginning));
    let first = found.next().ok_or_else(|| no_call(beginning))?;
    let others: Vec<String> = found.take(LISTED).map(|row| format!("`{}`", row.id)).collect();
    match others.is_empty() {
        true => Ok(CallRef::Key(first.key)),
        false => Err(Failure::new(
            Exit::NotFound,
            format!(
                "several calls have an id that begins with `{beginning}`, such as `{}`, {}: give more of it",
                first.id,
                others.join(", ")
            ),
        )),
    }
}

fn no_call(id: &str) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!(
            "the journal has no call `{id}`, and none whose id begins like this: `palisade log` lists the newest"
        ),
    )
}

async fn show_calls(journal: &Journal, args: &Args, filter: &CallFilter) -> Result<Exit, Failure> {
    // Read before the calls, so that no call that ends meanwhile is missed.
    let newest = *journal.newest().borrow();
    let rows = newest_rows(journal, filter, args.limit).await.map_err(|error| failed(&error))?;
    for row in rows.iter().rev() {
        if print(row, args)? == Reader::Gone {
            return Ok(Exit::Ok);
        }
    }
    if rows.is_empty() && !args.json && !args.follow && io::stderr().is_terminal() {
        output::note("no call matches");
    }
    match args.follow {
        true => follow::follow(journal, newest, filter, args).await,
        false => Ok(Exit::Ok),
    }
}

/// Returns the newest calls, the newest first.
async fn newest_rows(
    journal: &Journal,
    filter: &CallFilter,
    limit: u32,
) -> Result<Vec<CallRow>, JournalError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = Page { after, limit: (limit - rows.len()).min(Page::MOST) };
        let listing = journal.calls(filter, page).await?;
        rows.extend(listing.rows);
        after = listing.next;
        if after.is_none() || rows.len() >= limit {
            return Ok(rows);
        }
    }
}

fn print(row: &CallRow, args: &Args) -> Result<Reader, Failure> {
    match args.json {
        true => {
            output::text(&format!("{}\n", visible_json(&call_value::row_value(row).to_string())))
        }
        false => output::text(&call_line(row, columns(io::stdout()))),
    }
}

/// Returns the filter of the options.
fn filter(args: &Args) -> Result<CallFilter, Failure> {
    let (mut state, mut error_class) = (None, None);
    if let Some(outcome) = args.outcome.as_deref() {
        match (outcome.parse::<CallState>(), error_class_of(outcome)) {
            (Ok(known), _) => state = Some(known),
            (Err(_), Some(class)) => error_class = Some(class.into()),
            (Err(_), None) => {
                return Err(Failure::usage(format!(
                    "`{outcome}` is no outcome; want succeeded, failed, running, waiting, unknown, or one of {}",
                    error_classes().join(", ")
                )));
            }
        }
    }
    Ok(CallFilter {
        client: None,
        session_id: args.session.as_deref().map(Into::into),
        tool: args.tool.as_deref().map(Into::into),
        class: args.class.map(|class| class.to_string().into()),
        state,
        error_class,
        since: args.since.map(Timestamp::from),
        until: args.until.map(Timestamp::from),
        text: args.search.as_deref().map(Into::into),
    })
}

fn error_classes() -> Vec<&'static str> {
    use palisade::ErrorClass;
    ErrorClass::ALL.into_iter().map(ErrorClass::as_str).collect()
}

fn error_class_of(name: &str) -> Option<&'static str> {
    error_classes().into_iter().find(|class| *class == name)
}

fn failed(error: &JournalError) -> Failure {
    Failure::new(Exit::Usage, error)
}
