"""Looking at the files of a data directory without a broker; read only.

`verification.py` says what is wrong with them, with `epoch_and_abort_checks.py` for what small
files say of the batches; `dumping.py` prints them; `batch_scan.py` walks through the batches of a
file.
"""
