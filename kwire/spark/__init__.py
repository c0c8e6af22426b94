"""The data pipeline on Spark: jobs over topics, archives and segment files (docs/SPARK.md).

Nothing here imports PySpark before a job runs; `kwire.spark.segment_source` is the exception, a
module that Spark's workers load.
"""

from __future__ import annotations
