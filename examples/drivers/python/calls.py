"""What all calls have in common: they have a time, they may fail, and each leaves a line in the log."""

import functools
import threading
import time

from machine.driver.v1 import driver_pb2 as contract

# In seconds, of a caller that does not say how long it waits.
DEFAULT_TIMEOUT = 600


class Failure(Exception):
    """Becomes the field `failure` of an answer. A gRPC status would say that nobody knows what happened."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.message = contract.Failure(code=code, message=message, **more)


class Deadline:
    """How long a call may take. Ends a little before its caller stops waiting, so that an answer with the reason still arrives."""

    def __init__(self, call, context):
        timeout = call.timeout.ToTimedelta().total_seconds() if call.HasField("timeout") else DEFAULT_TIMEOUT
        remaining = context.time_remaining()
        self._ends = time.monotonic() + 0.95 * (timeout if remaining is None else min(timeout, remaining))
        self._given_up = threading.Event()
        # Also called when the call has ended as it should; nobody asks then.
        if not context.add_callback(self._given_up.set):
            self._given_up.set()

    def left(self):
        """Seconds that are left, as the timeout of a request to the provider. Raises when there are none."""
        left = self._ends - time.monotonic()
        if left <= 0 or self._given_up.is_set():
            raise Failure(contract.CODE_ABORTED, "given up in time; what was begun is found by the next call")
        return left

    def wait(self, seconds):
        """Waits, but no longer than the call may take, and not for a caller that has given up."""
        self._given_up.wait(min(seconds, self.left()))
        self.left()


def answers(response):
    """Decorates a method of the contract, which returns a `response` or raises."""

    def decorate(method):
        @functools.wraps(method)
        def handle(self, request, context):
            started = time.monotonic()
            try:
                answer = method(self, request, Deadline(request.call, context))
            except Failure as failure:
                answer = response(failure=failure.message)
            except Exception:
                self.log.exception("a fault of this driver")
                failure = contract.Failure(code=contract.CODE_INTERNAL, message="a fault of the driver; its log says more")
                answer = response(failure=failure)
            code = contract.Code.Name(answer.failure.code)
            ms = round(1000 * (time.monotonic() - started))
            self.log.info("answered", extra={"fields": {"method": method.__name__, "code": code, "ms": ms}})
            return answer

        return handle

    return decorate
