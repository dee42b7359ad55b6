import { HAD_KUBECONFIG_ANNOTATION, KUBECONFIG_SECRET_SUFFIX, NODE_CLUSTER_ANNOTATION } from '../../api/keys.ts';
import { readInfrastructure } from '../../api/infrastructure.ts';
import type { ClusterAPIMachine } from '../../api/machine.ts';
import { keyOf } from '../../../../apis/meta.ts';
import type { Node } from '../../../../apis/wire.ts';
import type { MachinePass, StepDeps } from '../machine-pass.ts';
import { WHICH_NODE } from '../resolve-node-ref.ts';
import { contestedNode, type ProviderIDClaim } from '../provider-id-claims.ts';
import type { ObservedNode } from '../observed.ts';
import { see } from './observe-object.ts';

export type NodeDeps = Pick<StepDeps, 'machines' | 'externals' | 'servedAs' | 'clock'>;

/**
 * The other Machines with the provider ID of this one, by name: the cache puts what changes last, so that what is said of one of several would
 * change with each write about another, and be written for ever.
 */
export function rivalsOf(deps: NodeDeps, { metadata, spec }: ClusterAPIMachine): readonly ProviderIDClaim[] {
  return deps.machines
    .byIndex('providerID', spec?.providerID ?? '')
    .filter((other) => other.metadata.uid !== metadata.uid)
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .map((machine) => ({
      machine,
      infrastructure: see(deps, machine, machine.spec?.infrastructureRef, readInfrastructure),
    }));
}

/** What is known of Nodes is told for so long after their cluster was reached for the last time; for so long, too, a cluster may be away and not be lost. */
const GRACE_MS = 120_000;

/** How long what was known of Nodes is still told, in ms. */
export function graceLeftMs(
  { clock }: Pick<StepDeps, 'clock'>,
  { nodeCluster }: Pick<MachinePass, 'nodeCluster'>,
): number {
  if (nodeCluster.kind !== 'unreachable') return 0;
  return Math.max(0, nodeCluster.sinceMs + GRACE_MS - clock.monotonicMs());
}

/** In how many ms a cluster that nothing leads to is lost; undefined: it is not known to be away. */
export function lostInMs(
  { clock }: Pick<StepDeps, 'clock'>,
  { nodeCluster }: Pick<MachinePass, 'nodeCluster'>,
): number | undefined {
  if (nodeCluster.kind !== 'unreachable' || nodeCluster.lostSinceMs === undefined) return undefined;
  return Math.max(0, nodeCluster.lostSinceMs + GRACE_MS - clock.monotonicMs());
}

/**
 * The one Node with the provider id; once it was found, whether that one is still there. None while it may be another Machine's, or the
 * infrastructure is: a Machine may have been copied with its provider id, and must not take the Node of the first one along.
 */
export function nodeByProviderID(
  deps: NodeDeps,
  pass: Pick<MachinePass, 'machine' | 'infrastructure' | 'nodeCluster' | 'cluster'>,
): ObservedNode {
  const { machine, infrastructure, nodeCluster, cluster } = pass;
  const { spec, status } = machine;
  const { providerID = '' } = spec;
  if (nodeCluster.kind === 'none') {
    return { kind: 'unknown', problem: 'there is no target cluster: start the manager with one (--target-kubeconfig)' };
  }
  if (providerID === '' || infrastructure.kind === 'foreign') return { kind: 'none' };
  if (nodeCluster.kind === 'unreachable') {
    const isOver = graceLeftMs(deps, pass) === 0;
    return { kind: 'unreachable', why: nodeCluster.why, isOver, isLost: lostInMs(deps, pass) === 0 };
  }
  const contested = contestedNode({ machine, infrastructure }, rivalsOf(deps, machine));
  if (contested !== undefined) return contested;
  const found = nodeCluster.target.nodes.byIndex('providerID', providerID);
  const known = status.nodeRef?.name;
  const isKnown = ({ metadata }: Node): boolean => metadata.name === known;
  const node = known === undefined ? found[0] : found.find(isKnown);
  if (known === undefined && found.length > 1) {
    const names = found.map(({ metadata }) => metadata.name).toSorted();
    const problem = `Nodes ${names.join(' and ')} have the same provider ID ${providerID}: ${WHICH_NODE}`;
    return { kind: 'undecided', problem };
  }
  if (node !== undefined) return { kind: 'found', node };
  if (known !== undefined && nodeCluster.identity !== undefined && !isMarked(machine)) {
    const secretName = `${cluster.metadata.name}${KUBECONFIG_SECRET_SUFFIX}`;
    const why =
      `Node ${known} was found in another cluster, before Secret ${secretName} was changed to a cluster that does not contain it: correct the Secret, or delete it ` +
      `and annotation ${HAD_KUBECONFIG_ANNOTATION} of the Cluster; ` +
      `if the Node no longer exists, set annotation ${NODE_CLUSTER_ANNOTATION}=${nodeCluster.identity}`;
    return { kind: 'unreachable', why, isOver: true, isLost: false };
  }
  return { kind: known === undefined ? 'absent' : 'gone' };
}

/** Whether it is known in which cluster its Node was found: that was written before `status.nodeRef`. */
function isMarked({ metadata }: MachinePass['machine']): boolean {
  return metadata.annotations?.[NODE_CLUSTER_ANNOTATION] !== undefined;
}
