import { ownerText } from './intent.ts';
import type { Port } from './network.ts';
import { metadataOf } from './ownership.ts';
import type { Ports } from './ports.ts';
import type { Users } from './users.ts';
import { type DesiredVolume, diskLabel, diskText, type Volume, volumeErrorOf } from './volume.ts';
import type { CreationDeps } from './creation.ts';

/** The volumes of a machine, by ID. */
export interface MachineDisks {
  /** Undefined: it has the disk of its flavor. */
  readonly root: string | undefined;
  /** In the order of its class. */
  readonly data: readonly string[];
}

interface Deps extends Pick<CreationDeps, 'cloud' | 'machine' | 'spec' | 'className' | 'clock'> {
  readonly ports: Ports;
  readonly users: Users;
}

/**
 * The disks that a machine has in Cinder, which are made before its server. All carry its name, and the description says whose each is, and
 * which: what was made before is taken, and nothing is asked for twice while an answer is missing. Waits until all can be used. Throws
 * Uninitialized when that takes longer.
 */
export async function ensureDisks(
  deps: Deps,
  ports: readonly [Port, ...Port[]],
  imageID: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<MachineDisks> {
  const { cloud, spec, machine, users, clock } = deps;
  const desired = await desiredDisks(deps, imageID, signal);
  if (desired.length === 0) return { root: undefined, data: [] };
  const endMs = clock.monotonicMs() + waitMs;
  const owner = { name: machine.name, owner: ownerText(machine) };
  const present = await cloud.volumes.free(owner, users, signal);
  // All are asked for before any is waited for.
  const asked: [DesiredVolume, Volume][] = [];
  for (const one of desired) {
    const found = present.find(({ description }) => description === one.description);
    asked.push([one, found ?? (await requestDisk(deps, one, ports, signal))]);
  }
  const ids: string[] = [];
  for (const [one, volume] of asked) {
    const leftMs = Math.max(0, endMs - clock.monotonicMs());
    ids.push(await cloud.volumes.untilUsable(volume, one, leftMs, signal));
  }
  return spec.rootDiskSize === undefined ? { root: undefined, data: ids } : { root: ids[0], data: ids.slice(1) };
}

/** Root disk first. */
async function desiredDisks(deps: Deps, imageID: string, signal: AbortSignal): Promise<readonly DesiredVolume[]> {
  const { machine, spec, className } = deps;
  const { rootDiskSize, rootDiskType, availabilityZone, dataVolumes } = spec;
  const owner = ownerText(machine);
  const common = { name: machine.name, owner, metadata: metadataOf(machine, className, spec.tags) };
  const desired: DesiredVolume[] = [];
  if (rootDiskSize !== undefined)
    desired.push({
      ...common,
      description: diskText(owner),
      size: rootDiskSize,
      type: rootDiskType,
      imageID,
      members: { size: 'rootDiskSize', type: 'rootDiskType' },
      // Without a type it need not have that of the class, as with disks that Nova makes.
      availabilityZone: rootDiskType === undefined ? await zoneOf(deps, signal) : availabilityZone,
    });
  for (const [i, { name, size, type }] of dataVolumes.entries()) {
    const at = `dataVolumes[${i}]`;
    desired.push({
      ...common,
      description: diskText(owner, name),
      size,
      type,
      imageID: undefined,
      members: { size: `${at}.size`, type: `${at}.type` },
      availabilityZone: await zoneOf(deps, signal),
    });
  }
  return desired;
}

/** The zone of the class, if Cinder has it. */
async function zoneOf({ cloud, spec }: Pick<Deps, 'cloud' | 'spec'>, signal: AbortSignal): Promise<string | undefined> {
  const { availabilityZone } = spec;
  if (availabilityZone === undefined) return undefined;
  const zones = await cloud.names.get('zones of volumes', signal, (shared) => cloud.volumes.zones(shared));
  return zones.includes(availabilityZone) ? availabilityZone : undefined;
}

/** The request for a disk. While it is not answered the mark holds whoever makes or deletes the machine: the disk may still appear. */
async function requestDisk(
  deps: Deps,
  wanted: DesiredVolume,
  ports: readonly [Port, ...Port[]],
  signal: AbortSignal,
): Promise<Volume> {
  const { cloud, ports: marks } = deps;
  const mark = await marks.mark(ports, signal);
  const what = `creating ${diskLabel(wanted)}`;
  const answer = await marks.send(what, mark, () => cloud.volumes.create(wanted, signal), signal);
  // Other 5xx come from what stands in front of Cinder, which may work on.
  if (answer.status <= 500) await marks.unmark(mark, signal);
  if (answer.status >= 300) throw volumeErrorOf(answer, wanted);
  return (answer.body as { volume: Volume }).volume;
}
