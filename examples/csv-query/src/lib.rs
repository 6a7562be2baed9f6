//! The plugin `csv-query`: CSV files as the tables of SQL queries.

mod query;
mod table;
mod tables;

use palisade_guest::{Context, Error, Json, Output, ReadPath, Result, ResultExt, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use table::Table;
use tables::Tables;

/// Maximum size of all files of a call, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// The rows that a description shows.
const SHOWN: usize = 3;

#[derive(Deserialize, JsonSchema)]
struct DescribeArgs {
    /// The CSV file, in UTF-8, whose first line has the names of the columns.
    path: ReadPath,
}

#[derive(Deserialize, JsonSchema)]
struct QueryArgs {
    /// One SELECT statement, such as `SELECT city, COUNT(*) FROM orders GROUP BY city`. A table is
    /// named after its file without the ending. Names are case-sensitive, and names with blanks are
    /// in double quotes.
    #[schemars(length(min = 1, max = 2_000))]
    sql: String,
    /// The CSV files that the statement uses.
    #[schemars(length(min = 1, max = 8))]
    paths: Vec<ReadPath>,
    /// The maximum number of rows to return. The default is 100.
    #[schemars(range(min = 1, max = 1_000))]
    rows: Option<usize>,
}

/// A CSV file as a table.
#[derive(Serialize, JsonSchema)]
struct Description {
    /// The name of the table in a query.
    table: String,
    columns: Vec<Column>,
    /// The number of rows, without the first line.
    rows: usize,
    /// The first rows, as they are in the file.
    first: Vec<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct Column {
    name: String,
    /// INT, FLOAT, BOOLEAN or TEXT: the narrowest type that fits all values. An empty field is NULL.
    r#type: String,
}

/// Shows the columns of a CSV file with their types, the number of rows, and the first rows. Use it
/// before a query.
#[tool(side_effects = "read", idempotent)]
fn describe_csv(args: DescribeArgs) -> Result<Json<Description>> {
    let mut budget = MOST_BYTES;
    let table = read(&args.path, "path", &mut budget)?;
    let columns = table
        .columns
        .iter()
        .map(|column| Column { name: column.name.clone(), r#type: column.data_type.to_string() })
        .collect();
    let first = table.rows.iter().take(SHOWN).map(|row| row.iter().map(query::text).collect());
    Ok(Json(Description {
        first: first.collect(),
        rows: table.rows.len(),
        table: table.name,
        columns,
    }))
}

/// Answers a SQL query over CSV files: filters, joins, groups and sorts their rows. Returns CSV.
#[tool(side_effects = "read", idempotent)]
fn query_csv(args: QueryArgs, ctx: &Context) -> Result<Output> {
    let mut tables = Tables::new(ctx);
    let mut budget = MOST_BYTES;
    for (index, path) in args.paths.iter().enumerate() {
        ctx.progress(index as f64, Some(args.paths.len() as f64), "reading");
        let field = format!("/paths/{index}");
        let table = read(path, &field, &mut budget)?;
        if let Some(name) = tables.add(table) {
            let reason = format!("there are two files for the table `{name}`; rename one of them");
            return Err(Error::invalid_input(field, reason));
        }
    }
    query::run(tables, &args.sql, args.rows.unwrap_or(100))
}

palisade_guest::export!(describe_csv, query_csv);

/// Reads a table. `budget` is what the files may still have, in bytes.
fn read(path: &ReadPath, field: &str, budget: &mut u64) -> Result<Table> {
    let refused = |reason: String| Error::invalid_input(field, format!("{path}: {reason}"));
    let size = fs::metadata(path).context(path)?.len();
    *budget = budget.checked_sub(size).ok_or_else(|| {
        refused(format!("the files of a call may have {MOST_BYTES} bytes together"))
    })?;
    let file = File::open(path).context(path)?;
    Table::read(file, path).map_err(refused)
}

#[cfg(test)]
mod tests;
