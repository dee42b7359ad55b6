/** The CSI driver of Cinder. */
const CSI_DRIVER = 'cinder.csi.openstack.org';

/** The volume of Cinder behind a PersistentVolume's spec; undefined for one of another kind. */
export function cinderVolumeIDOf(spec: unknown): string | undefined {
  const { cinder, csi } = objectOf(spec) as { cinder?: unknown; csi?: unknown };
  const { volumeID } = objectOf(cinder) as { volumeID?: unknown };
  if (typeof volumeID === 'string') return volumeID;
  const { driver, volumeHandle } = objectOf(csi) as { driver?: unknown; volumeHandle?: unknown };
  return driver === CSI_DRIVER && typeof volumeHandle === 'string' ? volumeHandle : undefined;
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
