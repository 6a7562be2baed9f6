//! Runs a statement, and writes its rows as CSV.

use crate::tables::Tables;
use gluesql_core::data::Value;
use gluesql_core::plan::StatementPlan;
use gluesql_core::prelude::{Glue, Payload};
use palisade_guest::{Content, Error, Output, Result};

/// Maximum length of the rows that are returned, in bytes.
const LONGEST: usize = 64 << 10;
/// Maximum length of an error of the engine, in characters: some quote the whole statement.
const LONGEST_REASON: usize = 300;

/// Runs a statement, and returns at most so many rows.
pub(crate) fn run(tables: Tables<'_>, sql: &str, most: usize) -> Result<Output> {
    let (ctx, summary) = (tables.ctx, tables.summary());
    let refused = |error: gluesql_core::error::Error| {
        let reason: String = error.to_string().chars().take(LONGEST_REASON).collect();
        Error::invalid_input("sql", format!("{reason}; the tables are {summary}"))
    };
    let mut glue = Glue::new(tables);
    let plans = glue.plan(sql).map_err(&refused)?;
    let [plan @ StatementPlan::Query(_)] = plans.as_slice() else {
        return Err(Error::invalid_input("sql", "exactly one SELECT statement is accepted"));
    };
    let payload = glue.execute_stmt(plan);
    // The tables end a query of a cancelled call with an error.
    ctx.checkpoint()?;
    match payload.map_err(refused)? {
        Payload::Select { labels, rows } => output(&labels, &rows, most),
        _ => Err(Error::failed("the statement has no rows")),
    }
}

/// Returns a value as text; NULL is an empty field.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => value.into(),
    }
}

fn output(labels: &[String], rows: &[Vec<Value>], most: usize) -> Result<Output> {
    let mut csv = line(labels)?;
    let mut returned = 0;
    for row in rows.iter().take(most) {
        let fields: Vec<String> = row.iter().map(text).collect();
        let line = line(&fields)?;
        if csv.len() + line.len() > LONGEST {
            break;
        }
        csv.push_str(&line);
        returned += 1;
    }
    let output = Output::text(csv).metadata("rows", rows.len());
    if returned == rows.len() {
        return Ok(output);
    }
    let note = format!(
        "{returned} of {} rows are shown; continue with LIMIT and OFFSET, or group them.",
        rows.len()
    );
    Ok(output.and(Content::text(note)))
}

fn line(fields: &[String]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(fields)?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8(bytes)?)
}
