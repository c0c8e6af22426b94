"""Traffic seen: requests and replies as lines of JSON, told in words, summed up, sent again.

ADR 42 has the decisions.

events.py      what a trace consists of; files.py reads and writes it
rendering.py   a message as JSON and back; secrets.py: what is never written;
               record_summaries.py: record batches without their contents
dialogues.py   the requests of one connection and their replies; recorder.py: of all, filtered
explaining.py  what has happened, in words: a state machine over events; error_words.py
statistics.py  counts, errors, latencies and bytes by client and API
tap.py         what a broker shows of its own connections
proxy/         between clients and any cluster, one port a broker
replay/        a trace sent to another cluster, and what is answered differently
"""
