"""Runs a preamble of fleet/ and some of its questions on an engine, in the directory that has recordings/, and prints
the columns and rows of each as a line of JSON: ask.py ENGINE PREAMBLE QUESTION..."""

import json
import sys


def statements(path):
    """The statements of a file, without comments."""
    with open(path) as file:
        text = "\n".join(line for line in file.read().splitlines() if not line.startswith("--"))
    return [one.strip() for one in text.split(";") if one.strip()]


def on_duckdb():
    import duckdb

    connection = duckdb.connect()

    def ask(statement):
        found = connection.sql(statement)
        return None if found is None else (found.columns, [list(row) for row in found.fetchall()])

    return ask


def on_clickhouse():
    import chdb.session

    session = chdb.session.Session()

    def ask(statement):
        if not statement.startswith(("select", "with")):
            return session.query(statement) and None
        settings = " settings max_threads=1, output_format_json_quote_64bit_integers=0"
        names, *rows = map(
            json.loads, str(session.query(statement + settings, "JSONCompactEachRowWithNames")).splitlines()
        )
        return names, rows

    return ask


def on_spark():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.bindAddress", "127.0.0.1")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()

    def ask(statement):
        found = session.sql(statement)
        return found.columns, [list(row) for row in found.collect()]

    return ask


ENGINES = {"duckdb": on_duckdb, "clickhouse": on_clickhouse, "spark": on_spark}


def main():
    engine, preamble, *questions = sys.argv[1:]
    ask = ENGINES[engine]()
    for statement in statements(preamble):
        ask(statement)
    for question in questions:
        [statement] = statements(question)
        columns, rows = ask(statement)
        # Some sums are decimal numbers of more than 64 bits.
        print(json.dumps({"columns": list(columns), "rows": rows}, default=int))


main()
