"""Generated from `schema/api/streams_group_topology_description_update.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class StreamsGroupTopologyDescriptionUpdateRequest(
    Request["StreamsGroupTopologyDescriptionUpdateResponse"]
):
    """StreamsGroupTopologyDescriptionUpdateRequest, version 0: a request."""

    __slots__ = ("group_id", "member_id", "topology_description", "topology_epoch")
    FIELDS = ("group_id", "member_id", "topology_epoch", "topology_description")
    API_KEY = 93
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopologyDescription(Struct):
        __slots__ = ("global_stores", "subtopologies")
        FIELDS = ("subtopologies", "global_stores")

        def __init__(
            self,
            *,
            subtopologies: list[
                StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology
            ] = UNSET,
            global_stores: list[
                StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopologies = [] if subtopologies is UNSET else subtopologies
            self.global_stores = [] if global_stores is UNSET else global_stores
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopologyDescriptionSubtopology(Struct):
        __slots__ = ("nodes", "subtopology_id")
        FIELDS = ("subtopology_id", "nodes")

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            nodes: list[
                StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.nodes = [] if nodes is UNSET else nodes
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopologyDescriptionGlobalStore(Struct):
        __slots__ = ("processor", "source")
        FIELDS = ("source", "processor")

        def __init__(
            self,
            *,
            source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = UNSET,
            processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.source = (
                StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode()
                if source is UNSET
                else source
            )
            self.processor = (
                StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode()
                if processor is UNSET
                else processor
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopologyDescriptionNode(Struct):
        __slots__ = ("name", "node_type", "sink_topic", "source_topics", "stores", "successors")
        FIELDS = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")

        def __init__(
            self,
            *,
            name: str = "",
            node_type: int = 0,
            source_topics: list[str] = UNSET,
            sink_topic: str | None = None,
            stores: list[str] = UNSET,
            successors: list[str] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.node_type = node_type
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.sink_topic = sink_topic
            self.stores = [] if stores is UNSET else stores
            self.successors = [] if successors is UNSET else successors
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.topology_epoch = topology_epoch
        self.topology_description = (
            StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription()
            if topology_description is UNSET
            else topology_description
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    """StreamsGroupTopologyDescriptionUpdateResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 93
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
