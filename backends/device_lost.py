"""The error of a device that must be opened anew, in another process."""

from ..dialects.errors import Error


class DeviceLost(Error, RuntimeError):
    """The device stopped answering: the process that holds it must be replaced."""
