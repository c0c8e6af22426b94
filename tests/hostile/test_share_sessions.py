"""A share session that names ever more partitions over its requests."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode
from kwire.share.sessions import PARTITIONS_MAX
from kwire.testing.cluster import Broker
from tests.support.share.dialogue import PROPERTIES, World
from tests.support.share.member import RECORD_LIMIT, said

STEP = PARTITIONS_MAX // 2 - 1


def test_a_session_of_too_many_partitions_ends_and_gives_back_what_it_has() -> None:
    with Broker(options=PROPERTIES) as broker:
        world = World(broker.bootstrap, "many")
        greedy, key = world.joined(), world.key
        codes = []
        for turn in range(3):
            names = [((turn * STEP + i + 1).to_bytes(16, "big"), 0) for i in range(STEP)]
            codes.append(greedy.fetch(names).error_code)
        assert codes == [0, 0, ErrorCode.SHARE_SESSION_LIMIT_REACHED]
        assert greedy.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        other = world.member()
        other.join(1)
        got = said(other.acquire([key], records_max=3, mode=RECORD_LIMIT))
        assert got[2][0][3] == [[0, 2, 2]]
        world.close()
