"""What is said of a refused request about a group."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kwire.client.errors import RequestFailed
from kwire.client.groups import Groups
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


class _Refusing:
    """A cluster whose coordinator refuses to delete a group."""

    async def ask_coordinator(
        self, kind: int, key: str, ask: Callable[[int], Awaitable[None]]
    ) -> None:
        await ask(1)

    async def call(self, request: m.DeleteGroupsRequest, node_id: int) -> m.DeleteGroupsResponse:
        return m.DeleteGroupsResponse(
            results=[
                m.DeleteGroupsResponse.DeletableGroupResult(
                    group_id=request.groups_names[0],
                    error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED),
                    error_message="not for you",
                )
            ]
        )


def test_the_brokers_words_about_a_group_that_is_not_deleted_are_shown() -> None:
    cluster: Any = _Refusing()
    with pytest.raises(RequestFailed, match="group g: not for you"):
        asyncio.run(Groups(cluster).delete("g"))
