import {
  networkInterfaceNameOf,
  volumeNameOf,
  type AttachmentStatus,
  type IronCoreMachine,
  type IronCoreMachineStatus,
} from '../../api/machine.ts';
import { capital } from '../../../../apis/capital.ts';
import type { IronCoreCondition } from '../../api/reference.ts';
import { toTimestamp } from '../../../../base/clock/clock.ts';
import { MachineState, VolumeState } from '../../runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { dated } from '../../../../work/reconcile/conditions.ts';
import type { Wait } from './decision.ts';
import { MACHINE_GENERATION, RUNTIME_GENERATION } from './keys.ts';

/** States of machines at a runtime, as a Machine shows them. One that is switched off is shut down, too. */
const STATES: Readonly<Record<MachineState, string>> = {
  [MachineState.MACHINE_PENDING]: 'Pending',
  [MachineState.MACHINE_RUNNING]: 'Running',
  [MachineState.MACHINE_SUSPENDED]: 'Shutdown',
  [MachineState.MACHINE_TERMINATED]: 'Terminated',
  [MachineState.MACHINE_TERMINATING]: 'Terminating',
  [MachineState.MACHINE_STOPPED]: 'Shutdown',
};

const WORDS: ReadonlySet<string> = new Set(Object.values(STATES));

/** A state in words; undefined: IRI did not have it when this was written. */
export function runtimeStateName(state: number): string | undefined {
  return STATES[state as MachineState]; // Any number can come from the wire.
}

/** What a Machine says of itself, besides what others write. */
export interface MachineStatusFacts {
  readonly machine: IronCoreMachine;
  /** Undefined: there is none, or its status is about an earlier spec. */
  readonly seen: RuntimeMachine | undefined;
  /** `<runtime>://<id>`; undefined: none is known. */
  readonly machineID: string | undefined;
  readonly waits: readonly Wait[];
  /** What else keeps it, in place of what is waited for. Without a status it is not ready for it. */
  readonly problem: MachineProblem | undefined;
}

/** Why a Machine is not as it should be, and whether it is ready all the same. */
export interface MachineProblem {
  readonly reason: string;
  readonly message: string;
  readonly status?: IronCoreCondition['status'];
}

/** The types of conditions that are written here; those of others are left alone. */
const OURS = ['Ready', 'VolumesReady', 'NetworkInterfacesReady'];

/** Whether the status of a machine at a runtime is about what was last asked of it. */
export function isUpToDate({ metadata, status }: RuntimeMachine): boolean {
  const needed = metadata.annotations[RUNTIME_GENERATION] ?? '0';
  return !/^\d+$/.test(needed) || status.observedGeneration >= BigInt(needed);
}

/** The status of a Machine. What it said before is kept where nothing newer is known. */
export function ironCoreStatusOf(
  { machine, seen, machineID, waits, problem }: MachineStatusFacts,
  nowMs: number,
): IronCoreMachineStatus {
  const before = machine.status ?? {};
  const now = toTimestamp(nowMs);
  const status: IronCoreMachineStatus = {
    ...before,
    ...(machineID !== undefined && { machineID }),
    ...(seen === undefined ? {} : shownBy(machine, seen, now)),
    ...(seen === undefined && before.state === undefined && { state: 'Pending' }),
  };
  const conditions = [
    readyCondition(status, seen, waits, problem),
    attachedCondition('VolumesReady', 'VolumeNotReady', 'volume', machine.spec.volumes, status.volumes, waits),
    attachedCondition(
      'NetworkInterfacesReady',
      'NetworkInterfaceNotReady',
      'network interface',
      machine.spec.networkInterfaces,
      status.networkInterfaces,
      waits,
    ),
  ];
  const known = before.conditions ?? [];
  const foreign = known.filter(({ type }) => !OURS.includes(type));
  return { ...status, conditions: [...foreign, ...conditions.map((one) => dated(one, known, nowMs))] };
}

