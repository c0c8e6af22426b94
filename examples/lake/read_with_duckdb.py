"""A topic of a lake read with DuckDB: read_with_duckdb.py LAKE TOPIC.

DuckDB's own extension reads a table as well: `INSTALL delta; SELECT ... FROM delta_scan('FOLDER')`.
It is brought over the network; here `deltalake` says which files count, and DuckDB reads them."""

import sys

import duckdb
from deltalake import DeltaTable

lake, topic = sys.argv[1:]
records = DeltaTable(f"{lake}/topic.{topic}").to_pyarrow_dataset()
database = duckdb.connect()
database.register("records", records)
totals = database.sql(
    'SELECT partition, count(*), min("offset"), max("offset") FROM records GROUP BY 1 ORDER BY 1'
)
for partition, count, first, last in totals.fetchall():
    print(f"partition {partition}: {count} records, offsets {first} to {last}")
newest = database.sql("SELECT decode(value) FROM records ORDER BY timestamp DESC LIMIT 1")
print("the newest:", *newest.fetchall()[0])
