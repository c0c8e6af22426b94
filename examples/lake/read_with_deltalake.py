"""A topic of a lake read with `deltalake` and Arrow: read_with_deltalake.py LAKE TOPIC."""

import sys

from deltalake import DeltaTable

lake, topic = sys.argv[1:]
# Columns and files are chosen by the table's log: nothing else is read.
columns = ["partition", "offset", "timestamp", "value"]
records = DeltaTable(f"{lake}/topic.{topic}").to_pyarrow_table(columns=columns)
totals = records.group_by("partition").aggregate(
    [("offset", "count"), ("offset", "min"), ("offset", "max")]
)
for row in totals.sort_by("partition").to_pylist():
    span = f"offsets {row['offset_min']} to {row['offset_max']}"
    print(f"partition {row['partition']}: {row['offset_count']} records, {span}")
print("the newest:", records.sort_by("timestamp").to_pylist()[-1]["value"].decode())
