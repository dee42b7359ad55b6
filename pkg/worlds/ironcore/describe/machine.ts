import type { AttachmentStatus, IronCoreMachine } from '../api/machine.ts';
import type { Event } from '../../../apis/wire.ts';
import { explainIronCoreMachine, type CachedPool } from '../controllers/explain.ts';
import { ironCoreMachinePools, ironCoreMachines } from '../api/resources.ts';
import { optionalMember } from '../../../apis/optional-member.ts';
import { ageOf } from '../../../fleet/age.ts';
import { explanationOf, type DescribedExplanation } from '../../../fleet/describe/described-explanation.ts';
import {
  describedCondition,
  eventsOf,
  type DescribedCondition,
  type DescribedEvent,
} from '../../../fleet/describe/described.ts';
import { readNamed } from '../../../fleet/describe/read-named.ts';
import {
  conditionLines,
  eventLines,
  explanationFields,
  fieldLines,
  tableLines,
} from '../../../fleet/describe/layout.ts';
import type { DescribedKind } from '../../../fleet/describe/described-kind.ts';

/** A volume or a network interface of a Machine of IronCore. */
export interface DescribedAttachment {
  readonly name: string;
  /** Empty where nobody has reported one. */
  readonly state: string;
  readonly handle?: string;
  readonly since?: string;
}

/** What `machinist describe ironcore-machine` tells; printed as it is with `-o json`. */
export interface IronCoreDescription extends DescribedExplanation {
  readonly name: string;
  readonly namespace: string;
  readonly state: string;
  readonly power: string;
  readonly deletionTimestamp?: string;
  readonly machineClass: string;
  readonly pool?: string;
  readonly machineID?: string;
  readonly volumes: readonly DescribedAttachment[];
  readonly networkInterfaces: readonly DescribedAttachment[];
  readonly conditions: readonly DescribedCondition[];
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

export const describedIronCoreMachine: DescribedKind<IronCoreMachine, IronCoreDescription> = {
  resource: ironCoreMachines,
  describe: async (reader, machine, told, nowMs) => {
    const pool = await readNamed(reader, ironCoreMachinePools, { name: machine.spec.machinePoolRef?.name ?? '' });
    return ironCoreDescription(machine, pool, told, nowMs());
  },
  render: renderIronCore,
};

/** Describes a Machine of IronCore with its pool and its Events, as they were read at `nowMs`. */
export function ironCoreDescription(
  machine: IronCoreMachine,
  pool: CachedPool,
  events: readonly Event[],
  nowMs: number,
): IronCoreDescription {
  const { metadata, spec, status = {} } = machine;
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    state: status.state ?? '',
    power: spec.power ?? 'On',
    ...explanationOf(explainIronCoreMachine(machine, pool, nowMs), nowMs),
    ...optionalMember('deletionTimestamp', metadata.deletionTimestamp),
    machineClass: spec.machineClassRef.name,
    ...optionalMember('pool', spec.machinePoolRef?.name),
    ...optionalMember('machineID', status.machineID),
    volumes: attachments(spec.volumes, status.volumes),
    networkInterfaces: attachments(spec.networkInterfaces, status.networkInterfaces),
    conditions: (status.conditions ?? []).map(describedCondition),
    events: eventsOf(events),
  };
}

/** Those that are wanted, and those that are still there. */
function attachments(
  wanted: readonly { readonly name: string }[] = [],
  reported: readonly AttachmentStatus[] = [],
): readonly DescribedAttachment[] {
  const names = new Set([...wanted, ...reported].map(({ name }) => name));
  return [...names].map((name) => {
    const { state = '', handle, lastStateTransitionTime } = reported.find((one) => one.name === name) ?? {};
    return { name, state, ...optionalMember('handle', handle), ...optionalMember('since', lastStateTransitionTime) };
  });
}

/** A description as text, in the layout of `kubectl describe`. Ages count to `nowMs`. */
export function renderIronCore(description: IronCoreDescription, nowMs: number): string {
  const { state } = description;
  return [
    ...fieldLines([
      ['Name', description.name],
      ['Namespace', description.namespace],
      ['Class', description.machineClass],
      ['Pool', description.pool ?? '<none>'],
      ['Machine ID', description.machineID],
      ['Power', description.power],
      ['State', state === '' ? '<none>' : state],
      ...explanationFields(description, nowMs),
      ['Deletion', description.deletionTimestamp],
    ]),
    ...attachmentLines('Volumes', description.volumes, nowMs),
    ...attachmentLines('Network Interfaces', description.networkInterfaces, nowMs),
    ...conditionLines('Conditions', description.conditions, nowMs),
    ...eventLines(description.events, nowMs),
  ].join('\n');
}

function attachmentLines(title: string, all: readonly DescribedAttachment[], nowMs: number): readonly string[] {
  const rows = all.map(({ name, state, since, handle = '' }) => [
    name,
    state === '' ? '<none>' : state,
    ageOf(since, nowMs),
    handle,
  ]);
  return tableLines(title, ['Name', 'State', 'Age', 'Handle'], rows);
}
