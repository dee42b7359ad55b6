"""A driver of Machinist: it makes virtual machines at one provider, as a manager asks for them over gRPC. Its provider is a folder in
which each VM is a file (cloud.py): replace that, and keep the rest.

    cloud.py     the provider
    driver.py    the methods of the contract, proto/machine/driver/v1/driver.proto
    calls.py     the time of a call, and what a failure becomes
    fencing.py   managers that were replaced are refused
    serve.py     where it listens
    machine/     generated from the contract
"""

import argparse
import json
import logging
import pathlib
import signal
import sys
import threading
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

import serve
from cloud import Cloud
from driver import Driver
from fencing import Fencing
from machine.driver.v1 import driver_pb2_grpc

# How long running calls may go on after SIGTERM, in seconds.
GRACE = 5
# Calls at the same time. Each holds a thread as long as it takes, and a probe of the health service needs one, too: a manager makes up to
# 200 calls of a kind for each account, and when a provider hangs the probe must not wait for them. Threads are started when needed.
THREADS = 2000
# The largest request in bytes: a class with its provider_spec, a Machine and the contents of Secrets are more than gRPC takes by itself.
MAX_REQUEST = 16 << 20


def main():
    parser = argparse.ArgumentParser(description="A driver whose VMs are files.")
    parser.add_argument("--address", required=True, help="unix:///path, or dns:///host:port?ca=FILE&cert=FILE&key=FILE")
    parser.add_argument("--state-directory", required=True, type=pathlib.Path, help="directory in which fencing tokens are kept across restarts")
    parser.add_argument("--cloud", required=True, type=pathlib.Path, help="the folder that is the provider")
    parser.add_argument("--cloud-latency", default=0, type=float, help="how many seconds each request to the provider takes")
    options = parser.parse_args()
    log = logger()

    # Before anything else: a signal that comes early is not lost.
    terminated = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: terminated.set())

    # On TCP managers ping every 10 s. Without this they would be cut off for it.
    pings = [("grpc.http2.min_recv_ping_interval_without_data_ms", 5000), ("grpc.keepalive_permit_without_calls", 1)]
    size = ("grpc.max_receive_message_length", MAX_REQUEST)
    server = grpc.server(futures.ThreadPoolExecutor(THREADS), options=[("grpc.so_reuseport", 0), size, *pings])
    try:
        driver = Driver(Cloud(options.cloud, options.cloud_latency), Fencing(options.state_directory), log)
    except OSError as error:
        sys.exit(str(error))
    driver_pb2_grpc.add_DriverServiceServicer_to_server(driver, server)
    healthy = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    try:
        serve.listen(server, options.address)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"--address {options.address}: {error}")
    server.start()
    healthy.set("", health_pb2.HealthCheckResponse.SERVING)
    log.info("serving", extra={"fields": {"address": options.address}})

    terminated.wait()
    log.info("stopping")
    healthy.enter_graceful_shutdown()
    # What still runs then is cancelled: its caller takes that for no answer, and asks again.
    server.stop(GRACE).wait()


def logger():
    """JSON on standard output. Nothing of secret_data is ever logged."""

    class Lines(logging.Formatter):
        def format(self, record):
            about = {"time": self.formatTime(record), "level": record.levelname.lower(), "msg": record.getMessage()}
            if record.exc_info:
                about["err"] = self.formatException(record.exc_info)
            return json.dumps(about | getattr(record, "fields", {}), separators=(",", ":"))

    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(Lines())
    log = logging.getLogger("folder-driver")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    return log


if __name__ == "__main__":
    main()
