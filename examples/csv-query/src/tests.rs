//! Tests of the tools, without a sandbox.

use super::*;
use palisade_guest::testing::{call, call_with, context};
use serde_json::json;

const ORDERS: &str = "tests/data/orders.csv";
const CITIES: &str = "tests/data/cities.csv";

fn query(sql: &str) -> Result<String> {
    let output = call::<query_csv>(json!({"sql": sql, "paths": [ORDERS, CITIES]}))?;
    Ok(output.to_text())
}

#[test]
fn columns_have_the_narrowest_type() {
    let described = describe_csv(DescribeArgs { path: ORDERS.into() }).unwrap().0;
    let types: Vec<&str> = described.columns.iter().map(|column| column.r#type.as_str()).collect();
    // The codes keep their zeros, so they are texts.
    assert_eq!(types, ["INT", "TEXT", "TEXT", "FLOAT", "BOOLEAN"]);
    assert_eq!((described.table.as_str(), described.rows), ("orders", 4));
    assert_eq!(described.first[0], ["1", "Bern", "007", "12.5", "TRUE"]);
}

#[test]
fn rows_are_filtered_grouped_and_sorted() {
    let sql = "SELECT city, SUM(amount) AS total FROM orders GROUP BY city ORDER BY city";
    assert_eq!(query(sql).unwrap(), "city,total\nBern,20\nBonn,2.25\n");
}

#[test]
fn tables_are_joined() {
    let sql =
        "SELECT o.id, c.country FROM orders o JOIN cities c ON o.city = c.name WHERE o.id < 3";
    assert_eq!(query(sql).unwrap(), "id,country\n1,\"Switzerland, CH\"\n2,Germany\n");
}

#[test]
fn empty_field_is_null() {
    assert_eq!(query("SELECT id FROM orders WHERE amount IS NULL").unwrap(), "id\n4\n");
}

#[test]
fn further_rows_are_named() {
    let input = json!({"sql": "SELECT id FROM orders", "paths": [ORDERS], "rows": 1});
    let shown = call::<query_csv>(input).unwrap().to_text();
    assert!(shown.starts_with("id\n1\n") && shown.contains("1 of 4 rows"), "{shown}");
}

#[test]
fn anything_but_one_select_is_refused() {
    for sql in ["DELETE FROM orders", "DROP TABLE orders", "SELECT 1; SELECT 2", "SHOW TABLES", ""]
    {
        let error = query(sql).unwrap_err();
        assert_eq!(error.field(), Some("sql"), "{sql}: {error:?}");
    }
}

#[test]
fn unknown_table_or_column_names_the_known_ones() {
    for sql in ["SELECT * FROM order_lines", "SELECT price FROM orders", "SELEC"] {
        let error = query(sql).unwrap_err();
        assert!(error.message().contains("cities(name, country), orders(id, city"), "{error:?}");
    }
}

#[test]
fn file_that_is_no_table_is_refused() {
    for (text, said) in [
        (&b""[..], "no line with the names"),
        (b"a,b\n1\n", "line 2 has 1 fields, and the first line has 2"),
        (b"a\n\xff\n", "line 2 is not text"),
    ] {
        let refused = Table::read(text, "x.csv".as_ref()).map(drop).unwrap_err();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn separators_marks_and_missing_names_are_understood() {
    let text = "\u{feff}a;;a\r\n1;x;2,5\r\n".as_bytes();
    let table = Table::read(text, "2024 sales.csv".as_ref()).unwrap();
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["a", "column_2", "a_2"]);
    assert_eq!(table.name, "_2024_sales");
}

#[test]
fn two_files_of_one_name_are_refused() {
    let input = json!({"sql": "SELECT 1", "paths": [ORDERS, ORDERS]});
    let error = call::<query_csv>(input).unwrap_err();
    assert_eq!(error.field(), Some("/paths/1"));
}

#[test]
fn cancelled_query_stops() {
    let ctx = context().cancelled_after(0);
    let input = json!({"sql": "SELECT * FROM orders", "paths": [ORDERS]});
    assert_eq!(call_with::<query_csv>(input, &ctx).unwrap_err(), Error::cancelled());
}

#[test]
fn missing_file_is_named() {
    let error = call::<describe_csv>(json!({"path": "tests/none.csv"})).unwrap_err();
    assert!(error.message().starts_with("tests/none.csv: "), "{}", error.message());
}
