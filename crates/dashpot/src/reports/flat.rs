//! The JSON of a report's page as rows: a row for each innermost object, with the figures of the objects
//! around it.

use serde_json::{Map, Value};

/// Rows with the same columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flat {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The rows of a page. Objects with different columns go into separate tables.
pub(super) fn flat(page: &Value) -> Vec<Flat> {
    let mut tables: Vec<Flat> = Vec::new();
    let mut put = |cells: &[(String, String)]| {
        let head: Vec<String> = cells.iter().map(|(name, _)| name.clone()).collect();
        let row = cells.iter().map(|(_, cell)| cell.clone()).collect();
        match tables.iter_mut().find(|table| table.head == head) {
            Some(table) => table.rows.push(row),
            None => tables.push(Flat {
                head,
                rows: vec![row],
            }),
        }
    };
    if let Value::Object(page) = page {
        rows(page, "", &[], &mut put);
    }
    tables
}

/// A cell: its column, and its text.
type Cell = (String, String);

/// Calls `put` with the cells of each innermost object within an object.
fn rows(object: &Map<String, Value>, prefix: &str, around: &[Cell], put: &mut impl FnMut(&[Cell])) {
    let mut cells = around.to_vec();
    let mut inner: Vec<(String, &Vec<Value>)> = Vec::new();
    figures(object, prefix, &mut cells, &mut inner);
    let objects = |list: &Vec<Value>| list.iter().any(Value::is_object);
    if inner.iter().all(|(_, list)| !objects(list)) {
        put(&cells);
    }
    for (name, list) in inner {
        for one in list.iter().filter_map(Value::as_object) {
            rows(one, &format!("{name}."), &cells, put);
        }
    }
}

/// Adds the figures of an object to `cells`, and its lists of objects to `inner`.
fn figures<'a>(
    object: &'a Map<String, Value>,
    prefix: &str,
    cells: &mut Vec<Cell>,
    inner: &mut Vec<(String, &'a Vec<Value>)>,
) {
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(object) => figures(object, &format!("{name}."), cells, inner),
            Value::Array(list) if list.iter().all(Value::is_object) => inner.push((name, list)),
            Value::Array(list) => {
                let words: Vec<String> = list.iter().map(cell).collect();
                cells.push((name, words.join(" ")));
            }
            value => cells.push((name, cell(value))),
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn inner_objects_are_rows_with_the_figures_around_them() {
        let page = json!({
            "at_ns": 7,
            "disks": [
                {"disk": "a", "reads": {"count": 3}, "buckets": [[1, 2], [3, 4]]},
                {"disk": "b", "reads": {"count": 0}, "buckets": []},
            ],
        });
        let tables = flat(&page);
        assert_eq!(tables.len(), 2, "an empty list has no figures: {tables:?}");
        assert_eq!(
            tables[0].head,
            ["at_ns", "disks.buckets", "disks.disk", "disks.reads.count"]
        );
        assert_eq!(tables[0].rows, [["7", "[1,2] [3,4]", "a", "3"]]);
        assert_eq!(flat(&json!({"a": null, "b": "x"}))[0].rows, [["", "x"]]);
        assert!(flat(&json!({"a": [], "b": [{"c": 1}]}))[0].rows == [["1"]]);
    }
}
