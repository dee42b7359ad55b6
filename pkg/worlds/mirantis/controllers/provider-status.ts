import { nodeNameOf, phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import {
  PROVIDER_API_VERSION,
  type ClusterMachine,
  type ProviderCondition,
  type ProviderStatus,
  type ProviderState,
} from '../api/machine.ts';
import { quantityAsNumber } from '../../../apis/quantity.ts';
import type { Node } from '../../../apis/wire.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { policySettingOf } from '../../../controllers/machine-facts/deletion-policy.ts';
import { maintenanceOf } from '../../../controllers/machine-facts/maintenance.ts';
import { refusedFor } from '../../../controllers/machine-facts/node-refusal.ts';
import {
  isPreparationRequested,
  preparationPhaseOf,
  preparationShownBy,
  type PreparationReason,
} from '../../../controllers/machine-facts/prepared-deletion.ts';
import { VM_STATE } from '../../../controllers/machine-facts/vm-states.ts';
import { listed } from './listed.ts';
import type { Problem } from './field-reader.ts';
import { readProviderValue } from './provider-value.ts';

export interface ProviderFacts {
  readonly machine: ClusterMachine;
  /** Our Machine; undefined: there is none. */
  readonly ours: Machine | undefined;
  readonly node: Node | undefined;
  /** What keeps us from doing what is asked for. */
  readonly problems: readonly Problem[];
  readonly upgradeIndex: number | undefined;
}

const KIND = 'OpenstackMachineProviderStatus';
const GIB = 2 ** 30;
/** Conditions that are ours; others are kept as they stand. */
const OWN_CONDITIONS: ReadonlySet<string> = new Set(['Kubelet', 'LCM', 'Maintenance', 'Deletion']);
/** What maintenance may say that somebody has to look at. */
const WRONG_MAINTENANCE: ReadonlySet<string> = new Set(['InvalidValue', 'DrainFailed', 'UncordonFailed']);

/** The members that are ours of the status; one that is undefined is to be removed. */
export function providerStatusOf(known: ProviderFacts): {
  [Member in keyof ProviderStatus]-?: ProviderStatus[Member] | undefined;
} {
  const { machine, ours, node, upgradeIndex } = known;
  const others = listed(machine.status?.providerStatus?.conditions).filter(({ type }) => !OWN_CONDITIONS.has(type));
  const providerID = ours === undefined ? '' : providerIDOf(ours);
  const phase = ours === undefined ? '' : phaseOf(ours);
  const prepared = ours === undefined ? undefined : preparationPhaseOf(preparationShownBy(ours)?.reason);
  const isGoing = ours?.metadata.deletionTimestamp !== undefined;
  return {
    apiVersion: PROVIDER_API_VERSION,
    kind: KIND,
    conditions: [kubelet(ours), lcm(known), ...maintenance(ours), ...deletion(ours), ...others],
    providerInstanceState:
      ours === undefined || providerID === '' ? undefined : instanceStateOf(ours, providerID, phase),
    hardware: hardwareOf(node?.status?.capacity) ?? hardwareOf(ours?.status?.vmCapacity),
    privateIp: ipAddressOf(known, 'InternalIP'),
    maintenance: isInMaintenance(ours),
    upgradeIndex,
    status: providerStateOf(known),
    delete: isGoing || (prepared !== undefined && prepared !== 'aborting'),
    prepareDeletionPhase: isGoing && prepared !== undefined ? 'completed' : prepared,
  };
}

function instanceStateOf(
  { status }: Machine,
  providerID: string,
  phase: string,
): NonNullable<ProviderStatus['providerInstanceState']> {
  const state = conditionOf(status?.machineConditions, VM_STATE)?.reason;
  const id = providerID.slice(providerID.lastIndexOf('/') + 1);
  return { id, ready: phase === 'Running' || phase === 'Available', ...(state === undefined ? {} : { state }) };
}

/** An IPv4 address of the machine, as its Node says, or the driver where there are no Nodes. */
export function ipAddressOf(
  { node, ours }: Pick<ProviderFacts, 'node' | 'ours'>,
  type: 'InternalIP' | 'ExternalIP',
): string | undefined {
  const addresses = [...(node?.status?.addresses ?? []), ...(ours?.status?.addresses ?? [])];
  return addresses.find((one) => one.type === type && one.address.includes('.'))?.address;
}

/** The state in one word, as the documentation of the product has them, as far as there is anything that they could be taken from. */
export function providerStateOf(facts: Pick<ProviderFacts, 'machine' | 'ours' | 'node'>): ProviderState {
  const { machine, ours, node } = facts;
  if (ours === undefined) return 'Provision';
  if (isInMaintenance(ours)) return 'Maintenance';
  switch (phaseOf(ours)) {
    case '':
    case 'CrashLoopBackOff':
      return 'Provision';
    case 'Available':
    case 'Running':
      return 'Ready';
    case 'Pending':
      return pendingState(ours, node);
    case 'InPlaceUpdating':
    case 'InPlaceUpdateSuccessful':
    case 'InPlaceUpdateFailed':
      return 'Deploy';
    case 'Unknown':
    case 'Failed':
    case 'Terminating':
      // A machine that is broken, or goes, has no word of its own: it keeps the one that it had.
      return keptState(machine, ours);
  }
}

function pendingState(ours: Machine, node: Node | undefined): ProviderState {
  if (node !== undefined || (ours.status?.conditions ?? []).length > 0) return 'Deploy';
  return nodeNameOf(ours) === '' && (ours.status?.addresses ?? []).length === 0 ? 'Uninitialized' : 'Pending';
}

function keptState({ status }: ClusterMachine, ours: Machine): ProviderState {
  const word = status?.providerStatus?.status;
  if (word !== undefined && word !== 'Maintenance') return word;
  return providerIDOf(ours) === '' ? 'Provision' : 'Ready';
}

function isInMaintenance(ours: Machine | undefined): boolean {
  return ours !== undefined && maintenanceOf(ours)?.status === 'True';
}

/** Types of the conditions that somebody has to look at. */
export function wrongConditions({ machine, ours, problems }: ProviderFacts): ReadonlySet<string> {
  const isFailed = ours?.status?.lastOperation?.state === 'Failed' || (ours && refusedFor(ours)) !== undefined;
  const wasReady = listed(machine.status?.providerStatus?.conditions).some(
    ({ type, ready }) => type === 'Kubelet' && ready,
  );
  const hasFailedDeletion = (ours && preparationShownBy(ours))?.reason === 'failed';
  return new Set([
    ...(problems.length > 0 || isFailed || hasFailedDeletion ? ['LCM'] : []),
    ...(wasReady && !kubelet(ours).ready ? ['Kubelet'] : []),
    ...(ours !== undefined && WRONG_MAINTENANCE.has(maintenanceOf(ours)?.reason ?? '') ? ['Maintenance'] : []),
    ...(hasFailedDeletion ? ['Deletion'] : []),
  ]);
}

/** How far a maintenance is; nothing when there is none. */
function maintenance(ours: Machine | undefined): readonly ProviderCondition[] {
  const told = ours && maintenanceOf(ours);
  if (told === undefined || told.reason === 'NotInMaintenance') return [];
  return [{ type: 'Maintenance', ready: told.status === 'True', message: `${told.reason}: ${told.message}` }];
}

/** How far the preparation of a deletion is; nothing when there is none. */
function deletion(ours: Machine | undefined): readonly ProviderCondition[] {
  const told = ours && preparationShownBy(ours);
  if (ours === undefined || told === undefined) return [];
  const why = told.message === undefined || told.message === '' ? '' : `: ${told.message}`;
  const said = `${preparationPhaseOf(told.reason) ?? ''}${why}`;
  const ways = waysOut(ours, told.reason);
  const message = ways === '' || said.endsWith('.') ? `${said}${ways}` : `${said}.${ways}`;
  return [{ type: 'Deletion', ready: told.status === 'True', message }];
}

/** Reasons of a preparation that has not ended, and of which something can be said. */
const WITH_WAYS_OUT: ReadonlySet<string | undefined> = new Set<PreparationReason>(['started', 'blocked', 'failed']);

/** What its user can do about a preparation that has not ended. */
function waysOut(ours: Machine, reason: string | undefined): string {
  if (isBeingDeleted(ours) || !isPreparationRequested(ours) || !WITH_WAYS_OUT.has(reason)) return '';
  const keep = ' To keep the machine, set spec.providerSpec.value.delete to false.';
  if (reason === 'started') return keep;
  return `${keep} To delete it without waiting for the drain, set ${policySettingOf(ours)} to unsafe or forced.`;
}

function kubelet(ours: Machine | undefined): ProviderCondition {
  const ready = conditionOf(ours?.status?.conditions, 'Ready');
  if (ready === undefined) return { type: 'Kubelet', ready: false, message: 'There is no Node yet' };
  const why = ready.status === 'True' || !ready.message ? '' : `: ${ready.message}`;
  return {
    type: 'Kubelet',
    ready: ready.status === 'True',
    message: `Kubelet's NodeReady condition is ${ready.status}${why}`,
  };
}

function lcm({ ours, problems }: ProviderFacts): ProviderCondition {
  const told = (ready: boolean, message: string): ProviderCondition => ({ type: 'LCM', ready, message });
  if (problems.length > 0) return told(false, problems.join('; '));
  const prepared = ours && preparationShownBy(ours);
  if (prepared?.reason === 'failed') return told(false, prepared.message ?? 'The deletion could not be prepared');
  const refused = ours && refusedFor(ours);
  if (refused !== undefined) return told(false, refused);
  const operation = ours?.status?.lastOperation;
  if (operation === undefined) return told(false, 'The machine is about to be created');
  const { state = '', type = '', description = '', errorCode } = operation;
  const code = errorCode === undefined || errorCode === '' ? '' : ` (${errorCode})`;
  return told(state === 'Successful', `${type} ${state}: ${description}${code}`);
}

/** Of the Node, or what the driver told of the VM until there is one. */
function hardwareOf(capacity: Readonly<Record<string, string>> | undefined): ProviderStatus['hardware'] {
  const { cpu, memory } = capacity ?? {};
  const [cores, bytes] = [quantityAsNumber(cpu ?? ''), quantityAsNumber(memory ?? '')];
  // A kernel keeps some of the memory of the flavor for itself.
  return cores === undefined || bytes === undefined
    ? undefined
    : { cpu: Math.floor(cores), ram: Math.ceil(bytes / GIB) };
}

/**
 * The place in upgrades that is shown of each Machine of a Cluster, by name: the given one, else one after the largest that was given, by
 * age.
 */
export function shownUpgradeIndexes(machines: readonly ClusterMachine[]): ReadonlyMap<string, number> {
  const given = machines.map((machine) => ({ machine, index: readProviderValue(machine).value?.upgradeIndex }));
  const largest = Math.max(0, ...given.map(({ index }) => index ?? 0));
  const byAge = given
    .filter(({ index }) => index === undefined)
    .map(({ machine }) => machine.metadata)
    .toSorted((a, b) => compare(a.creationTimestamp, b.creationTimestamp) || compare(a.name, b.name));
  return new Map([
    ...given.flatMap(({ machine, index }) => (index === undefined ? [] : [[machine.metadata.name, index] as const])),
    ...byAge.map(({ name }, i) => [name, largest + i + 1] as const),
  ]);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
