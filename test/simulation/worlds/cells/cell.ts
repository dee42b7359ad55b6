import { shardOf } from '../../../../pkg/operator/cells/assignment.ts';
import { MachinesWorld } from '../../world/machines-world.ts';
import { Pool } from '../../world/pool.ts';
import { kubeconfigOf } from '../../world/simulated-process.ts';
import { targetURL } from '../../world/target-address.ts';

/** Label of the namespaces that are managed. */
export const SELECTED_LABEL = 'cell';
/** Name of the Secret with the kubeconfig. */
export const KUBECONFIG_SECRET = 'target';

/** A namespace with a pool, whose machines join a target cluster of its own. */
export class Cell {
  readonly world: MachinesWorld;
  readonly pool: Pool;

  private constructor(world: MachinesWorld, pool: Pool) {
    this.world = world;
    this.pool = pool;
  }

  /** Makes its target cluster and its cloud, and asks for its pool; `shards`: of how many its shard is one. */
  static async create(
    of: MachinesWorld,
    namespace: string,
    shards: number,
    options: Partial<Pick<MachinesWorld['options'], 'replicas' | 'strategy' | 'pods'>>,
  ): Promise<Cell> {
    const world = await MachinesWorld.create({
      ...of.options,
      ...options,
      flags: {},
      hasTarget: true,
      furnish: () => undefined,
      cell: { of, namespace, lease: `machinist-shard-${shardOf(namespace, shards)}` },
    });
    const metadata = { name: namespace, labels: { [SELECTED_LABEL]: 'true' } };
    world.act('POST', '/api/v1/namespaces', { metadata });
    const cell = new Cell(world, new Pool(world));
    cell.#createSecret(kubeconfigOf(targetURL({ target: namespace, asker: namespace }), 'first'));
    world.furnishPool();
    return cell;
  }

  get namespace(): string {
    return this.world.namespace;
  }

  #createSecret(kubeconfig: string): void {
    const body = { metadata: { name: KUBECONFIG_SECRET }, stringData: { kubeconfig } };
    this.world.act('POST', `/api/v1/namespaces/${this.namespace}/secrets`, body);
  }
}
