import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { equalTemplate } from '../../apis/machine/v1alpha1/template-equality.ts';
import { controllerOf, keyBeside } from '../../apis/meta.ts';
import { rolloutLimitsOf } from '../replicas/limits.ts';
import { CONTROLLER_INDEX } from '../../operator/indexes/owner-index.ts';
import { isStopped } from '../replicas/creation-brake.ts';
import { isTerminating } from '../replicas/machine-state.ts';
import type { MachineSetDeps } from './step.ts';

/**
 * How many Machines a set of a MachineDeployment may create now, by those of all its sets. Never so many that more than replicas plus surge
 * live, or more than replicas where no other set has any. In a rollout those that are still going count too, because they may hold the quota
 * that the rollout was given; but a Machine that is replaced does not wait for others that are going, which a drain may hold up for hours.
 */
export function creationRoom(facts: RoomFacts): number {
  const { allowed, existing, underway, replaced, isRollout } = facts;
  const fill = fillOf(facts);
  const growth = isRollout ? allowed - existing - underway : fill;
  return Math.max(0, Math.min(fill, Math.max(growth, replaced)));
}

interface RoomFacts {
  /** How many there may be: replicas, plus surge in a rollout. */
  readonly allowed: number;
  /** How many are not on their way out. */
  readonly living: number;
  /** How many there are, those on their way out included. */
  readonly existing: number;
  /** How many other sets have asked for and no cache shows yet. */
  readonly underway: number;
  /** How many of the set's own are going and leave it below a size that it had: they are replaced. */
  readonly replaced: number;
  /** Another set has Machines too. */
  readonly isRollout: boolean;
}

/** How many more may live, whatever is going. */
function fillOf({ allowed, living, underway }: Pick<RoomFacts, 'allowed' | 'living' | 'underway'>): number {
  return allowed - living - underway;
}

/** How many Machines of a set of `size` are going and have to be replaced; those that it shrank by are not. */
export function replacedAmong(size: number, machines: readonly Machine[]): number {
  const living = machines.filter((machine) => !isTerminating(machine)).length;
  return Math.max(0, Math.min(size, machines.length) - living);
}

/**
 * How many Machines `set` may create now: what `creationRoom` says, as the caches show it, of the sets of its MachineDeployment, and
 * what the brake leaves. A set that no MachineDeployment controls is bounded by the brake alone.
 */
export function roomFor(
  deps: Pick<MachineSetDeps, 'machines' | 'machineSets' | 'machineDeployments' | 'expectations' | 'brake'>,
  set: MachineSet,
): number {
  const deployment = deploymentOfSet(deps, set);
  const { uid } = (deployment ?? set).metadata;
  const replicas = replicasOf(deployment ?? set);
  const surge = deployment === undefined ? 0 : rolloutLimitsOf(deployment.spec).surge;
  deps.brake.observe(uid, replicas, replicas + surge);
  const left = isStopped(deployment?.status?.conditions) ? 0 : deps.brake.room(uid);
  return Math.min(left, deployment === undefined ? Infinity : creationRoom(roomFacts(deps, set, deployment)));
}

/** Whether as many Machines live as there may be: what `set` lacks has no room for as long as they do, and waiting for what goes brings none. */
export function isCrowded(
  deps: Pick<MachineSetDeps, 'machines' | 'machineSets' | 'machineDeployments' | 'expectations'>,
  set: MachineSet,
): boolean {
  const deployment = deploymentOfSet(deps, set);
  return deployment !== undefined && fillOf(roomFacts(deps, set, deployment)) <= 0;
}

/** By whom the creations of `set` are counted: its MachineDeployment, or itself. */
export function brakedOwner(deps: Pick<MachineSetDeps, 'machineDeployments'>, set: MachineSet): string {
  return (deploymentOfSet(deps, set) ?? set).metadata.uid;
}

function roomFacts(
  deps: Pick<MachineSetDeps, 'machines' | 'machineSets' | 'expectations'>,
  set: MachineSet,
  deployment: MachineDeployment,
): RoomFacts {
  const crowds = deps.machineSets
    .byIndex(CONTROLLER_INDEX, deployment.metadata.uid)
    .map((sibling) => ({ sibling, machines: deps.machines.byIndex(CONTROLLER_INDEX, sibling.metadata.uid) }));
  const others = crowds.filter(({ sibling }) => sibling.metadata.uid !== set.metadata.uid);
  const all = crowds.flatMap(({ machines }) => machines);
  const { replicas, surge } = rolloutLimitsOf(deployment.spec);
  const isRollout = others.some(({ machines }) => machines.length > 0);
  const isUnseen = (name: string): boolean => deps.machines.get(keyBeside(set, name)) === undefined;
  const underway = others
    .flatMap(({ sibling }) => deps.expectations.names(sibling.metadata.uid))
    .filter(isUnseen).length;
  return {
    // The surge is for Machines beside those of another set. A set that is alone has a use for it only by a size that is not asked for any
    // more: its MachineDeployment was set back to a backup.
    allowed: isRollout || underway > 0 ? replicas + surge : replicas,
    living: all.filter((machine) => !isTerminating(machine)).length,
    existing: all.length,
    underway,
    replaced: replacedAmong(replicasOf(set), deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid)),
    isRollout,
  };
}

/** Whether the MachineDeployment of `set` is replacing Machines: what one of its sets gives up then is not wanted again. */
export function isRolling(
  deps: Pick<MachineSetDeps, 'machines' | 'machineSets' | 'machineDeployments'>,
  set: MachineSet,
): boolean {
  const deployment = deploymentOfSet(deps, set);
  if (deployment === undefined) return false;
  return (
    hasOutdatedTemplate(deps, set) ||
    deps.machineSets
      .byIndex(CONTROLLER_INDEX, deployment.metadata.uid)
      .some(
        ({ metadata: { uid } }) => uid !== set.metadata.uid && deps.machines.byIndex(CONTROLLER_INDEX, uid).length > 0,
      )
  );
}

/** Whether `set` has another template than its MachineDeployment: its Machines are replaced, or will be. */
export function hasOutdatedTemplate(deps: Pick<MachineSetDeps, 'machineDeployments'>, set: MachineSet): boolean {
  const deployment = deploymentOfSet(deps, set);
  return deployment !== undefined && !equalTemplate(set.spec.template, deployment.spec.template);
}

/** The MachineDeployment that controls `set`, if the cache shows it. */
export function deploymentOfSet(
  { machineDeployments }: Pick<MachineSetDeps, 'machineDeployments'>,
  set: MachineSet,
): MachineDeployment | undefined {
  const owner = controllerOf(set);
  if (owner?.kind !== 'MachineDeployment') return undefined;
  const key = keyBeside(set, owner.name);
  const deployment = machineDeployments.get(key);
  return deployment?.metadata.uid === owner.uid ? deployment : undefined;
}
