import { randomBytes } from 'node:crypto';

import type { Api } from '../../hack/control-plane/api.ts';
import type { Node, Pod, VolumeAttachment } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { eventually } from '../expect/eventually.ts';

const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const APP = { app: 'web' };
/** Where volumes go that leave a Node. */
const ELSEWHERE = 'elsewhere';
const LOOK_MS = 50;

/** Pods on the Nodes of a pool, their budget and their volumes, as users and other controllers make them. */
export class Workload {
  readonly namespace: string;
  readonly #api: Api;

  private constructor(api: Api, namespace: string) {
    this.#api = api;
    this.namespace = namespace;
  }

  /** Pods need the service account of their namespace, which is there where a controller makes it. */
  static async open(api: Api, namespace: string): Promise<Workload> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    const { status } = await api.request(path, { method: 'POST', body: { metadata: { name: 'default' } } });
    if (status !== 201 && status !== 409) throw new Error(`POST ${path}: ${status}`);
    return new Workload(api, namespace);
  }

  /** A pod that is bound to this Node; `claim` names a PersistentVolumeClaim. Its kubelet starts and ends it. */
  async pod(nodeName: string, claim?: string): Promise<Pod> {
    const volumes = claim === undefined ? [] : [{ name: 'data', persistentVolumeClaim: { claimName: claim } }];
    return await this.#api.send<Pod>('POST', this.#path('pods'), {
      metadata: { name: `p-${randomBytes(4).toString('hex')}`, labels: APP },
      spec: { nodeName, volumes, containers: [{ name: 'c', image: 'registry.example/c:1' }] },
    });
  }

  /** A bound claim over a volume that is attached to this Node; resolves with the name of both. */
  async volume(nodeName: string): Promise<string> {
    const name = `v-${randomBytes(4).toString('hex')}`;
    const storage = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
    const csi = { driver: 'csi.example', volumeHandle: name };
    await this.#api.send('POST', '/api/v1/persistentvolumes', {
      metadata: { name },
      spec: { ...storage, csi, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain' },
    });
    await this.#api.send('POST', this.#path('persistentvolumeclaims'), {
      metadata: { name },
      spec: { ...storage, volumeName: name, resources: { requests: { storage: '1Gi' } } },
    });
    await this.#attach(name, nodeName);
    return name;
  }

  /** A budget over all pods of the namespace that allows no eviction, as its controller would have judged it. */
  async forbidEvictions(pods: number): Promise<void> {
    const path = this.#path('poddisruptionbudgets', '/apis/policy/v1');
    const made = await this.#api.send<{ metadata: { generation: number } }>('POST', path, {
      metadata: { name: 'closed' },
      spec: { minAvailable: pods, selector: { matchLabels: APP } },
    });
    const status = { expectedPods: pods, currentHealthy: pods, desiredHealthy: pods, disruptionsAllowed: 0 };
    await this.#api.send('PATCH', `${path}/closed/status`, {
      status: { ...status, observedGeneration: made.metadata.generation },
    });
  }

  async pods(): Promise<readonly Pod[]> {
    return (await this.#api.send<{ items: Pod[] }>('GET', this.#path('pods'))).items;
  }

  /** Waits until all pods are ready. */
  async untilReady(): Promise<void> {
    await eventually(
      async () => {
        const conditions = (await this.pods()).map(({ status }) => status?.conditions ?? []);
        return conditions.every((of) => of.some(({ type, status }) => type === 'Ready' && status === 'True'));
      },
      { timeoutMs: 240_000, describe: `the pods of ${this.namespace} to be ready` },
    );
  }

  /** VolumeAttachments of volumes at this Node. */
  async attachments(nodeName: string): Promise<readonly VolumeAttachment[]> {
    const { items } = await this.#api.send<{ items: VolumeAttachment[] }>('GET', ATTACHMENTS);
    return items.filter(({ spec }) => spec.nodeName === nodeName);
  }

  async node(name: string): Promise<Node> {
    return await this.#api.send<Node>('GET', `/api/v1/nodes/${name}`);
  }

  /** Plays the controller that moves a volume: `lateMs` after its pod has gone it leaves the Node, and then arrives elsewhere. */
  async moveVolume(name: string, nodeName: string, lateMs: number, signal: AbortSignal): Promise<void> {
    const clock = new SystemClock();
    try {
      while ((await this.#users(name)).length > 0) await clock.sleep(LOOK_MS, signal);
      await clock.sleep(lateMs, signal);
      await this.#api.request(`${ATTACHMENTS}/${attachmentOf(name, nodeName)}`, { method: 'DELETE' });
      await clock.sleep(lateMs, signal);
      await this.#attach(name, ELSEWHERE);
    } catch (err) {
      if (!signal.aborted) throw err;
    }
  }

  async #users(claim: string): Promise<readonly Pod[]> {
    const all = await this.pods();
    return all.filter(({ spec }) => spec?.volumes?.some((one) => one.persistentVolumeClaim?.claimName === claim));
  }

  async #attach(volume: string, nodeName: string): Promise<void> {
    const name = attachmentOf(volume, nodeName);
    await this.#api.send('POST', ATTACHMENTS, {
      metadata: { name },
      spec: { attacher: 'csi.example', nodeName, source: { persistentVolumeName: volume } },
    });
    await this.#api.send('PATCH', `${ATTACHMENTS}/${name}/status`, { status: { attached: true } });
  }

  #path(plural: string, group = '/api/v1'): string {
    return `${group}/namespaces/${this.namespace}/${plural}`;
  }
}

function attachmentOf(volume: string, nodeName: string): string {
  return `${volume}-${nodeName}`;
}
