import { showsNode } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Cluster } from '../../kube/gate/gate.ts';
import type { Target, Targets } from '../../kube/targets/targets.ts';
import { whereNodesAre } from '../../operator/cells/nodes-of-cell.ts';
import type { MachineIndex } from './node-owner.ts';
import { recordedNodeOf } from './recorded-node.ts';

/** Of a single machine nobody can tell whether its Node was lost or the cluster is another one. */
export const MIN_MACHINES = 2;

export interface NodesInTargetDeps {
  readonly machines: MachineIndex & Pick<Lister<Machine>, 'list'>;
  readonly targets: Pick<Targets, 'of'>;
  readonly log: Pick<Logger, 'warn' | 'info'>;
}

interface Seen {
  /** What it was found out from: a list is the same array until something changes. */
  readonly machines: readonly Machine[];
  readonly nodes: readonly Node[];
  readonly areAllMissing: boolean;
}

/**
 * Whether the Nodes of all machines are missing in their target cluster at once: a kubeconfig then leads to another cluster, or that was lost or set
 * back. In the first case the machines work, and their pods with them; to replace them helps in neither.
 *
 * | Machines of the target that show a Node, and are not being deleted | Nodes of those that show one          | all are missing |
 * |--------------------------------------------------------------------|---------------------------------------|-----------------|
 * | none, or one                                                       | any                                   | no              |
 * | 2 or more                                                          | one is there, also of one that leaves | no              |
 * | 2 or more                                                          | none is there                         | yes             |
 */
export class NodesInTarget {
  readonly #deps: NodesInTargetDeps;
  /** By the cache of the target's Nodes. */
  readonly #seen = new WeakMap<Pick<Lister<Node>, 'list'>, Seen>();

  constructor(deps: NodesInTargetDeps) {
    this.#deps = deps;
  }

  /** Whether the Node that this machine has recorded is missing, and those of all others of its target cluster, as the caches show it. */
  isMissingWithAll(machine: Machine): boolean {
    const target = this.#deps.targets.of(machine);
    if (target === undefined || recordedNodeOf(this.#deps, machine) !== undefined) return false;
    return this.areAllMissing(target);
  }

  /** Whether those of all machines of this target cluster are. */
  areAllMissing({ cluster, nodes }: Pick<Target, 'cluster' | 'nodes'>): boolean {
    const { machines, targets } = this.#deps;
    const before = this.#seen.get(nodes);
    const now = { machines: machines.list(), nodes: nodes.list() };
    if (before !== undefined && before.machines === now.machines && before.nodes === now.nodes)
      return before.areAllMissing;
    const joined = now.machines.filter((one) => showsNode(one) && targets.of(one)?.cluster === cluster);
    const staying = joined.filter((one) => !isBeingDeleted(one)).length;
    const areAllMissing = staying >= MIN_MACHINES && whereNodesAre(joined, nodes) === 'elsewhere';
    this.#seen.set(nodes, { ...now, areAllMissing });
    if (areAllMissing !== (before?.areAllMissing ?? false)) this.#tell(cluster, areAllMissing, staying);
    return areAllMissing;
  }

  #tell(cluster: Cluster, areAllMissing: boolean, machines: number): void {
    const { log } = this.#deps;
    if (areAllMissing)
      log.warn(
        { cluster, machines },
        'replaces no machine for its health: none of the Nodes of the Machines is in the target cluster',
      );
    else log.info({ cluster, machines }, 'replaces machines for their health again');
  }
}
