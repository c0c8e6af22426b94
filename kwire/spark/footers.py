"""How many bytes the records of Parquet files have: their footers tell it.

A footer has the size of a column's values before any encoding
(`unencoded_byte_array_data_bytes`, since version 2.10 of the format), which Spark's writer counts
anyway. Counting in a query would cost each record some work.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kwire.spark.lake_files import is_local

COLUMNS = ("key", "value")
# Footers that are read at a time where each is a request to a store.
READERS = 8


def record_bytes(spark: Any, folder: str, paths: Sequence[str]) -> int:
    """The bytes of keys and values in files of a folder."""
    jvm, settings = spark._jvm, spark._jsc.hadoopConfiguration()
    parquet = jvm.org.apache.parquet.hadoop

    def read(path: str) -> int:
        place = jvm.org.apache.hadoop.fs.Path(f"{folder}/{path}")
        source = parquet.util.HadoopInputFile.fromPath(place, settings)
        reader = parquet.ParquetFileReader.open(source)
        try:
            blocks = reader.getFooter().getBlocks()
        finally:
            reader.close()
        return sum(
            _bytes_of(column)
            for block in blocks
            for column in block.getColumns()
            if column.getPath().toDotString() in COLUMNS
        )

    if is_local(folder) or len(paths) < 2:
        return sum(map(read, paths))
    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(read, paths))


def _bytes_of(column: Any) -> int:
    """Of one column of a group of rows; encoded ones where the writer was told not to count."""
    found = column.getSizeStatistics()
    counted = found.getUnencodedByteArrayDataBytes() if found is not None else None
    if counted is not None and counted.isPresent():
        return int(counted.get())
    return int(column.getTotalUncompressedSize())
