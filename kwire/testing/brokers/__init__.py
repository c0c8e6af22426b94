"""How brokers of a user's tests run: in threads of this process or as processes; both are `Runner`.

runner.py           what a broker can be made to do; its settings
thread_runner.py    in a thread: started in 30 ms, killed and paused like a process
process_runner.py   `kwire serve`, with a log of its own
thread_files.py     the files of a broker in a thread, so that they can be abandoned
thread_logs.py      what such a broker logs
relays.py           connections between brokers, so that they can be cut
"""
