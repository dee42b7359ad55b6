"""Hypervisors that boot nothing: Nova's own fake ones, with the sizes and faults that tests need.

Nova's fakes forget their guests when the process ends, so that a stopped Nova would come back with servers that it cannot find.
These start their guests again, as real ones do with resume_guests_state_on_host_boot.
"""
import time

from nova import exception
from nova.virt import fake


class _Lasting:
    def resume_state_on_host_boot(self, context, instance, network_info, block_device_info=None):
        if instance.uuid not in self.instances:
            fake.FakeDriver.spawn(self, context, instance, None, None, None, None, network_info=network_info)


class Large(_Lasting, fake.FakeDriver):
    """Room for a thousand."""


class Small(_Lasting, fake.MediumFakeDriver):
    """10 vCPUs and 8 GB of memory."""


class Slow(Large):
    """A guest takes 20 s to start."""

    def spawn(self, *args, **kwargs):
        time.sleep(20)
        super().spawn(*args, **kwargs)


class Broken(Large):
    """No guest starts; the fault of the server says why."""

    def spawn(self, context, instance, *args, **kwargs):
        raise exception.BuildAbortException(instance_uuid=instance.uuid, reason='the host is broken')
