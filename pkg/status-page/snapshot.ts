import { replicasOf } from '../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../apis/meta.ts';
import { optionalMember } from '../apis/optional-member.ts';
import { shortText } from '../apis/short-text.ts';
import { workOfMachine } from '../fleet/machine-work.ts';
import { reasonOf, statusOf } from '../fleet/node-texts.ts';
import { rolloutOf } from '../fleet/rollout.ts';
import { type MachineToNode, treeOf, type TreeNode, type TreeObjects } from '../fleet/tree.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';
import type { FleetView, MachineView, RolloutView, Sections, SetView } from './view.ts';

export interface PageSnapshot {
  readonly sections: Sections;
  readonly machines: readonly MachineView[];
}

/** What is not read from objects. */
export type ProcessSections = Omit<Sections, 'fleets' | 'drains' | 'retries' | 'exhausted'>;

const NO_WORK: WorkInProgress = { activities: [], retries: [], exhausted: [], drains: [] };

/** What the page shows of these objects and of what is being done about them, as of `nowMs`; `nodeOf` as for treeOf. */
export function snapshotOf(
  objects: TreeObjects,
  work: WorkInProgress = NO_WORK,
  process: ProcessSections,
  nowMs: number,
  nodeOf?: MachineToNode,
): PageSnapshot {
  const roots = treeOf(objects, nowMs, undefined, nodeOf);
  const deployments = new Map(objects.deployments.map((one) => [keyOf(one), one]));
  const { retries, exhausted, drains } = work;
  const workOf = workByMachine(objects.machines, work);
  const fleets: FleetView[] = [];
  const machines: MachineView[] = [];
  const addMachines = (nodes: readonly TreeNode[], owners: Pick<MachineView, 'fleet' | 'set'>): void => {
    for (const node of nodes) machines.push(viewOf(node, owners, workOf(keyOfNode(node)), nowMs));
  };
  for (const root of roots) {
    if (root.kind === 'Machine') {
      addMachines([root], {});
      continue;
    }
    const fleet = keyOfNode(root);
    const sets = root.kind === 'MachineDeployment' ? root.children : [root];
    for (const set of sets) addMachines(set.children, { fleet, set: set.name });
    fleets.push(fleetView(root, sets, deployments.get(fleet)));
  }
  return {
    sections: {
      ...process,
      fleets,
      drains,
      retries: retries.map(({ message, ...rest }) => ({
        ...rest,
        ...optionalMember('message', message && shortText(message)),
      })),
      exhausted: exhausted.map((one) => ({ ...one, message: shortText(one.message) })),
    },
    machines,
  };
}

function fleetView(root: TreeNode, sets: readonly TreeNode[], deployment: MachineDeployment | undefined): FleetView {
  const { kind, name, namespace, replicas = { desired: 0, ready: 0 }, attention, troubles = [] } = root;
  const machines = sets.flatMap(({ children }) => children);
  return {
    key: keyOfNode(root),
    kind: kind === 'MachineDeployment' ? kind : 'MachineSet',
    namespace,
    name,
    ...replicas,
    ...optionalMember('revision', root.revision),
    attention,
    troubles: troubles.map(({ text, isProgress }) => ({ text: shortText(text), isProgress })),
    phases: countPhases(machines.map(statusOf)),
    inTrouble: machines.filter((machine) => machine.attention === 'attention').length,
    sets: kind === 'MachineDeployment' ? sets.map(setView) : [],
    ...(deployment !== undefined && { rollout: rolloutView(deployment) }),
    ...optionalMember('created', root.created),
  };
}

function setView({ name, revision, replicas = { desired: 0, ready: 0 }, attention, troubles = [] }: TreeNode): SetView {
  return {
    name,
    ...optionalMember('revision', revision),
    ...replicas,
    attention,
    troubles: troubles.map(({ text }) => shortText(text)),
  };
}

function rolloutView(deployment: MachineDeployment): RolloutView {
  const { updatedReplicas: updated = 0, availableReplicas: available = 0 } = deployment.status ?? {};
  const { state, text } = rolloutOf(deployment);
  return { state, text, updated, available, total: replicasOf(deployment) };
}

/** Of nodes about which nothing is being done. */
const VIEWS = new WeakMap<TreeNode, MachineView>();

/** A node that was shown before is shown by the same view, unless something is being done about it. */
function viewOf(
  node: TreeNode,
  owners: Pick<MachineView, 'fleet' | 'set'>,
  work: MachineView['work'],
  nowMs: number,
): MachineView {
  const known = work === undefined ? VIEWS.get(node) : undefined;
  if (known !== undefined && known.fleet === owners.fleet && known.set === owners.set) return known;
  const view = machineView(node, owners, work, nowMs);
  if (work === undefined) VIEWS.set(node, view);
  return view;
}

function machineView(
  node: TreeNode,
  { fleet, set }: Pick<MachineView, 'fleet' | 'set'>,
  work: MachineView['work'],
  nowMs: number,
): MachineView {
  const { namespace, name, attention, explanation, created, node: nodeName, providerID } = node;
  return {
    key: keyOfNode(node),
    namespace,
    name,
    ...optionalMember('fleet', fleet),
    ...optionalMember('set', set),
    phase: statusOf(node),
    attention,
    reason: reasonOf(node, nowMs),
    message: shortText(explanation?.message ?? '').replaceAll(/\s+/g, ' '),
    ...optionalMember('waitingFor', explanation?.waitingFor),
    ...optionalMember('since', explanation?.since),
    nextStep: explanation?.nextStep ?? '',
    ...optionalMember('created', created),
    ...optionalMember('node', nodeName),
    ...optionalMember('providerID', providerID),
    ...(work !== undefined && { work }),
  };
}

/** How many of these phases are of each kind. */
export function countPhases(phases: Iterable<string>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const phase of phases) counts[phase] = (counts[phase] ?? 0) + 1;
  return counts;
}

function workByMachine(
  machines: readonly Machine[],
  { activities, retries, exhausted, drains, deadlines = [] }: WorkInProgress,
): (key: string) => MachineView['work'] {
  if ([activities, retries, exhausted, drains, deadlines].every(({ length }) => length === 0)) return () => undefined;
  const byKey = new Map(machines.map((one) => [keyOf(one), one]));
  const [activitiesOf, retriesOf] = [grouped(activities), grouped(retries)];
  const [drainsOf, deadlinesOf] = [grouped(drains), grouped(deadlines)];
  return (key) => {
    const machine = byKey.get(key);
    const own = {
      activities: activitiesOf.get(key) ?? [],
      retries: retriesOf.get(key) ?? [],
      drains: drainsOf.get(key) ?? [],
      deadlines: deadlinesOf.get(key) ?? [],
      exhausted,
    };
    return machine && workOfMachine(machine, [own]);
  };
}

function grouped<T extends { readonly machine: string }>(items: readonly T[]): ReadonlyMap<string, readonly T[]> {
  return Map.groupBy(items, ({ machine }) => machine);
}

function keyOfNode({ namespace, name }: TreeNode): string {
  return `${namespace}/${name}`;
}
