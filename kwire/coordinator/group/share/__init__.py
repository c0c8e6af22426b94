"""Share groups (KIP-932): members share the records of their topics, partitions are assigned to
several of them.

What a member may read is decided here; who has acknowledged which record is with the leaders of
the partitions and the share coordinator. A partition is assigned once its state is initialized.
"""
