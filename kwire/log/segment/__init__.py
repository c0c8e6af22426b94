"""One segment of a log, and the list of them.

`segment.py` has the batches of one segment, `offset_index.py`, `time_index.py` and
`transaction_index.py` its index files, `segment_list.py` the segments of a log in order.
`reading.py` finds whole batches in them, `walking.py` goes through them by their headers;
`log_file.py` opens and closes their files, `open_file_limit.py` bounds how many are open.
"""
