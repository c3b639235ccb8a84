"""Access to a fleet: for the loopback alone, holders of a certificate, or, spelled out, everybody."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
from pathlib import Path
from typing import Any

from ..backends.missing import MissingRequirement
from .protocol import FleetError, FleetInputError

CA, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"
"""Files of a folder of certificates: whoever holds all three belongs to the fleet."""
_DAYS = 3650


def require_distributed() -> None:
    """MissingRequirement where Dask's distributed is not installed."""
    try:
        import distributed  # noqa: F401 (asks for it)
    except ImportError:
        raise MissingRequirement("a fleet needs Dask's distributed: pip install 'loopwright[fleet]'") from None


def security_of(tls_dir: str | os.PathLike[str] | None) -> Any:
    """Dask's security: by the certificates in a folder, else as Dask's own configuration says.

    FleetError where a file of the folder is missing or is none, MissingRequirement without Dask's distributed: whoever
    speaks with a fleet comes by here first.
    """
    require_distributed()
    from distributed.security import Security

    if tls_dir is None:
        return Security()
    folder = Path(tls_dir)
    missing = [name for name in (CA, CERTIFICATE, KEY) if not (folder / name).is_file()]
    if missing:
        raise FleetError(
            f"{folder} has no {missing[0]}: `loopwright fleet tracker --tls-dir` makes a set, for all to copy"
        )
    ours, key = str(folder / CERTIFICATE), str(folder / KEY)
    named = {
        f"tls_{role}_{part}": path
        for role in ("scheduler", "worker", "client")
        for part, path in (("cert", ours), ("key", key))
    }
    found = Security(tls_ca_file=str(folder / CA), require_encryption=True, **named)
    try:
        for role in ("scheduler", "worker", "client"):
            found.get_connection_args(role)
    except OSError as error:
        raise FleetError(f"the certificates in {folder} cannot be used: {error.strerror or error}") from None
    return found


def is_encrypted(security: Any) -> bool:
    """True where connections are encrypted, and certificates asked for."""
    return bool(security.require_encryption)


def require_closed(host: str, security: Any, insecure: bool) -> None:
    """FleetInputError for an address that strangers reach, unless certificates keep them out, or all are let in."""
    if is_encrypted(security) or insecure or is_loopback(host):
        return
    raise FleetInputError(
        f"{host} can be reached by others, and whoever reaches a fleet runs code on it: give --tls-dir, or --insecure "
        "to let everybody in"
    )


def is_loopback(host: str) -> bool:
    """True where a host is this machine to itself; FleetError where its name is not known."""
    try:
        found = socket.getaddrinfo(host or "127.0.0.1", None)
    except OSError:
        raise FleetError(f"no host '{host}' is known here") from None
    return all(ipaddress.ip_address(each[4][0]).is_loopback for each in found)


def make_certificates(folder: str | os.PathLike[str]) -> Path:
    """Make a set of certificates, unless the folder has one; FleetError without the package `cryptography`."""
    place = Path(folder)
    if (place / CA).is_file():
        return place
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise FleetError("making certificates needs cryptography: pip install cryptography") from None
    now = datetime.datetime.now(datetime.UTC)

    def named(text: str) -> Any:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def certificate(subject: str, key: Any, issuer: str, by: Any, is_ca: bool) -> Any:
        made = (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=_DAYS))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return made.sign(by, hashes.SHA256())

    authority, member = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = "loopwright fleet"
    pem = serialization.Encoding.PEM
    key_text = member.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(place / KEY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_text)
        (place / CERTIFICATE).write_bytes(
            certificate("loopwright member", member, name, authority, False).public_bytes(pem)
        )
        (place / CA).write_bytes(certificate(name, authority, name, authority, True).public_bytes(pem))
    except OSError as error:
        raise FleetError(f"cannot write certificates to {place}: {error.strerror}") from None
    return place
