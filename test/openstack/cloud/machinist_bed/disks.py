"""Disks without a disk: Cinder keeps its books, nothing holds data. Volumes of some types have the faults that tests need."""
import time

from cinder import exception
from cinder.volume import driver


class Disks(driver.VolumeDriver):
    """Makes a volume of an image at once, as backends do that clone, and lets any host connect to it. By the name of its type a volume
    is `slow` to make and to delete (4 s), or cannot be made (`broken`), or be deleted the first time (`stuck`)."""
    VERSION = '1'
    SLOW_S = 4

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.tried = set()

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        self._stats = {'volume_backend_name': 'disks', 'vendor_name': 'bed', 'driver_version': self.VERSION,
                       'storage_protocol': 'none', 'total_capacity_gb': 10000, 'free_capacity_gb': 10000}

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        if volume.volume_type.name == 'slow':
            time.sleep(self.SLOW_S)
        if volume.volume_type.name == 'broken':
            raise exception.VolumeBackendAPIException(data='the backend is broken')
        return {}, True

    def delete_volume(self, volume):
        if volume.volume_type.name == 'slow':
            time.sleep(self.SLOW_S)
        if volume.volume_type.name == 'stuck' and volume.id not in self.tried:
            self.tried.add(volume.id)
            raise exception.VolumeBackendAPIException(data='the backend does not let go')

    def create_volume(self, volume):
        pass

    def create_snapshot(self, snapshot):
        pass

    def delete_snapshot(self, snapshot):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {'driver_volume_type': 'none', 'data': {}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass
