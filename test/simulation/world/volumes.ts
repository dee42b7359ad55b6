import type { Pod, VolumeAttachment } from '../../../pkg/apis/wire.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import { integerIn } from './seeded-random.ts';
import type { VirtualTime } from './virtual-clock.ts';

const VOLUMES_PATH = '/api/v1/persistentvolumes';
const ATTACHMENTS_PATH = '/apis/storage.k8s.io/v1/volumeattachments';
const DRIVER = 'sim.csi.example';

export interface VolumesOptions {
  readonly server: SimulatedAPIServer;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly namespace: string;
  readonly count: number;
}

/** Volumes that pods use, each of them one pod at a time, in place of the attach-detach controller and its drivers. */
export class Volumes {
  readonly #options: VolumesOptions;
  /** Names of attachments, and volumes, that something is being done about. */
  readonly #busy = new Set<string>();

  constructor(options: VolumesOptions) {
    this.#options = options;
    const { server, namespace } = options;
    for (const volume of this.names) {
      const claim = claimOf(volume);
      const spec = { csi: { driver: DRIVER, volumeHandle: `handle-${volume}` }, claimRef: { namespace, name: claim } };
      server.handle({ method: 'POST', path: VOLUMES_PATH, body: { metadata: { name: volume }, spec } });
      const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
      server.handle({ method: 'POST', path, body: { metadata: { name: claim }, spec: { volumeName: volume } } });
    }
  }

  get names(): readonly string[] {
    return Array.from({ length: this.#options.count }, (_, i) => `volume-${i + 1}`);
  }

  get attachments(): readonly VolumeAttachment[] {
    const { kinds, objects } = this.#options.server;
    const kind = kinds.find(({ plural }) => plural === 'volumeattachments');
    if (kind === undefined) throw new Error('no VolumeAttachments are served');
    return objects.of(kind).list() as unknown as readonly VolumeAttachment[];
  }

  /** A volume that none of these pods uses. */
  freeOf(pods: readonly Pod[]): string | undefined {
    return this.names.find((volume) => !pods.some((pod) => usesOf(pod) === volume));
  }

  /** Name of the attachment of a pod's volume to the pod's Node. */
  attachmentOf(pod: Pod): string | undefined {
    const volume = usesOf(pod);
    return volume === undefined ? undefined : attachmentName(volume, pod.spec?.nodeName ?? '');
  }

  /** Has volumes follow their pods. */
  follow(pods: readonly Pod[]): void {
    const { random } = this.#options;
    for (const attachment of this.attachments) {
      if (!isUsed(attachment, pods)) this.#soon(attachment.metadata.name, integerIn(random, 500, 20_000), 'detach');
    }
    for (const volume of this.names) {
      const pod = pods.find((one) => usesOf(one) === volume && one.metadata.deletionTimestamp === undefined);
      if (pod !== undefined && !this.#isAttached(volume)) this.#soon(volume, integerIn(random, 500, 5_000), 'attach');
    }
  }

  #soon(name: string, ms: number, what: 'attach' | 'detach'): void {
    if (this.#busy.has(name)) return;
    this.#busy.add(name);
    this.#options.time.schedule(ms, () => {
      this.#busy.delete(name);
      const pods = this.#pods();
      if (what === 'attach') this.#attach(name, pods);
      else this.#detach(name, pods);
    });
  }

  #attach(volume: string, pods: readonly Pod[]): void {
    const pod = pods.find((one) => usesOf(one) === volume && one.metadata.deletionTimestamp === undefined);
    const nodeName = pod?.spec?.nodeName;
    if (nodeName === undefined || this.#isAttached(volume)) return;
    const { server } = this.#options;
    const name = attachmentName(volume, nodeName);
    const spec = { attacher: DRIVER, nodeName, source: { persistentVolumeName: volume } };
    server.handle({ method: 'POST', path: ATTACHMENTS_PATH, body: { metadata: { name }, spec } });
    server.handle({
      method: 'PATCH',
      path: `${ATTACHMENTS_PATH}/${name}/status`,
      body: { status: { attached: true } },
      contentType: 'application/merge-patch+json',
    });
  }

  #detach(name: string, pods: readonly Pod[]): void {
    const attachment = this.attachments.find(({ metadata }) => metadata.name === name);
    if (attachment === undefined || isUsed(attachment, pods)) return;
    this.#options.server.handle({ method: 'DELETE', path: `${ATTACHMENTS_PATH}/${name}` });
  }

  #isAttached(volume: string): boolean {
    return this.attachments.some(({ spec }) => spec.source.persistentVolumeName === volume);
  }

  #pods(): readonly Pod[] {
    const { kinds, objects } = this.#options.server;
    const kind = kinds.find(({ plural }) => plural === 'pods');
    if (kind === undefined) throw new Error('no pods are served');
    return objects.of(kind).list();
  }
}

/** What a pod with that volume has in its spec. */
export function volumesOf(volume: string | undefined): object {
  if (volume === undefined) return {};
  return { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claimOf(volume) } }] };
}

function attachmentName(volume: string, nodeName: string): string {
  return `${volume}-at-${nodeName}`;
}

function claimOf(volume: string): string {
  return `claim-of-${volume}`;
}

/** Name of the volume that a pod uses. */
function usesOf({ spec }: Pod): string | undefined {
  const claim = spec?.volumes?.[0]?.persistentVolumeClaim?.claimName;
  return claim?.slice(claimOf('').length);
}

/** Also by a pod that has not ended yet. */
function isUsed({ spec }: VolumeAttachment, pods: readonly Pod[]): boolean {
  return pods.some((pod) => pod.spec?.nodeName === spec.nodeName && usesOf(pod) === spec.source.persistentVolumeName);
}
