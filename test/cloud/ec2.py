"""moto's server, with one thing as EC2 has it: an instance that is terminated can be terminated again. moto fails, since the network
interfaces that went with the instance do not exist any more."""

import copy
import sys

from moto.ec2.models.instances import Instance
from moto.server import main

once = Instance.terminate


def terminate(self):
    return copy.copy(self._state) if self._state.name == "terminated" else once(self)


Instance.terminate = terminate
main(sys.argv[1:])
