"""A batch whose base offset is damaged may begin at the largest offset that there is: its checksum
does not cover that. Kernels that are not compiled ended there with a ValueError, and with them the
load of a coordinator's partition; compiled ones counted on below zero.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kwire.protocol.records import Record, build_batch
from tests.support.kernels import record_packages

LARGEST = 2**63 - 1
HEADER_BYTES = 61

packages = pytest.mark.parametrize("records", record_packages())


@pytest.fixture
def data() -> bytes:
    batch = bytes(build_batch([Record(i, 5, b"k%d" % i, b"v") for i in range(3)]))
    return struct.pack(">q", LARGEST - 1) + batch[8:]


@packages
def test_its_records_are_no_rows(records: Any, data: bytes) -> None:
    kernel = records.row_kernel
    table = memoryview(bytearray(8 * kernel.ROW_FIELDS * 4)).cast("q")
    scan = kernel.RowScan()
    assert scan.step(data, len(data), table) == kernel.OTHER
    assert (scan.rows, scan.position) == (0, 0)


@packages
def test_its_records_are_walked(records: Any, data: bytes) -> None:
    kernel = records.kernel

    def walk() -> Any:
        return kernel.RecordWalk(data, HEADER_BYTES, len(data), 3, LARGEST - 1, 0)

    table = memoryview(bytearray(96 * 3)).cast("q")
    assert walk().places(table, 3) == kernel.DONE
    offsets = [LARGEST - 1, LARGEST, -(2**63)]
    assert table.tolist()[::12] == offsets
    assert [row[0] for row in walk().read(3)[1]] == offsets
    assert walk().find_timestamp(4, 6, LARGEST) == kernel.DONE
