//! The tables of a call, as the storage of the SQL engine. It can be read only: the default
//! functions of the other traits refuse every change.

use crate::table::{Column, Table};
use gluesql_core::ast::ColumnDef;
use gluesql_core::data::{Key, Schema, Value};
use gluesql_core::error::{Error, Result};
use gluesql_core::store::{
    AlterTable, CustomFunction, CustomFunctionMut, Index, IndexMut, Metadata, Planner, RowIter,
    Store, StoreMut, Transaction,
};
use palisade_guest::Context;
use std::collections::BTreeMap;

/// The rows between two questions whether the call is cancelled.
const ROWS_PER_POLL: usize = 1_000;

/// The tables.
pub(crate) struct Tables<'c> {
    tables: BTreeMap<String, Table>,
    pub(crate) ctx: &'c Context,
}

impl<'c> Tables<'c> {
    pub(crate) fn new(ctx: &'c Context) -> Self {
        Self { tables: BTreeMap::new(), ctx }
    }

    /// Adds a table. Returns its name if there is a table of this name, which is replaced.
    pub(crate) fn add(&mut self, table: Table) -> Option<String> {
        let name = table.name.clone();
        self.tables.insert(name.clone(), table).map(|_| name)
    }

    /// Returns the tables with their columns, for a model that has named another one.
    pub(crate) fn summary(&self) -> String {
        let table = |(name, table): (&String, &Table)| {
            let columns: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
            format!("{name}({})", columns.join(", "))
        };
        self.tables.iter().map(table).collect::<Vec<_>>().join(", ")
    }
}

impl Store for Tables<'_> {
    fn fetch_schema(&self, name: &str) -> Result<Option<Schema>> {
        Ok(self.tables.get(name).map(schema))
    }

    fn fetch_all_schemas(&self) -> Result<Vec<Schema>> {
        Ok(self.tables.values().map(schema).collect())
    }

    fn fetch_data(&self, name: &str, key: &Key) -> Result<Option<Vec<Value>>> {
        let Key::U64(index) = key else { return Ok(None) };
        let table = self.tables.get(name);
        let row = table.zip(usize::try_from(*index).ok()).and_then(|(it, at)| it.rows.get(at));
        Ok(row.cloned())
    }

    fn scan_data<'a>(&'a self, name: &str) -> Result<RowIter<'a>> {
        let rows = self.tables.get(name).map(|table| table.rows.as_slice()).unwrap_or_default();
        let row = |(index, row): (usize, &Vec<Value>)| {
            if index % ROWS_PER_POLL == 0 && self.ctx.cancelled() {
                return Err(Error::StorageMsg("the call was cancelled".to_owned()));
            }
            Ok((Key::U64(index as u64), row.clone()))
        };
        Ok(Box::new(rows.iter().enumerate().map(row)))
    }
}

impl AlterTable for Tables<'_> {}
impl CustomFunction for Tables<'_> {}
impl CustomFunctionMut for Tables<'_> {}
impl Index for Tables<'_> {}
impl IndexMut for Tables<'_> {}
impl Metadata for Tables<'_> {}
impl Planner for Tables<'_> {}
impl StoreMut for Tables<'_> {}
impl Transaction for Tables<'_> {}

fn schema(table: &Table) -> Schema {
    Schema {
        table_name: table.name.clone(),
        column_defs: Some(table.columns.iter().map(column).collect()),
        indexes: Vec::new(),
        engine: None,
        foreign_keys: Vec::new(),
        comment: None,
    }
}

fn column(column: &Column) -> ColumnDef {
    ColumnDef {
        name: column.name.clone(),
        data_type: column.data_type.clone(),
        nullable: true,
        default: None,
        unique: None,
        comment: None,
    }
}
