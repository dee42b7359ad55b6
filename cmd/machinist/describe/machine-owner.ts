import { classNameOf, replicasOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import { machineDeployments, machines, machineSets } from '../../../pkg/kube/client/resource.ts';
import { optionalMember } from '../../../pkg/apis/optional-member.ts';
import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { treeOf, type TreeNode } from '../../../pkg/fleet/tree.ts';
import { renderTree } from '../tree/render.ts';
import { cellText, type DescribedCell, describedCell } from './described-cell.ts';
import {
  describedCondition,
  type DescribedCondition,
  type DescribedEvent,
  eventsOf,
} from '../../../pkg/fleet/describe/described.ts';
import { conditionLines, eventLines, fieldLines } from '../../../pkg/fleet/describe/layout.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';

/** What `machinist describe` tells of a MachineDeployment or a MachineSet; printed as it is with `-o json`. */
interface OwnerDescription {
  readonly name: string;
  readonly namespace: string;
  readonly owner?: string;
  readonly machineClass: string;
  readonly cell?: DescribedCell;
  readonly deletionTimestamp?: string;
  /** Of MachineDeployments. */
  readonly strategy?: string;
  readonly isPaused?: boolean;
  readonly replicas: {
    readonly desired: number;
    readonly current: number;
    readonly ready: number;
    readonly available: number;
    /** Of MachineDeployments: those with the current template. */
    readonly updated?: number;
  };
  /** The object with what belongs to it, as `machinist tree` shows it. */
  readonly tree: TreeNode;
  readonly conditions: readonly DescribedCondition[];
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

/** `all`: what the processes of the manager do. */
export function describedMachineDeployment(
  all: Promise<readonly WorkInProgress[]>,
): DescribedKind<MachineDeployment, OwnerDescription> {
  return {
    resource: machineDeployments,
    async describe(reader, deployment, told, nowMs) {
      const { name, namespace = '' } = deployment.metadata;
      const [sets, found] = await Promise.all([
        reader.list(machineSets, { namespace }),
        reader.list(machines, { namespace }),
      ]);
      const objects = { deployments: [deployment], sets: sets.items, machines: found.items };
      const { spec, status = {} } = deployment;
      return {
        ...common(deployment, told),
        ...describedCell(await all, namespace),
        ...optionalMember('strategy', spec.strategy?.type),
        isPaused: spec.paused === true,
        replicas: { ...countsOf(replicasOf(deployment), status), updated: status.updatedReplicas ?? 0 },
        tree: rootOf(treeOf(objects, nowMs(), new Set([name]))),
        conditions: (status.conditions ?? []).map(describedCondition),
      };
    },
    render,
  };
}

/** The same of a MachineSet. */
export function describedMachineSet(
  all: Promise<readonly WorkInProgress[]>,
): DescribedKind<MachineSet, OwnerDescription> {
  return {
    resource: machineSets,
    async describe(reader, set, told, nowMs) {
      const { uid, namespace = '' } = set.metadata;
      const found = await reader.list(machines, { namespace });
      const own = found.items.filter((machine) => controllerOf(machine)?.uid === uid);
      const { status = {} } = set;
      return {
        ...common(set, told),
        ...describedCell(await all, namespace),
        replicas: countsOf(replicasOf(set), status),
        tree: rootOf(treeOf({ deployments: [], sets: [set], machines: own }, nowMs())),
        conditions: (status.machineSetCondition ?? []).map(describedCondition),
      };
    },
    render,
  };
}

function common(
  object: MachineDeployment | MachineSet,
  told: readonly Event[],
): Pick<OwnerDescription, 'name' | 'namespace' | 'owner' | 'machineClass' | 'deletionTimestamp' | 'events'> {
  const { name, namespace = '', deletionTimestamp } = object.metadata;
  const owner = controllerOf(object);
  return {
    name,
    namespace,
    ...optionalMember('owner', owner && `${owner.kind}/${owner.name}`),
    machineClass: classNameOf({ spec: object.spec.template?.spec }),
    ...optionalMember('deletionTimestamp', deletionTimestamp),
    events: eventsOf(told),
  };
}

function countsOf(
  desired: number,
  { replicas: current = 0, readyReplicas: ready = 0, availableReplicas: available = 0 }: Counted,
): Required<Omit<OwnerDescription['replicas'], 'updated'>> {
  return { desired, current, ready, available };
}

interface Counted {
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
}

function rootOf([root]: readonly TreeNode[]): TreeNode {
  if (root === undefined) throw new Error('the tree has no root');
  return root;
}

function render(description: OwnerDescription, nowMs: number): string {
  const { name, namespace, owner, machineClass, cell, strategy, isPaused, deletionTimestamp, tree } = description;
  const { desired, current, updated, ready, available } = description.replicas;
  const counts = [
    `${desired} desired`,
    ...(updated === undefined ? [] : [`${updated} updated`]),
    `${current} total`,
    `${ready} ready`,
    `${available} available`,
  ];
  return [
    ...fieldLines([
      ['Name', name],
      ['Namespace', namespace],
      ['Owner', owner],
      ['Class', machineClass],
      ['Cell', cellText(cell)],
      ['Revision', tree.revision],
      ['Strategy', strategy],
      ['Paused', isPaused === true ? 'true' : undefined],
      ['Replicas', counts.join(' | ')],
      ['Deletion', deletionTimestamp],
    ]),
    '',
    ...renderTree([tree], nowMs, { columns: undefined, hasColour: false, allNamespaces: false }),
    '',
    ...conditionLines('Conditions', description.conditions, nowMs),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}
