"""The log of one partition: appending, reading, rolling, truncating, producers, leader epochs."""
