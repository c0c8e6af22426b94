"""Opening logs after a stop or a crash: checks, repairs, what is rebuilt from batches."""
