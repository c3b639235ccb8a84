"""The error of a target that this machine cannot compile for or run on."""

from ..dialects.errors import Error


class MissingRequirement(Error, RuntimeError):
    """Something that a target needs is not here; the text is a sentence that says what to install."""
