"""Where a driver listens: whoever calls it commands its provider."""

import os
import pathlib
import socket
import urllib.parse

import grpc


def listen(server, address):
    """Opens a socket that only this user may use, or TCP with mutual TLS."""
    where = urllib.parse.urlsplit(address)
    if address.startswith("unix:///"):
        refuse_second(where.path)
        before = os.umask(0o177)
        try:
            # gRPC removes the socket of a driver that was killed.
            server.add_insecure_port(address)
        finally:
            os.umask(before)
        return
    if where.scheme != "dns":
        raise ValueError("unix:///path or dns:///host:port?ca=FILE&cert=FILE&key=FILE is expected")
    files = dict(urllib.parse.parse_qsl(where.query))
    missing = [name for name in ("ca", "cert", "key") if name not in files]
    if missing:
        raise ValueError(f"{missing[0]} is missing: requests carry credentials, so TCP needs ?ca=FILE&cert=FILE&key=FILE")

    def load():
        ca, cert, key = (pathlib.Path(files[name]).read_bytes() for name in ("ca", "cert", "key"))
        return grpc.ssl_server_certificate_configuration([(key, cert)], root_certificates=ca)

    # Read again for each connection, so that certificates are renewed without a restart.
    credentials = grpc.dynamic_ssl_server_credentials(load(), load, require_client_authentication=True)
    server.add_secure_port(where.path.lstrip("/"), credentials)


def refuse_second(path):
    """Raises if another driver listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(path) == 0:
            raise OSError("another driver listens there")
