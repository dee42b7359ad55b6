/** The volume of a CSI driver behind a PersistentVolume's spec; undefined for one of another kind. */
export function csiVolumeIDOf(spec: unknown, csiDriverName: string): string | undefined {
  const { driver, volumeHandle } = membersOf(membersOf(spec)['csi']);
  return driver === csiDriverName && typeof volumeHandle === 'string' && volumeHandle !== '' ? volumeHandle : undefined;
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
