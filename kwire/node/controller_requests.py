"""Requests that this node's own controller, or its part of the quorum, executes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.requests.quotas import hosts_of
from kwire.membership.requester import Requester
from kwire.pending import Pending, after
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.structs import Message, Request
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from kwire.quota.mutations import MutationQuota

QuotaOf: TypeAlias = "Callable[[str, str | None, int, int], MutationQuota | None]"
"""(principal, client id, API, version) -> what the client pays for partitions from."""

LookUp: TypeAlias = Callable[[Collection[str]], Pending[dict[str, str]]]
"""Names of hosts -> the addresses of those that have one."""

Response = TypeVar("Response", bound=Message)


class LocalQuorum(Protocol):
    """This node's replica of the metadata quorum."""

    def handle(
        self, request: Request[Response], context: ControllerContext
    ) -> Pending[Response]: ...


AUDITED = (
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
)
"""What may have changed something that an audit log names."""


class Audit(Protocol):
    """Hears of what clients have changed (`kwire/node/audit.py`)."""

    def executed(self, asker: Requester, request: Message, response: Message) -> None: ...


class ControllerRequests:
    """Tells the controller in whose name it is asked, and lets whoever asks pay for partitions."""

    def __init__(
        self,
        quorum: LocalQuorum,
        controller_listener_names: Callable[[], Collection[str]],
        mutation_quota: QuotaOf,
        now_ms: Callable[[], int],
        audit: Audit | None,
        look_up: LookUp,
    ) -> None:
        self._look_up = look_up
        self._quorum = quorum
        self._controller_listener_names = controller_listener_names
        self._mutation_quota = mutation_quota
        self._now_ms = now_ms
        self._audit = audit

    def execute(
        self, request: Request[Response], requester: Requester | None, version: int | None
    ) -> Pending[Response]:
        """At the version at which it came, unless another is given; without a requester the
        request is this node's own."""
        if version is None:
            version = request.MAX_VERSION if requester is None else requester.api_version
        context = ControllerContext(api_version=version)
        if requester is None:
            context.same_process = True
        else:
            context.principal = requester.principal
            context.client_id = requester.client_id
            context.authorize = requester.authorize
            context.authorize_quietly = requester.may
            context.listener_name = requester.listener_name
            context.token_authenticated = requester.token_authenticated
            context.security_protocol = requester.security_protocol
            # Of a client that came to a broker, the broker has seen to it who may ask for tokens.
            context.forwarded = (
                not requester.is_connected
                or requester.listener_name not in self._controller_listener_names()
            )
            quota = self._mutation_quota(
                requester.principal, requester.client_id, request.API_KEY, version
            )
            if quota is not None:
                answer = self._paid(request, context, quota)
            else:
                answer = self._with_hosts(request, context)
            if self._audit is not None and request.API_KEY in AUDITED:
                answer.add_done_callback(partial(self._executed, self._audit, requester, request))
            return answer
        return self._quorum.handle(request, context)

    def _executed(
        self,
        audit: Audit,
        requester: Requester,
        request: Request[Response],
        done: Pending[Response],
    ) -> None:
        if done.error() is None:
            audit.executed(requester, request, done.result())

    def _with_hosts(
        self, request: Request[Response], context: ControllerContext
    ) -> Pending[Response]:
        """Quotas of hosts by name: those are looked up first, for who may set quotas."""
        right = Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME
        names = hosts_of(request) if isinstance(request, m.AlterClientQuotasRequest) else set()
        if not names or not context.may(*right):
            return self._quorum.handle(request, context)
        outcome: Pending[Response] = Pending()

        def answered(done: Pending[Response]) -> None:
            error = done.error()
            if error is not None:
                outcome.fail(error)
            else:
                outcome.complete(done.result())

        def found(done: Pending[dict[str, str]]) -> None:
            context.known_hosts = done.result()
            self._quorum.handle(request, context).add_done_callback(answered)

        self._look_up(names).add_done_callback(found)
        return outcome

    def _paid(
        self, request: Request[Response], context: ControllerContext, quota: MutationQuota
    ) -> Pending[Response]:
        """The answer says how long the client has to wait by then; its connection keeps to that."""
        context.apply_partition_quota = lambda partitions: quota.pay(partitions, self._now_ms())

        def told(done: Pending[Response]) -> Response:
            response = done.result()
            wait_ms = quota.throttle_ms(self._now_ms())
            if wait_ms:
                response.throttle_time_ms = wait_ms  # type: ignore[attr-defined]
            return response

        return after(self._quorum.handle(request, context), told)
