"""This user's secret key: it says of a file that this user's own programs wrote it, and nothing else did.

The key is 32 random bytes in the user's data folder, made when it is first needed, for this user's eyes only. A file's
tag is a MAC (HMAC-SHA256, RFC 2104) with it: who has not the key cannot make one. It says who wrote a file, and not
that what the file holds is right. Without the key file a new key is made, and what the old one tagged is a stranger's;
a copy of it on another machine makes both one user.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from .folders import data_folder
from .whole_file import write_whole

_NAME = "key"
_KEY_BYTES = 32
_MOST_BYTES = 1000
"""Of the key file that are read: more than any that is right has."""


class NoKey(Exception):
    """This user has no key that can be used; the text is a sentence that says why."""


class Origin(Enum):
    """The author of a file, as its tag says."""

    OWN = "this user"
    CHANGED = "this user, and it was changed since"
    STRANGER = "somebody else"


def tag(purpose: str, content: bytes) -> str:
    """Return this user's tag for bytes, one line; NoKey where there is no key and none can be made.

    Tags for one purpose are worth nothing for another.
    """
    key = _key(make=True)
    return f"{_identity(key)} {_mac(key, purpose, content)}"


def origin_of(purpose: str, content: bytes, found: str) -> Origin:
    """Return who a tag says wrote bytes; NoKey where this user has none to compare with."""
    key = _key(make=False)
    identity, _, mac = found.strip().partition(" ")
    if not hmac.compare_digest(identity.encode(), _identity(key).encode()):
        return Origin.STRANGER
    same = hmac.compare_digest(mac.encode(), _mac(key, purpose, content).encode())
    return Origin.OWN if same else Origin.CHANGED


def _mac(key: bytes, purpose: str, content: bytes) -> str:
    code = hmac.new(key, f"{purpose}\0".encode(), "sha256")
    code.update(content)
    return code.hexdigest()


def _identity(key: bytes) -> str:
    """A fingerprint that tells keys apart and reveals nothing of the key."""
    return _mac(key, "identity", b"")[:16]


def _key(make: bool) -> bytes:
    folder = data_folder()
    if folder is None:
        raise NoKey("this user has no home folder (XDG_DATA_HOME names another place)")
    path = folder / _NAME
    try:
        if make and not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(folder):
                if not path.exists():
                    write_whole(path, f"{secrets.token_hex(_KEY_BYTES)}\n", private=True)
        return _read(path)
    except FileNotFoundError:
        raise NoKey(f"this user has no key in {path} yet") from None
    except OSError as error:
        raise NoKey(f"cannot {'make' if make else 'read'} the key {path}: {error.strerror}") from None


def _read(path: Path) -> bytes:
    """Return the key in a file, which must be this user's alone."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid():
            raise NoKey(f"the key {path} belongs to another user")
        if stat.S_IMODE(status.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            raise NoKey(f"other users may use the key {path} (chmod 600 closes it, rm makes a new one)")
        text = file.read(_MOST_BYTES)
    with suppress(ValueError):
        key = bytes.fromhex(text.decode("ascii").strip())
        if len(key) == _KEY_BYTES:
            return key
    raise NoKey(f"{path} is no key (rm makes a new one)")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, where its file system has any."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
