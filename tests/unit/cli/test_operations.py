"""What the command line says of a refused request."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.cli.operations import delete_group
from kwire.client.errors import RequestFailed
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


class _Refusing:
    """A client whose broker refuses to delete a group."""

    def coordinator(self, group: str) -> int:
        return 1

    def call(self, request: m.DeleteGroupsRequest, node_id: int) -> m.DeleteGroupsResponse:
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
    client: Any = _Refusing()
    with pytest.raises(RequestFailed, match="group g: not for you"):
        delete_group(client, "g")
