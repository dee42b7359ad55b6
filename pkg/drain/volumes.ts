import { keyOf } from '../apis/meta.ts';
import type { Node, PersistentVolume, Pod, VolumeAttachment } from '../apis/wire.ts';
import type { Clock } from '../base/clock/clock.ts';
import { ApiError, isNotFound } from '../kube/client/errors.ts';
import { persistentVolumeClaims, persistentVolumes } from '../kube/client/resource.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Reader } from '../kube/client/client.ts';
import { claimsOf } from './pods.ts';
import type { VolumeIDOf } from './drain.ts';

/** Reads of one object before its volume is no longer waited for, and the time between them. */
const READ_TRIES = 3;
const READ_RETRY_MS = 5_000;

export interface TrackedVolume {
  readonly name: string;
  /** As it stands in `status.volumesAttached[].name` of its Node, among other text; undefined if nobody knows. */
  readonly id: string | undefined;
}

/** Whether the volume hangs on this node: the Node says so, or a VolumeAttachment asks for it. */
export function isAttached(
  volume: TrackedVolume,
  node: Node | undefined,
  attachmentsOfNode: readonly VolumeAttachment[],
): boolean {
  const { name, id } = volume;
  if (attachmentsOfNode.some(({ spec }) => spec.source.persistentVolumeName === name)) return true;
  if (id === undefined || id === '') return false;
  return (node?.status?.volumesAttached ?? []).some((attached) => attached.name.includes(id));
}

export function isAttachedElsewhere(nodeName: string, attachmentsOfVolume: readonly VolumeAttachment[]): boolean {
  return attachmentsOfVolume.some(({ spec, status }) => spec.nodeName !== nodeName && status?.attached === true);
}

/** PersistentVolumes, by claim, that only one of these pods uses: nobody can tell when a shared one has moved. */
export function unsharedVolumes(volumesByPod: ReadonlyMap<string, readonly string[]>): Map<string, readonly string[]> {
  const uses = new Map<string, number>();
  for (const name of [...volumesByPod.values()].flat()) uses.set(name, (uses.get(name) ?? 0) + 1);
  return new Map([...volumesByPod].map(([uid, names]) => [uid, names.filter((name) => uses.get(name) === 1)]));
}

/** Finds the volumes behind pods. What cannot be found out is left out: it is not waited for. */
export class VolumeLookup {
  readonly #parts: { reader: Reader; clock: Clock; log: Logger; volumeIDOf: VolumeIDOf | undefined };

  constructor(parts: { reader: Reader; clock: Clock; log: Logger; volumeIDOf: VolumeIDOf | undefined }) {
    this.#parts = parts;
  }

  /** Names of the unshared PersistentVolumes of each pod, by the pod's UID. Rejects only with the signal's reason. */
  async volumesByPod(pods: readonly Pod[], signal: AbortSignal): Promise<Map<string, readonly string[]>> {
    const names = await Promise.all(
      pods.map(async (pod): Promise<[string, readonly string[]]> => {
        const bound = await Promise.all(claimsOf(pod).map((claim) => this.#volumeOf(pod, claim, signal)));
        return [pod.metadata.uid, bound.filter((name) => name !== undefined)];
      }),
    );
    return unsharedVolumes(new Map(names));
  }

  /** Names of the PersistentVolumes of these pods, each once. Rejects only with the signal's reason. */
  async volumesOf(pods: readonly Pod[], signal: AbortSignal): Promise<readonly string[]> {
    const claims = pods.flatMap((pod) => claimsOf(pod).map((claim) => this.#volumeOf(pod, claim, signal)));
    const names = await Promise.all(claims);
    return [...new Set(names.filter((name) => name !== undefined))];
  }

  /** The volume with its id. Rejects only with the signal's reason. */
  async track(name: string, signal: AbortSignal): Promise<TrackedVolume> {
    const volume = await this.#read(
      () => this.#parts.reader.get(persistentVolumes, { name }, { signal }),
      `persistentvolumes/${name}`,
      signal,
    );
    return { name, id: volume === undefined ? undefined : await this.#idOf(volume, signal) };
  }

  async #volumeOf(pod: Pod, claim: string, signal: AbortSignal): Promise<string | undefined> {
    const ref = { namespace: pod.metadata.namespace ?? '', name: claim };
    const found = await this.#read(
      () => this.#parts.reader.get(persistentVolumeClaims, ref, { signal }),
      `persistentvolumeclaims of ${keyOf(pod)}`,
      signal,
    );
    return found?.spec?.volumeName;
  }

  /** As the driver says; failing that, the handle of a CSI volume, which is part of its name on the Node. */
  async #idOf(volume: PersistentVolume, signal: AbortSignal): Promise<string | undefined> {
    const { volumeIDOf, log } = this.#parts;
    const handle = volume.spec?.csi?.volumeHandle;
    if (volumeIDOf === undefined) return handle;
    try {
      return (await volumeIDOf(volume.spec, signal)) ?? handle;
    } catch (err) {
      signal.throwIfAborted();
      log.warn({ err, volume: volume.metadata.name }, 'could not get a volume ID from the driver');
      return handle;
    }
  }

  async #read<T>(get: () => Promise<T>, what: string, signal: AbortSignal): Promise<T | undefined> {
    for (let tries = 1; ; tries++) {
      try {
        return await get();
      } catch (err) {
        signal.throwIfAborted();
        if (isNotFound(err)) return undefined;
        if (!(err instanceof ApiError)) throw err;
        if (tries < READ_TRIES) {
          await this.#parts.clock.sleep(READ_RETRY_MS, signal);
          continue;
        }
        this.#parts.log.warn({ err, what }, 'stopped waiting for a volume that cannot be read');
        return undefined;
      }
    }
  }
}
