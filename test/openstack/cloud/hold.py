"""Holds ports of loopback: hold.py COUNT prints them, and holds them until its input ends.

They are bound and not listened on. So nobody else gets them, a service that shares them (SO_REUSEPORT) may listen whenever it runs,
and while it does not, connections are refused.
"""
import socket
import sys

held = []
for _ in range(int(sys.argv[1])):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(('127.0.0.1', 0))
    held.append(one)
print(*(one.getsockname()[1] for one in held), flush=True)
sys.stdin.read()
