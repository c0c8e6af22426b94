"""The log cleaner.

    cleaner.py        chooses the dirtiest log, runs its cleaning, notes how far it is clean
    plan.py           what of a log may be compacted, in which groups
    job.py            reads old segments and writes new ones, off the loop
    transactions.py   which markers and aborted records go
    replacement.py    puts a new segment in the place of old ones, in steps that a crash survives
    settings.py       the broker configs

A plan goes in from the loop, segments come out to be exchanged on the loop.
"""
