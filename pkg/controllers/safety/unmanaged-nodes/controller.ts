import { hasFinalizer } from '../../../apis/finalizers.ts';
import {
  NODE_FINALIZER,
  NOT_MANAGED_ANNOTATION,
  MAINTENANCE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Lister } from '../../../kube/cache/lister.ts';

import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { strategicPatch } from '../../../kube/client/patch.ts';
import { machines as machineResource, nodes } from '../../../kube/client/resource.ts';
import type { UnmanagedNodeMetrics } from './metrics.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { MAINTENANCE, isMaintenanceRequested, ENDED, NO_MACHINE } from '../../machine-facts/maintenance.ts';
import { machinesNamed } from '../../machine-facts/namesakes.ts';
import { nodeAccess } from '../../machine-facts/node-access.ts';
import type { NodesInTarget } from '../../machine-facts/nodes-in-target.ts';
import { setCondition, nodeConditionOf, type DesiredCondition } from '../../machine-facts/node-condition.ts';
import { machinesOfNode } from '../../../operator/indexes/machines-of-node.ts';
import type { SharedTarget } from '../../../operator/shared-target.ts';
import type { DeletedMachine, DeletedMachines } from '../deleted-machines.ts';
import type { OwnerDeps } from '../../replicas/owner-deps.ts';
import { decideOnNode } from './node-decision.ts';

/** What answers a request for maintenance of a Node that no Machine has. */
const NO_MACHINE_TEXT =
  `Annotation ${MAINTENANCE_ANNOTATION} has no effect: no Machine refers to this Node, by label node or by its provider ID. ` +
  'Cordon and drain it with kubectl instead, and remove the annotation.';

export interface UnmanagedNodesDeps extends Pick<OwnerDeps, 'reader' | 'targets' | 'clock' | 'log'> {
  readonly machines: Lister<Machine>;
  readonly nodesInTarget: Pick<NodesInTarget, 'areAllMissing'>;
  readonly gone: DeletedMachines;
  readonly namespace: string;
  /** Where other namespaces have Nodes in the same target. */
  readonly shared?: Pick<SharedTarget, 'isJudgeOf'> | undefined;
  readonly metrics: UnmanagedNodeMetrics;
  /** `--machine-creation-timeout`: so long a Node may wait for its Machine to know it. */
  readonly creationTimeoutMs: number;
}

/** A Node's key in the queue; several clusters may have Nodes of one name. */
export function nodeKey({ cluster }: Pick<Target, 'cluster'>, name: string): string {
  return `${cluster}/${name}`;
}

/**
 * Marks Nodes that no Machine has, unmarks those that one has, and removes those of machines that are gone. Requests for maintenance of the
 * first are answered. Where other namespaces have Nodes in the same cluster, theirs are left alone, and those of nobody are one namespace's;
 * what is left of a machine is that of the namespace which knows so. While the Nodes of all Machines are missing, none is marked.
 */
export class UnmanagedNodesController {
  readonly #deps: UnmanagedNodesDeps;
  /** Nodes that nobody has, by key: since when (monotonic). */
  readonly #unowned = new Map<string, { readonly uid: string; readonly sinceMs: number }>();

  constructor(deps: UnmanagedNodesDeps) {
    this.#deps = deps;
  }

