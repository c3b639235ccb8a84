"""The error of a device that must be opened anew, in another process."""


class DeviceLost(RuntimeError):
    """The device stopped answering: the process that holds it must be replaced."""
