import { membersOf } from '../../apis/members.ts';

/** The CSI driver of Cinder. */
const CSI_DRIVER = 'cinder.csi.openstack.org';

/** The volume of Cinder behind a PersistentVolume's spec; undefined for one of another kind. */
export function cinderVolumeIDOf(spec: unknown): string | undefined {
  const { cinder, csi } = membersOf(spec);
  const { volumeID } = membersOf(cinder);
  if (typeof volumeID === 'string') return volumeID;
  const { driver, volumeHandle } = membersOf(csi);
  return driver === CSI_DRIVER && typeof volumeHandle === 'string' ? volumeHandle : undefined;
}
