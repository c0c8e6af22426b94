"""Opening the files of a partition after a stop or a crash.

    opening.py              open_log: the files, brought in order, become a PartitionLog
    directory_contents.py   which files there are; what a crash left half done is finished
    repair.py               segments whose batches are not all whole
    segment_check.py        finds damaged bytes, changes nothing
    quarantine.py           keeps damaged bytes and strange files aside

Contents -> repair -> replay of the batches (`partition/replay.py`) -> the log.
"""
