"""KRaft: the metadata log, its image, the controller and the raft state machine below them."""
