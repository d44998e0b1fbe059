"""Prints the names of the columns and all rows of Parquet files, as an engine reads them: read.py ENGINE FILE..."""

import json
import sys


def of_pyarrow(path):
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    assert {str(column.type) for column in table.columns} <= {"int64", "string"}, table.schema
    return table.column_names, [list(row.values()) for row in table.to_pylist()]


def of_duckdb(path):
    import duckdb

    found = duckdb.sql(f"select * from read_parquet('{path}')")
    assert {str(kind) for kind in found.types} <= {"BIGINT", "VARCHAR"}, found.types
    return found.columns, [list(row) for row in found.fetchall()]


def of_polars(path):
    import polars

    table = polars.read_parquet(path)
    assert {str(kind) for kind in table.dtypes} <= {"Int64", "String"}, table.schema
    return table.columns, [list(row) for row in table.rows()]


def of_chdb(path):
    import chdb

    settings = "settings max_threads=1, output_format_json_quote_64bit_integers=0"
    text = str(chdb.query(f"select * from file('{path}', Parquet) {settings}", "JSONCompactEachRowWithNamesAndTypes"))
    names, types, *rows = [json.loads(line) for line in text.splitlines()]
    assert {kind.removeprefix("Nullable(").removesuffix(")") for kind in types} <= {"Int64", "String"}, types
    return names, rows


def of_pandas(path):
    import pandas

    table = pandas.read_parquet(path, dtype_backend="numpy_nullable")
    assert {str(kind) for kind in table.dtypes} <= {"Int64", "string"}, table.dtypes
    rows = table.astype(object).where(table.notna(), None)
    return list(table.columns), [
        [one if one is None or isinstance(one, str) else int(one) for one in row]
        for row in rows.itertuples(index=False)
    ]


READERS = {"pyarrow": of_pyarrow, "duckdb": of_duckdb, "polars": of_polars, "chdb": of_chdb, "pandas": of_pandas}


def main():
    engine, *paths = sys.argv[1:]
    read = [READERS[engine](path) for path in paths]
    print(json.dumps({"columns": read[0][0], "rows": [row for _, rows in read for row in rows]}))


main()
