"""The controller: requests and time in, metadata records and answers out; see controller.py."""

from __future__ import annotations

from kwire.kraft.controller.context import ControllerConfig, ControllerContext
from kwire.kraft.controller.controller import Controller
from kwire.kraft.controller.routes import HANDLED_REQUESTS

__all__ = ["HANDLED_REQUESTS", "Controller", "ControllerConfig", "ControllerContext"]
