"""What a node counts, and by which names it shows it.

The parts of a node keep plain integers of their own; only here they are read, in slices, when
somebody asks (`reading.py`, a file an area below it). What is read travels as blocks of rows
(`blocks.py`) to the HTTP process, which names it (`families.py`) and writes OpenMetrics
(`exposition.py`). Names, labels and types are those that the JMX exporter gives Apache Kafka's
MBeans under the rules most dashboards are built on; docs/METRICS.md lists all of Kafka's. ADR 30.
"""
