"""The provider: a folder, and each VM a file in it."""

import dataclasses
import errno
import hashlib
import json
import os
import uuid

from calls import Failure
from machine.driver.v1 import driver_pb2 as contract

# The one account of this cloud.
ACCEPTED = "example-token"


@dataclasses.dataclass(frozen=True)
class VM:
    """What the provider knows of a virtual machine. All but ID and size are tags."""

    providerID: str
    cluster: str
    namespace: str
    className: str
    machineName: str
    machineUID: str = ""  # empty on a VM that another tool made
    size: str = ""


class NameTaken(Exception):
    """A VM of that name exists."""


class Cloud:
    """The client of a real provider takes its place, with the same three requests. They take the deadline, and end with it: a call that
    hangs holds its machine."""

    def __init__(self, folder, latency=0):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._latency = latency

    def create(self, deadline, token, vm):
        """Makes a VM with its tags in one step: it is never there without them. A name is given to one VM only; that is what makes a
        creation idempotent, also between several drivers. A real provider has client tokens or unique names for it."""
        self._request(deadline, token)
        aside = self._folder / f"{uuid.uuid4()}.new"
        try:
            with open(aside, "w") as file:
                json.dump(dataclasses.asdict(vm), file)
                file.flush()
                os.fsync(file.fileno())
            os.link(aside, self._file_of(vm.providerID))
        except FileExistsError:
            raise NameTaken from None
        except OSError as error:
            raise failure_of(error) from error
        finally:
            aside.unlink(missing_ok=True)

    def delete(self, deadline, token, vm):
        """Removes a VM with all that belongs to it; it may be gone already."""
        self._request(deadline, token)
        try:
            self._file_of(vm.providerID).unlink(missing_ok=True)
        except OSError as error:
            raise failure_of(error) from error

    def list(self, deadline, token):
        """All VMs of the account. A real provider filters by tags."""
        self._request(deadline, token)
        vms = []
        for file in self._folder.glob("*.json"):
            try:
                vms.append(VM(**json.loads(file.read_text())))
            except FileNotFoundError:
                pass  # deleted meanwhile
        return vms

    def _request(self, deadline, token):
        """What each request to a provider has: it takes time, and credentials. Give the client of a real one `timeout=deadline.left()`."""
        deadline.wait(self._latency)
        if token != ACCEPTED:
            raise Failure(contract.CODE_UNAUTHENTICATED, "the token is not accepted")

    def _file_of(self, provider_id):
        """Hashes the ID, so that nothing that came over the wire becomes part of a path."""
        return self._folder / f"{hashlib.sha256(provider_id.encode()).hexdigest()}.json"


def failure_of(error):
    """Which kind of failure an error of the provider is; the manager chooses by it how soon it asks again."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Failure(contract.CODE_RESOURCE_EXHAUSTED if is_full else contract.CODE_UNAVAILABLE, str(error))