  /** One pass over one Node, by nodeKey. Throws ApiError and GateClosedError. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { targets, machines, gone, creationTimeoutMs } = this.#deps;
    const target = targets.all().find(({ cluster }) => key.startsWith(`${cluster}/`));
    const node = target?.nodes.get(key.slice(target.cluster.length + 1));
    if (target === undefined || node === undefined) {
      this.#unowned.delete(key);
      return stop;
    }

    const left = gone.of(node);
    const { metadata } = node;
    const all = machinesOfNode(machines, node);
    const owners = all.length;
    if (owners > 0 && !all.some(({ metadata: { namespace } }) => namespace === this.#deps.namespace)) {
      this.#unowned.delete(key);
      return stop;
    }
    if (owners === 0 && left === undefined && this.#deps.shared?.isJudgeOf(metadata.name) === false) {
      this.#unowned.delete(key);
      return requeue(creationTimeoutMs, 'another namespace to decide about the Node');
    }
    const facts = {
      machines: owners,
      isLeftOver: left !== undefined,
      isMarked: metadata.annotations?.[NOT_MANAGED_ANNOTATION] !== undefined,
      hasFinalizer: hasFinalizer({ metadata }, NODE_FINALIZER),
      unownedForMs: this.#unownedFor(key, metadata.uid, owners),
    };
    const verdict = decideOnNode(facts, creationTimeoutMs);
    if (owners === 0 && verdict !== 'remove') await this.#answerRequest(target, node, signal);
    if (typeof verdict === 'object') return requeue(verdict.waitMs, 'a Machine to have the Node');
    if (verdict === 'remove') return this.#remove(target, node, left, signal);
    // It may be another cluster, whose Nodes are others'.
    if (verdict === 'mark' && this.#deps.nodesInTarget.areAllMissing(target))
      return requeue(creationTimeoutMs, 'a Node of one of the Machines in the target cluster');
    if (verdict === 'mark') await this.#patch(target, node, '1', facts.hasFinalizer, signal);
    if (verdict === 'unmark') await this.#patch(target, node, null, false, signal);
    return stop;
  }

  /** By what this process has seen: a Machine that was there a moment ago may be on its way back from a backup. */
  #unownedFor(key: string, uid: string, owners: number): number {
    const nowMs = this.#deps.clock.monotonicMs();
    if (owners > 0) {
      this.#unowned.delete(key);
      return 0;
    }
    const known = this.#unowned.get(key);
    if (known?.uid === uid) return nowMs - known.sinceMs;
    this.#unowned.set(key, { uid, sinceMs: nowMs });
    return 0;
  }

  /** Maintenance is done by the Machine of a Node: where there is none, the Node says so. */
  async #answerRequest(target: Target, node: Node, signal: AbortSignal): Promise<void> {
    const answer = answerOf(node);
    if (answer === undefined) return;
    const access = nodeAccess(target, this.#deps.machines);
    await setCondition(this.#deps, { signal }, access, node, { type: MAINTENANCE, status: 'False', ...answer });
  }

  async #patch(
    target: Target,
    node: Node,
    mark: '1' | null,
    takesFinalizer: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { metrics, log } = this.#deps;
    const { name } = node.metadata;
    const metadata = {
      annotations: { [NOT_MANAGED_ANNOTATION]: mark },
      ...(takesFinalizer && { '$deleteFromPrimitiveList/finalizers': [NODE_FINALIZER] }),
    };
    const patch = strategicPatch(node, { metadata });
    await target.writer.patch('change', nodes, { name }, patch, { signal });
    metrics.inc({ action: mark === null ? 'unmarked' : 'marked' });
    if (mark === null) log.info({ node: name }, 'unmarked a node that has a machine again');
    else log.info({ node: name }, 'marked a node without a machine');
  }

  /** The last look is live: nobody has such a Machine any more. */
  async #remove(
    target: Target,
    node: Node,
    left: DeletedMachine | undefined,
    signal: AbortSignal,
  ): Promise<StepResult> {
    const { reader, namespace, shared, metrics, log } = this.#deps;
    const { name } = node.metadata;
    const machine = left?.name ?? name;
    const live =
      shared === undefined
        ? await reader.get(machineResource, { namespace, name: machine }, { signal }).catch(ignoreNotFound)
        : (await machinesNamed(machine, reader, signal))[0];
    if (live !== undefined) return waitFor('the Machine of the Node');
    await nodeAccess(target, this.#deps.machines).remove(node, signal);
    metrics.inc({ action: 'removed' });
    log.info({ node: name, providerID: left?.providerID }, 'deleted a node that joined after its machine was deleted');
    return stop;
  }
}

/** What a Node without Machine says of maintenance that is asked of it, and of such a request that was taken back. */
function answerOf(node: Node): Pick<DesiredCondition, 'reason' | 'message'> | undefined {
  if (isMaintenanceRequested(node, undefined)) return { reason: NO_MACHINE, message: NO_MACHINE_TEXT };
  return nodeConditionOf(node, MAINTENANCE)?.reason === NO_MACHINE
    ? { reason: 'NotInMaintenance', message: ENDED }
    : undefined;
}
