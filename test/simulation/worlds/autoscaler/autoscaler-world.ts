import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import { InstanceStatus_InstanceState as State } from '../../../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { parsePlaceholder } from '../../../../pkg/autoscaler/placeholder.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import { type ActTable, USER_ACTS } from '../../world/acts.ts';
import { type MachinesWorld, POOL } from '../../world/machines-world.ts';
import { Pool } from '../../world/pool.ts';
import { integerIn, seededRandom } from '../../world/seeded-random.ts';
import type { WorldKind } from '../kind.ts';
import { AutoscalerClient } from './client.ts';
import { Requests, type Wanted } from './requests.ts';

const ASKED_AT_REST_MS = 12 * 60_000;

/** What an autoscaler was told of its group. */
interface Seen {
  readonly size: number;
  readonly instances: readonly {
    readonly id: string;
    readonly status?: { readonly instanceState: State } | undefined;
  }[];
}

interface NamedNode {
  readonly providerId: string;
  readonly name: string;
}

type Sent =
  | { readonly method: 'nodeGroupIncreaseSize' | 'nodeGroupDecreaseTargetSize'; readonly delta: number }
  | { readonly method: 'nodeGroupDeleteNodes'; readonly nodes: readonly NamedNode[] };

/** A pool whose size a cluster-autoscaler chooses. */
class AutoscaledPool extends Pool {
  readonly #client: AutoscalerClient;
  readonly #requests: Requests;
  /** What the autoscaler has learned last: it may be old. */
  #seen: Seen | undefined;
  #last: Sent | undefined;
  #atRest: Seen | undefined;

