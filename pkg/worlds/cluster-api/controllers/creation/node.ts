import { NODE_CLUSTER_ANNOTATION } from '../../api/keys.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import { GateClosedError } from '../../../../kube/gate/gate.ts';
import { ApiError, ignoreNotFound } from '../../../../kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../../kube/client/patch.ts';
import { nodes } from '../../../../kube/client/resource.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { MachinePass, ClusterAPIMachineStep, StepDeps } from '../machine-pass.ts';
import { resolveNodeRef, type OtherNodes } from '../resolve-node-ref.ts';
import { nodePatch } from '../node-patch.ts';
import { isOutdated } from '../outdated.ts';
import { contestOf, type ProviderIDClaim } from '../provider-id-claims.ts';
import type { ObservedInfrastructure, ObservedNode } from '../observed.ts';
import { graceLeftMs, lostInMs, nodeByProviderID, rivalsOf, type NodeDeps } from './node-by-provider-id.ts';

/** How often what other Machines name is looked at again: when it changes, they are woken, and not this one. */
const RECHECK_MS = 20_000;

/** Finds the Node, says which it is, and has it show what its Machine says. */
export function nodeStep(deps: NodeDeps & Pick<StepDeps, 'synced'>): ClusterAPIMachineStep {
  return {
    name: 'node',
    async run(pass) {
      const { machine, notes, signal, nodeCluster } = pass;
      pass.node = await findNewNode(deps, pass);
      if (pass.node.kind === 'unreachable') {
        for (const leftMs of [graceLeftMs(deps, pass), lostInMs(deps, pass) ?? 0]) {
          if (leftMs > 0) pass.notes.alsoAfter(leftMs, 'the cluster of its Node to respond');
        }
      }
      if (pass.node.kind === 'undecided' && rivalsOf(deps, machine).some(isUnread)) {
        pass.notes.alsoAfter(RECHECK_MS, 'the references of the other Machine with the same provider ID');
      }
      if (pass.node.kind !== 'found' || nodeCluster.kind !== 'reached') return next;
      const { target, identity } = nodeCluster;
      const { name } = pass.node.node.metadata;
      if (identity !== undefined) {
        machine.metadata.annotations = { ...machine.metadata.annotations, [NODE_CLUSTER_ANNOTATION]: identity };
      }
      const before = machine.status.nodeRef?.name;
      if (before !== name) {
        machine.status.nodeRef = { name };
        const why = before === undefined ? '' : `: ${before} no longer exists, and it has the provider ID`;
        notes.record({ type: 'Normal', reason: 'SuccessfulSetNodeRef', message: `The Node is ${name}${why}` });
      }
      const { nodeInfo } = pass.node.node.status ?? {};
      if (nodeInfo !== undefined) machine.status.nodeInfo = { ...nodeInfo };
      // One that has registered anew without its provider ID is drained, but may not say yet whose it is.
      if (isBeingDeleted(machine) && pass.node.node.spec?.providerID !== machine.spec.providerID) return next;
      const isInterruptible = interruptibleIn(pass.infrastructure);
      const outdated = isOutdated(machine, (reference) => deps.externals.find(machine, reference));
      const shown = { isInterruptible, isOutdated: outdated };
      const change = nodePatch(pass.node.node, machine, shown, deps.synced);
      if (change === undefined) return next;
      const { node } = pass.node;
      // Taints are a list that was made of the Node as it was seen.
      const patch = (change.spec === undefined ? mergePatch : mergePatchIfUnchanged)(node, change);
      const written = target.writer.patch('change', nodes, { name }, patch, { signal });
      // What a Node shows holds no deletion up: its API server may go with its Machine.
      await (isBeingDeleted(machine) ? written.catch(ignoreApiError) : written);
      return next;
    },
  };
}

function interruptibleIn(seen: ObservedInfrastructure): boolean | undefined {
  if (seen.kind === 'reading' || seen.kind === 'unknown') return undefined;
  return seen.kind === 'found' && seen.report.interruptible;
}

function ignoreApiError(err: unknown): void {
  if (!(err instanceof ApiError) && !(err instanceof GateClosedError)) throw err;
}

/** What the cache says, but that a Node is gone: a kubelet may have registered it anew. Throws ApiError. */
async function findNewNode(deps: NodeDeps, pass: MachinePass): Promise<ObservedNode> {
  const { machine, cluster, nodeCluster, infrastructure, signal } = pass;
  const seen = nodeByProviderID(deps, pass);
  const name = machine.status.nodeRef?.name;
  // The API server of a Cluster that goes may be no more, and its Nodes are let alone.
  if (seen.kind !== 'gone' || name === undefined || nodeCluster.kind !== 'reached' || isBeingDeleted(cluster)) {
    return seen;
  }
  pass.node = { kind: 'undecided', problem: `Could not check whether Node ${name} still exists` };
  const live = await nodeCluster.target.reader.get(nodes, { name }, { signal }).catch(ignoreNotFound);
  const { providerID = '' } = machine.spec;
  const others = nodeCluster.target.nodes.byIndex('providerID', providerID).filter((one) => one.metadata.name !== name);
  const claim = { machine, infrastructure };
  const rivals = rivalsOf(deps, machine);
  const holder = rivals.find((rival) =>
    others.some(({ metadata }) => metadata.name === rival.machine.status?.nodeRef?.name),
  );
  const contest = holder && contestOf(claim, holder);
  return resolveNodeRef(machine, live, { nodes: others, contest, infrastructure: standOf(infrastructure) });
}

const isUnread = ({ infrastructure: { kind } }: ProviderIDClaim): boolean => kind === 'reading' || kind === 'unknown';

function standOf(infrastructure: ObservedInfrastructure): OtherNodes['infrastructure'] {
  if (infrastructure.kind === 'reading' || infrastructure.kind === 'unknown') return 'unknown';
  return infrastructure.kind === 'found' && !isBeingDeleted(infrastructure.external.object) ? 'there' : 'gone';
}
