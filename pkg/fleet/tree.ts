import { NODE_LABEL, REVISION_ANNOTATION } from '../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../apis/machine/v1alpha1/machine-set.ts';
import { replicasOf } from '../apis/machine/v1alpha1/defaults.ts';
import { controllerOf, type KubeObject } from '../apis/meta.ts';
import { optionalMember } from '../apis/optional-member.ts';
import { explain } from '../controllers/machine/explain/explain.ts';
import { conditionOf } from '../work/reconcile/conditions.ts';
import { type Attention, attentionOf } from './attention.ts';
import { explanationOf, type DescribedExplanation } from './describe/described-explanation.ts';
import { progressOf, rolloutOf, troublesOf } from './rollout.ts';
import { trouble, type Trouble } from './trouble.ts';
import { isPreserved } from '../controllers/machine-facts/preserved.ts';

/** An object with what belongs to it; printed as it is with `-o json`. */
export interface TreeNode {
  readonly kind: 'MachineDeployment' | 'MachineSet' | 'Machine';
  readonly name: string;
  readonly namespace: string;
  readonly created?: string;
  /** `ok`, `progressing`, or `attention`: it does not continue without a user, or is held on purpose. */
  readonly attention: Attention;
  readonly children: readonly TreeNode[];
  /** Of MachineDeployments and MachineSets. */
  readonly replicas?: { readonly desired: number; readonly ready: number };
  readonly revision?: string;
  /** Of MachineDeployments and MachineSets. */
  readonly troubles?: readonly Trouble[];
  /** Of Machines. */
  readonly phase?: string;
  readonly explanation?: DescribedExplanation;
  readonly preservedUntil?: string;
  readonly node?: string;
  readonly providerID?: string;
}

/** What was read of a namespace, or of several. */
export interface TreeObjects {
  readonly deployments: readonly MachineDeployment[];
  readonly sets: readonly MachineSet[];
  readonly machines: readonly Machine[];
}

/** How a Machine is shown; `outage`: what its owner says of a cluster that does not answer. */
export type MachineToNode = (machine: Machine, nowMs: number, outage: string | undefined) => TreeNode;

const COLLATOR = new Intl.Collator();

/**
 * The objects below those that own them, as they were at `nowMs`: each MachineDeployment, and what has no owner. `only`: the names of the
 * MachineDeployments that are shown, and nothing else. `nodeOf` in place of nodeOfMachine.
 */
export function treeOf(
  objects: TreeObjects,
  nowMs: number,
  only?: ReadonlySet<string>,
  nodeOf: MachineToNode = nodeOfMachine,
): readonly TreeNode[] {
  const setsOf = groupByOwner(objects.sets);
  const machinesOf = groupByOwner(objects.machines);

  const machineNode = (machine: Machine, outage?: string): TreeNode => nodeOf(machine, nowMs, outage);
  const setNode = (set: MachineSet, outage?: string): TreeNode =>
    nodeOfSet(
      set,
      byName(machinesOf.get(set.metadata.uid)).map((machine) => machineNode(machine, outage)),
    );
  const deploymentNode = (deployment: MachineDeployment): TreeNode => {
    const outage = outageOf(deployment);
    const sets = newestFirst(setsOf.get(deployment.metadata.uid)).map((set) => setNode(set, outage));
    // An older revision without machines is only kept to be rolled back to.
    const shown = sets.filter(({ children, replicas }, i) => i === 0 || children.length > 0 || replicas?.desired !== 0);
    return nodeOfDeployment(deployment, shown, outage);
  };

  const deployments = byName(objects.deployments);
  if (only !== undefined) return deployments.filter(({ metadata }) => only.has(metadata.name)).map(deploymentNode);
  const known = new Set([...objects.deployments, ...objects.sets].map(({ metadata }) => metadata.uid));
  const isRoot = (object: KubeObject): boolean => !known.has(controllerOf(object)?.uid ?? '');
  return [
    ...deployments.map(deploymentNode),
    ...byName(objects.sets.filter(isRoot)).map((set) => setNode(set)),
    ...byName(objects.machines.filter(isRoot)).map((machine) => machineNode(machine)),
  ];
}