function shownBy(machine: IronCoreMachine, { metadata, status }: RuntimeMachine, now: string): IronCoreMachineStatus {
  const { volumes = [], networkInterfaces = [] } = machine.spec;
  const before = machine.status ?? {};
  const generation = Number(metadata.annotations[MACHINE_GENERATION] ?? Number.NaN);
  const entries = new Map(volumes.map((entry) => [entry.name, entry]));
  const missing = volumes
    .filter(({ name }) => !status.volumes.some((one) => one.name === name))
    .map(({ name }) => ({ name, handle: '', state: 0 }));
  return {
    ...(Number.isSafeInteger(generation) && { observedGeneration: generation }),
    state: runtimeStateName(status.state) ?? lastKnown(before.state),
    volumes: [...status.volumes, ...missing].map((one) => {
      const entry = entries.get(one.name);
      const ref = entry && volumeNameOf(machine, entry);
      return { ...attachment(one, before.volumes, now), ...(ref !== undefined && { volumeRef: { name: ref } }) };
    }),
    networkInterfaces: networkInterfaces.map((entry) => {
      const one = status.networkInterfaces.find(({ name }) => name === entry.name);
      const told = one ?? { name: entry.name, handle: '', state: 0 };
      const ref = { name: networkInterfaceNameOf(machine, entry) };
      return { ...attachment(told, before.networkInterfaces, now), networkInterfaceRef: ref };
    }),
  };
}

/**
 * In place of a state that IRI did not have when this was written: a machinebroker which shows the Machine fails at every word that IronCore does
 * not have, for all Machines at once. As a machinepoollet does, the last one that is known stays; condition Ready says what the runtime has said.
 */
function lastKnown(before: string | undefined): string {
  return before !== undefined && WORDS.has(before) ? before : 'Pending';
}

/** Both kinds have the same numbers of states. One that IRI did not have when this was written is not known to be attached. */
function attachment(
  { name, handle, state }: { readonly name: string; readonly handle: string; readonly state: number },
  before: readonly AttachmentStatus[] = [],
  now: string,
): AttachmentStatus {
  const old = before.find((one) => one.name === name);
  const word = state === VolumeState.VOLUME_ATTACHED ? 'Attached' : 'Pending';
  const since = old?.state === word ? old.lastStateTransitionTime : now;
  return {
    name,
    state: word,
    ...(handle !== '' && { handle }),
    ...(since !== undefined && { lastStateTransitionTime: since }),
  };
}

type Plain = Pick<IronCoreCondition, 'type' | 'status' | 'reason' | 'message'>;

function readyCondition(
  { state }: IronCoreMachineStatus,
  seen: RuntimeMachine | undefined,
  waits: readonly Wait[],
  problem: MachineStatusFacts['problem'],
): Plain {
  const type = 'Ready';
  if (problem !== undefined) return { type, status: 'False', ...problem };
  const [first] = waits;
  if (seen === undefined && first !== undefined) {
    const message = waits.map((wait) => wait.message).join('; ');
    return { type, status: 'False', reason: first.reason, message };
  }
  if (seen === undefined) return { type, status: 'False', reason: 'Pending', message: 'Machine is pending' };
  if (runtimeStateName(seen.status.state) === undefined) {
    const message = `The runtime reports state ${seen.status.state}, which IRI v1alpha1 does not have: the runtime is of a newer version`;
    return { type, status: 'Unknown', reason: 'UnknownState', message };
  }
  switch (state) {
    case 'Running':
      return { type, status: 'True', reason: 'Running', message: 'Machine is running' };
    case 'Pending':
      return { type, status: 'False', reason: 'Pending', message: 'Machine is pending' };
    case 'Terminating':
    case 'Terminated':
      return { type, status: 'False', reason: 'Terminating', message: 'Machine is terminating or terminated' };
    default:
      return { type, status: 'False', reason: 'NotReady', message: 'Machine is not ready' };
  }
}

function attachedCondition(
  type: string,
  reason: string,
  what: string,
  entries: readonly { readonly name: string }[] = [],
  told: readonly AttachmentStatus[] = [],
  waits: readonly Wait[],
): Plain {
  const missing = waits.filter((wait) => wait.reason === reason);
  const message = missing.map((wait) => wait.message).join('; ');
  if (missing.length > 0) return { type, status: 'False', reason, message };
  for (const { name } of [...entries, ...told]) {
    const { state = 'Pending' } = told.find((one) => one.name === name) ?? {};
    if (state === 'Attached') continue;
    return { type, status: 'False', reason, message: `${capital(what)} ${name} is not attached (state: ${state})` };
  }
  return { type, status: 'True', reason: type, message: `All ${what}s are ready` };
}