  constructor(world: MachinesWorld, seed: number) {
    const acts: ActTable = {
      ...USERS,
      refresh: () => void this.#refresh(),
      increase: (_world, _ledger, random) => void this.#increase(random),
      deleteNodes: (_world, _ledger, random) => void this.#delete(random, State.instanceRunning),
      deleteMissing: (_world, _ledger, random) => void this.#delete(random, State.instanceCreating),
      decrease: (_world, _ledger, random) =>
        void this.#send({ method: 'nodeGroupDecreaseTargetSize', delta: -integerIn(random, 1, 3) }),
      again: () => void (this.#last && this.#send(this.#last)),
    };
    super(world, acts);
    this.#client = new AutoscalerClient(world, seededRandom(seed, 'autoscaler'));
    this.#requests = new Requests(world, this.ledger, limitsOf(world));
  }

  override settle(): void {
    super.settle();
    this.#requests.settle();
  }

  override beginRest(): void {
    this.#atRest = undefined;
    // Watches that trouble has silenced are broken off by then.
    this.world.time.schedule(ASKED_AT_REST_MS, () => void this.#refresh().then((seen) => (this.#atRest = seen)));
  }

  override leftovers(): readonly string[] {
    return [...super.leftovers(), ...this.#requests.undone()];
  }

  override untruths(): readonly string[] {
    return [...super.untruths(), ...this.#untruthsOfGroup()];
  }

  /** What the autoscaler is told is what there is. */
  #untruthsOfGroup(): readonly string[] {
    const { pool, nodes } = this.world;
    const seen = this.#atRest;
    if (seen === undefined) return ['the autoscaler was not answered'];
    const size = pool?.spec?.replicas ?? 0;
    const told = seen.instances.map(({ id, status }) => `${id} ${status?.instanceState}`).toSorted();
    const there = nodes.map(({ spec }) => `${spec?.providerID} ${State.instanceRunning}`).toSorted();
    return [
      ...(seen.size === size ? [] : [`the autoscaler is told a size of ${seen.size} where it is ${size}`]),
      ...(told.join() === there.join()
        ? []
        : [`the autoscaler is told of ${told.join()} where there are ${there.join()}`]),
    ];
  }

  /** What a loop of the autoscaler begins with. */
  async #refresh(): Promise<Seen | undefined> {
    const refreshed = await this.#client.call('refresh', {});
    if (refreshed === undefined || 'code' in refreshed) return undefined;
    const size = await this.#client.call('nodeGroupTargetSize', { id: POOL });
    const nodes = await this.#client.call('nodeGroupNodes', { id: POOL });
    if (size === undefined || nodes === undefined || 'code' in size || 'code' in nodes) return undefined;
    this.#seen = { size: size.reply.targetSize, instances: nodes.reply.instances };
    return this.#seen;
  }

  async #increase(random: Random): Promise<void> {
    // Sometimes one more than there may be.
    const delta = integerIn(random, 1, 3);
    if (random() < 0.7) await this.#refresh();
    await this.#send({ method: 'nodeGroupIncreaseSize', delta });
  }

  async #delete(random: Random, state: State): Promise<void> {
    const [isFresh, count, at] = [random() < 0.7, integerIn(random, 1, 3), random()];
    const seen = (isFresh ? await this.#refresh() : undefined) ?? this.#seen;
    const ids = (seen?.instances ?? []).filter(({ status }) => status?.instanceState === state).map(({ id }) => id);
    if (ids.length === 0) return;
    const from = Math.floor(at * ids.length);
    const nodes = [...ids, ...ids].slice(from, from + Math.min(count, ids.length)).map((id) => this.#named(id));
    await this.#send({ method: 'nodeGroupDeleteNodes', nodes });
  }

  #named(id: string): NamedNode {
    const node = this.world.nodes.find(({ spec }) => spec?.providerID === id);
    return { providerId: id, name: node?.metadata.name ?? id };
  }

  async #send(sent: Sent): Promise<void> {
    this.#last = sent;
    const told = this.#requests.begin(this.#wantedBy(sent));
    if (sent.method === 'nodeGroupDeleteNodes') {
      const nodes = sent.nodes.map((node) => ({ ...node, labels: {}, annotations: {} }));
      return told(await this.#client.call(sent.method, { id: POOL, nodes }));
    }
    told(await this.#client.call(sent.method, { id: POOL, delta: sent.delta }));
  }

  #wantedBy(sent: Sent): Wanted {
    switch (sent.method) {
      case 'nodeGroupIncreaseSize':
        return { kind: 'increase', delta: sent.delta, machines: [] };
      case 'nodeGroupDecreaseTargetSize':
        return { kind: 'decrease', delta: -sent.delta, machines: [] };
      case 'nodeGroupDeleteNodes': {
        const machines = sent.nodes.flatMap((node) => this.#machineOf(node));
        return { kind: 'delete', delta: sent.nodes.length, machines };
      }
    }
  }

  /** By its Node, or by the name that stands for one which has none. */
  #machineOf({ providerId, name }: NamedNode): string[] {
    const placeholder = parsePlaceholder(providerId);
    if (placeholder !== undefined) return placeholder.kind === 'machine' ? [placeholder.machine] : [];
    const machine = this.world.machines.find(
      ({ metadata, spec }) => metadata.labels?.['node'] === name || spec?.providerID === providerId,
    );
    return machine === undefined ? [] : [machine.metadata.name];
  }
}

/** Users leave the size to the autoscaler. */
const { scale: _scale, ...USERS } = USER_ACTS;
const OF_AUTOSCALERS = ['refresh', 'increase', 'deleteNodes', 'deleteMissing', 'decrease', 'again'];

function limitsOf({ pool }: MachinesWorld): { readonly min: number; readonly max: number } {
  const { annotations = {} } = pool?.metadata ?? {};
  return { min: Number(annotations[NODE_GROUP_MIN_ANNOTATION]), max: Number(annotations[NODE_GROUP_MAX_ANNOTATION]) };
}

/** A pool whose size a cluster-autoscaler chooses, through the port of the manager. */
export const AUTOSCALER: WorldKind = {
  acts: [...Object.keys(USERS), ...OF_AUTOSCALERS],
  usual: ['increase', 'deleteNodes', 'decrease'],
  // After it nobody can say which requests there have been.
  without: ['setBack', 'renamed'],
  adapt: (options, random) => {
    const { replicas = 1, flags, annotations } = options;
    return {
      ...options,
      flags: { ...flags, 'autoscaler-grpc-address': 'unix:///autoscaler.sock' },
      annotations: {
        ...annotations,
        [NODE_GROUP_MIN_ANNOTATION]: String(integerIn(random, 0, Math.min(2, replicas))),
        [NODE_GROUP_MAX_ANNOTATION]: String(replicas + integerIn(random, 1, 5)),
      },
    };
  },
  populate: (world, seed) => new AutoscaledPool(world, seed),
};
