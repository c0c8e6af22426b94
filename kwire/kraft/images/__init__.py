"""The parts of the metadata image, one file per area: values, what replays into them, snapshots."""
