"""moto's server, with two things as EC2 has them. An instance that is terminated can be terminated again: moto fails, since the network
interfaces that went with the instance do not exist any more. And it is forgotten after a while: after an hour there, after seconds here."""

import copy
import sys
import threading

from moto.ec2.models.instances import Instance
from moto.server import main

FORGOTTEN_AFTER_SECONDS = 5

once = Instance.terminate


def forget(instance):
    for reservation in instance.ec2_backend.reservations.values():
        if instance in reservation.instances:
            reservation.instances.remove(instance)


def terminate(self):
    if self._state.name == "terminated":
        return copy.copy(self._state)
    timer = threading.Timer(FORGOTTEN_AFTER_SECONDS, forget, [self])
    timer.daemon = True
    timer.start()
    return once(self)


Instance.terminate = terminate
main(sys.argv[1:])
