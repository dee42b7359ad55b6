import type { Node, Pod } from '../../../pkg/apis/wire.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import type { SimulatedAPIServer } from '../api-server/api-server.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import type { VirtualTime } from './virtual-clock.ts';
import { Volumes, volumesOf } from './volumes.ts';

/** Namespace of its pods. */
export const WORKLOAD_NAMESPACE = 'default';
const APP = 'app';
const LABELS = { app: APP };
const BUDGET_PATH = `/apis/policy/v1/namespaces/${WORKLOAD_NAMESPACE}/poddisruptionbudgets`;
const PODS_PATH = `/api/v1/namespaces/${WORKLOAD_NAMESPACE}/pods`;
/** How long controllers take to do what follows from a change. */
const LOOK_AFTER_MS = 400;
const GRACE_S = 5;

/** What runs on the Nodes of a world. */
export interface WorkloadOptions {
  readonly server: SimulatedAPIServer;
  readonly time: VirtualTime;
  readonly replicas: number;
  /** How many pods may be missing. */
  readonly maxUnavailable: number;
  /** How many of them have a volume. */
  readonly volumes: number;
  readonly random: Random;
}

/**
 * Pods with a budget, in place of a Deployment, the scheduler, the disruption controller and the collector of pods: so many run as are asked
 * for, on Nodes that are ready and take some, and the budget says how many may be evicted.
 */
export class Workload {
  readonly volumes: Volumes;
  readonly #options: WorkloadOptions;
  #made = 0;
  #isDue = false;
  #isOver = false;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    const { server, time, random, maxUnavailable, volumes: count } = options;
    this.volumes = new Volumes({ server, time, random, namespace: WORKLOAD_NAMESPACE, count });
    server.handle({
      method: 'POST',
      path: BUDGET_PATH,
      body: { metadata: { name: APP }, spec: { maxUnavailable, selector: { matchLabels: LABELS } } },
    });
    server.objects.onChange(({ plural }) => {
      if (plural === 'nodes' || plural === 'pods' || plural === 'volumeattachments') this.#lookSoon();
    });
    server.objects.onRestore(() => this.#lookSoon());
    this.#lookSoon();
  }

  /** Nobody asks for its pods any more. */
  end(): void {
    this.#isOver = true;
    const { server } = this.#options;
    server.handle({ method: 'DELETE', path: `${BUDGET_PATH}/${APP}` });
    for (const pod of this.pods) this.#remove(pod);
  }

  get pods(): readonly Pod[] {
    return this.#list('pods') as readonly Pod[];
  }

  #lookSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#options.time.schedule(LOOK_AFTER_MS, () => {
      this.#isDue = false;
      this.#look();
    });
  }

  #look(): void {
    const nodes = new Map((this.#list('nodes') as readonly Node[]).map((node) => [node.metadata.name, node]));
    // As the collector of pods does, and the eviction by taints of Nodes that are gone for long.
    for (const pod of this.pods) if (!nodes.has(pod.spec?.nodeName ?? '')) this.#remove(pod);
    if (!this.#isOver) this.#fill([...nodes.values()].filter(takesPods));
    this.volumes.follow(this.pods);
    this.#judge();
  }

  #fill(nodes: readonly Node[]): void {
    const staying = this.pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const load = new Map(nodes.map(({ metadata }) => [metadata.name, 0]));
    for (const { spec } of staying) {
      const name = spec?.nodeName ?? '';
      load.set(name, (load.get(name) ?? 0) + 1);
    }
    for (let count = staying.length; count < this.#options.replicas && nodes.length > 0; count++) {
      const names = nodes.map(({ metadata }) => metadata.name);
      const [name = ''] = names.toSorted((a, b) => load.get(a)! - load.get(b)! || (a < b ? -1 : 1));
      load.set(name, load.get(name)! + 1);
      this.#made += 1;
      const pod = podOf(`${APP}-${this.#made}`, name, this.volumes.freeOf(this.pods));
      this.#options.server.handle({ method: 'POST', path: PODS_PATH, body: pod });
    }
  }

  /** Writes what the budget allows, when that has changed. */
  #judge(): void {
    const { server, replicas, maxUnavailable } = this.#options;
    const [budget] = this.#list('poddisruptionbudgets') as readonly StoredObject[];
    if (budget === undefined) return;
    const currentHealthy = this.pods.filter(isHealthyPod).length;
    const desiredHealthy = Math.max(0, replicas - maxUnavailable);
    const status = {
      observedGeneration: budget.metadata.generation,
      expectedPods: replicas,
      currentHealthy,
      desiredHealthy,
      disruptionsAllowed: Math.max(0, currentHealthy - desiredHealthy),
    };
    const before = budget['status'] as Partial<typeof status> | undefined;
    const isSame = (Object.keys(status) as (keyof typeof status)[]).every((name) => before?.[name] === status[name]);
    if (isSame) return;
    server.handle({
      method: 'PATCH',
      path: `${BUDGET_PATH}/${APP}/status`,
      body: { status: { ...status, disruptedPods: null } },
      contentType: 'application/merge-patch+json',
    });
  }

  #remove({ metadata: { name, uid } }: Pod): void {
    const body = { preconditions: { uid }, gracePeriodSeconds: 0 };
    this.#options.server.handle({ method: 'DELETE', path: `${PODS_PATH}/${name}`, body });
  }

  #list(plural: string): readonly unknown[] {
    const { kinds, objects } = this.#options.server;
    const kind = kinds.find((one) => one.plural === plural);
    if (kind === undefined) throw new Error(`no kind has the plural ${plural}`);
    return objects.of(kind).list();
  }
}

/** Nobody owns it: what would take its place is made here. */
function podOf(name: string, nodeName: string, volume: string | undefined): object {
  return {
    metadata: { name, labels: LABELS },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: GRACE_S,
      containers: [{ name: 'main', image: 'none' }],
      ...volumesOf(volume),
    },
  };
}

function isHealthyPod({ metadata, status }: Pod): boolean {
  const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  return metadata.deletionTimestamp === undefined && isReady;
}

function takesPods({ spec, status, metadata }: Node): boolean {
  if (metadata.deletionTimestamp !== undefined || spec?.unschedulable === true) return false;
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
