"""Refuses managers that were replaced and do not know it yet (rule 5 of the contract)."""

import fcntl
import json
import os

from calls import Failure
from machine.driver.v1 import driver_pb2 as contract


class Fencing:
    """Keeps the highest token of each cluster and namespace in a file, which several processes may share, and which outlives them."""

    def __init__(self, folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = folder / "fencing.json"

    def admit(self, call, namespace):
        """Comes first in whatever changes something at the provider."""
        token = call.fencing_token
        if token == 0:
            return  # a manager without leader election: neither refused nor remembered
        with open(f"{self._file}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            # A file that cannot be read is an error, never taken for an empty one.
            tokens = json.loads(self._file.read_text()) if self._file.exists() else {}
            key = f"{call.cluster}/{namespace}"
            highest = tokens.get(key, 0)
            if token < highest:
                words = f"fencing token {token} is older than {highest}: another manager has taken over"
                raise Failure(contract.CODE_FAILED_PRECONDITION, words, fencing_token=highest)
            if token > highest:
                self._save(tokens | {key: token})

    def _save(self, tokens):
        """Replaces the file as a whole: a crash leaves the old one or the new one."""
        aside = f"{self._file}.new"
        with open(aside, "w") as file:
            json.dump(tokens, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, self._file)