function nodeOfDeployment(
  deployment: MachineDeployment,
  children: readonly TreeNode[],
  outage: string | undefined,
): TreeNode {
  const troubles = [
    ...(outage === undefined ? [] : [trouble('APIServerUnreachable', outage)]),
    ...troublesOf(deployment),
  ];
  const isDone = rolloutOf(deployment).state === 'done';
  if (!isDone) troubles.push(progressOf(deployment));
  const isHeld = troubles.some(({ isProgress }) => !isProgress);
  return {
    kind: 'MachineDeployment',
    ...identityOf(deployment),
    attention: isHeld ? 'attention' : isDone ? 'ok' : 'progressing',
    replicas: { desired: replicasOf(deployment), ready: deployment.status?.readyReplicas ?? 0 },
    ...optionalMember('revision', deployment.metadata.annotations?.[REVISION_ANNOTATION]),
    troubles,
    children,
  };
}

function nodeOfSet(set: MachineSet, children: readonly TreeNode[]): TreeNode {
  const { status, spec, metadata } = set;
  const frozen = conditionOf(status?.machineSetCondition, 'Frozen');
  const troubles = frozen?.status === 'True' ? [trouble('Frozen', frozen.message ?? frozen.reason ?? '')] : [];
  const replicas = { desired: spec.replicas ?? 0, ready: status?.readyReplicas ?? 0 };
  const isComplete = replicas.desired === replicas.ready && children.length === replicas.desired;
  return {
    kind: 'MachineSet',
    ...identityOf(set),
    attention: troubles.length > 0 ? 'attention' : isComplete ? 'ok' : 'progressing',
    replicas,
    ...optionalMember('revision', metadata.annotations?.[REVISION_ANNOTATION]),
    troubles,
    children,
  };
}

export function nodeOfMachine(machine: Machine, nowMs: number, outage: string | undefined): TreeNode {
  const { metadata, spec, status } = machine;
  const explanation = explain(machine, nowMs, outage);
  return {
    kind: 'Machine',
    ...identityOf(machine),
    attention: isPreserved(machine, nowMs) ? 'attention' : attentionOf(explanation),
    phase: explanation.phase,
    explanation: explanationOf(explanation, nowMs),
    ...optionalMember('preservedUntil', status?.currentStatus?.preserveExpiryTime),
    ...optionalMember('node', metadata.labels?.[NODE_LABEL]),
    ...optionalMember('providerID', spec?.providerID),
    children: [],
  };
}

function identityOf({ metadata: { name, namespace = '', creationTimestamp } }: KubeObject): {
  name: string;
  namespace: string;
  created?: string;
} {
  return { name, namespace, ...optionalMember('created', creationTimestamp) };
}

/** What a MachineDeployment says of a cluster that does not answer. */
function outageOf({ status }: MachineDeployment): string | undefined {
  const condition = conditionOf(status?.conditions, 'APIServerUnreachable');
  return condition?.status === 'True' ? condition.message : undefined;
}

function groupByOwner<T extends KubeObject>(objects: readonly T[]): ReadonlyMap<string, readonly T[]> {
  return Map.groupBy(objects, (object) => controllerOf(object)?.uid ?? '');
}

function byName<T extends KubeObject>(objects: readonly T[] = []): T[] {
  return objects.toSorted(
    ({ metadata: a }, { metadata: b }) =>
      COLLATOR.compare(a.namespace ?? '', b.namespace ?? '') || COLLATOR.compare(a.name, b.name),
  );
}

function newestFirst(sets: readonly MachineSet[] = []): MachineSet[] {
  const revision = ({ metadata }: MachineSet): number => Number(metadata.annotations?.[REVISION_ANNOTATION] ?? 0);
  return byName(sets).toSorted((a, b) => revision(b) - revision(a));
}
