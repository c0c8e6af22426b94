"""A topic of a lake read with Polars (and `deltalake`): read_with_polars.py LAKE TOPIC."""

import sys

import polars as pl

lake, topic = sys.argv[1:]
records = pl.scan_delta(f"{lake}/topic.{topic}")
totals = (
    records.group_by("partition")
    .agg(
        pl.len().alias("records"),
        pl.col("offset").min().alias("first"),
        pl.col("offset").max().alias("last"),
    )
    .sort("partition")
    .collect()
)
for row in totals.iter_rows(named=True):
    span = f"offsets {row['first']} to {row['last']}"
    print(f"partition {row['partition']}: {row['records']} records, {span}")
newest = records.sort("timestamp").select("value").last().collect()
print("the newest:", newest.item().decode())
