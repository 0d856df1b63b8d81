//! Compares the tables beside the leaves with what the leaves make of them.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::LogError;
use crate::schema::PROJECTED_TABLES;

/// The differences, table by table; of each table the first.
pub(super) fn differences(stored: &Connection, made: &Connection) -> Result<Vec<String>, LogError> {
    let mut found = Vec::new();
    for (table, order) in PROJECTED_TABLES {
        found.extend(first_difference(stored, made, table, order)?);
    }
    Ok(found)
}

fn first_difference(
    stored: &Connection,
    made: &Connection,
    table: &str,
    order: &str,
) -> Result<Option<String>, LogError> {
    let sql = format!("SELECT * FROM {table} ORDER BY {order}");
    let (mut stored, mut made) = (stored.prepare(&sql)?, made.prepare(&sql)?);
    let columns: Vec<String> = made.column_names().map(str::to_owned).collect();
    if !stored.column_names().eq(&columns) {
        return Ok(Some(format!("the table `{table}` has other columns")));
    }
    let (mut stored, mut made) = (stored.query([])?, made.query([])?);
    loop {
        let (is, should) = match (stored.next()?, made.next()?) {
            (None, None) => return Ok(None),
            (Some(row), None) => {
                let first = text(&row.get(0)?);
                return Ok(Some(format!("the table `{table}` has the row {first}, which no leaf made")));
            }
            (None, Some(row)) => {
                let first = text(&row.get(0)?);
                return Ok(Some(format!("the table `{table}` lacks the row {first}")));
            }
            (Some(is), Some(should)) => (is, should),
        };
        let row = text(&should.get(0)?);
        for (index, column) in columns.iter().enumerate() {
            let (is, should): (Value, Value) = (is.get(index)?, should.get(index)?);
            if is != should {
                let (is, should) = (text(&is), text(&should));
                return Ok(Some(format!(
                    "the table `{table}` says {is} for `{column}` of {row}, the leaves say {should}"
                )));
            }
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => format!("`{text}`"),
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}
