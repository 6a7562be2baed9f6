//! A CSV file in memory, with the types of its columns.

use gluesql_core::ast::DataType;
use gluesql_core::data::Value;
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

/// Maximum number of fields of a table: a value takes up to 48 bytes beside its text.
const MOST_FIELDS: usize = 500_000;
/// The separators of fields, the usual one first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Maximum size of the first line, in bytes.
const LONGEST_HEADER: u64 = 64 << 10;

/// A table.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// As many values in each row as there are columns.
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A column.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
}

impl Table {
    /// Reads a table. The error says why the file cannot be one.
    pub(crate) fn read(file: impl Read, path: &Path) -> Result<Self, String> {
        let mut file = BufReader::new(file);
        let mut header = Vec::new();
        let begun = file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut header);
        begun.map_err(|error| error.to_string())?;
        if header.starts_with(b"\xef\xbb\xbf") {
            header.drain(..3);
        }
        let separator = separator(&header);
        let mut reader =
            csv::ReaderBuilder::new().delimiter(separator).from_reader(header.chain(file));
        let names = reader.headers().map_err(reason)?;
        if names.iter().all(str::is_empty) {
            return Err("there is no line with the names of columns".to_owned());
        }
        let names = distinct(names.iter());
        let records = records(&mut reader, names.len())?;
        let types: Vec<DataType> = (0..names.len()).map(|at| data_type(&records, at)).collect();
        let rows = records.into_iter().map(|record| row(&record, &types)).collect();
        let columns = names.into_iter().zip(types);
        let columns = columns.map(|(name, data_type)| Column { name, data_type }).collect();
        Ok(Self { name: table_name(path), columns, rows })
    }
}

/// Returns the separator that is most frequent in the first line.
fn separator(header: &[u8]) -> u8 {
    let count = |separator: u8| header.iter().filter(|byte| **byte == separator).count();
    // The last one of several maxima is found, and the usual one wins.
    SEPARATORS.into_iter().rev().max_by_key(|it| count(*it)).unwrap_or(b',')
}

fn records(
    reader: &mut csv::Reader<impl Read>,
    columns: usize,
) -> Result<Vec<csv::StringRecord>, String> {
    let mut records = Vec::new();
    for record in reader.records() {
        records.push(record.map_err(reason)?);
        if records.len() * columns > MOST_FIELDS {
            return Err(format!("there are more than {MOST_FIELDS} fields; divide the file"));
        }
    }
    Ok(records)
}

fn reason(error: csv::Error) -> String {
    let line = |position: &Option<csv::Position>| position.as_ref().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            format!("line {} has {len} fields, and the first line has {expected_len}", line(pos))
        }
        csv::ErrorKind::Utf8 { pos, .. } => {
            format!("line {} is not text; give a file in UTF-8", line(pos))
        }
        _ => error.to_string(),
    }
}

/// Names columns that have no name by their position, and numbers names that occur again.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut named = Vec::new();
    for (index, name) in names.enumerate() {
        let name = match name.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        let free = candidates.find(|it| !taken.contains(it)).unwrap_or(name);
        taken.insert(free.clone());
        named.push(free);
    }
    named
}

/// Returns the narrowest type of all values of a column; that of a column without values is text.
fn data_type(records: &[csv::StringRecord], column: usize) -> DataType {
    let fields = || records.iter().filter_map(|it| it.get(column)).filter(|it| !it.is_empty());
    if fields().next().is_none() {
        DataType::Text
    } else if fields().all(|it| integer(it).is_some()) {
        DataType::Int
    } else if fields().all(|it| number(it).is_some()) {
        DataType::Float
    } else if fields().all(|it| boolean(it).is_some()) {
        DataType::Boolean
    } else {
        DataType::Text
    }
}

fn row(record: &csv::StringRecord, types: &[DataType]) -> Vec<Value> {
    types.iter().zip(record).map(|(data_type, field)| value(data_type, field)).collect()
}

fn value(data_type: &DataType, field: &str) -> Value {
    let typed = match data_type {
        DataType::Int => integer(field).map(Value::I64),
        DataType::Float => number(field).map(Value::F64),
        DataType::Boolean => boolean(field).map(Value::Bool),
        _ => (!field.is_empty()).then(|| Value::Str(field.to_owned())),
    };
    typed.unwrap_or(Value::Null)
}

/// Returns a whole number, if its digits say all: `007` may be a code, whose zeros count.
fn integer(field: &str) -> Option<i64> {
    field.parse().ok().filter(|number: &i64| number.to_string() == field)
}

fn number(field: &str) -> Option<f64> {
    let digits = field.trim_start_matches('-');
    let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let is_number = digits.starts_with(|it: char| it.is_ascii_digit()) && !is_code;
    is_number.then(|| field.parse().ok()).flatten().filter(|it: &f64| it.is_finite())
}

fn boolean(field: &str) -> Option<bool> {
    match field.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns the name of a file without its ending, with `_` for what needs quotes in SQL.
fn table_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |sign: char| if sign.is_alphanumeric() { sign } else { '_' };
    let name: String = stem.chars().map(plain).collect();
    match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}
