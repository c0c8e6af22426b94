"""The log directories of a node and all logs in them.

manager.py             LogManager: the logs by partition; creates, deletes, checkpoints
directory.py           one log directory: lock, id, checkpoints
loading.py, closing.py the start and the clean stop; placement.py: where a new log goes
moving.py              a log on its way to another directory
removal.py             directories of deleted partitions
shortages.py           logs that wait for space or descriptors; refusals.py: for people
idle_files.py          files closed for others, where there are more than descriptors
periodic_work.py       timers, and work over all logs in slices
checkpoint_format.py, checkpoint_contents.py, checkpoint_writer.py
                       files that hold an offset for each partition
identity_files.py      meta.properties, partition.metadata, the note of a clean stop
settings.py            the broker configs
"""
