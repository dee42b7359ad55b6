import { NODE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { fromTimestamp } from '../../clock/clock.ts';
import type { ApiError } from '../../kube/errors.ts';
import type { MachineContext } from './context.ts';
import { isRefused, reasonFor } from '../machines/node-refusal.ts';
import { PassNotes } from './pass.ts';
import { copyOf, isBeingCreated, phaseOf, restartPhase, setFailure, type MachineCopy } from '../machines/status.ts';
import { RECORD_REFUSED } from '../machines/status-texts.ts';

/** Whether a pass was to record which VM or Node a machine has. */
export function recordsIdentity(before: Machine, after: Machine): boolean {
  return after.spec.providerID !== before.spec?.providerID || nodeOf(after) !== nodeOf(before);
}

/** What is written instead of a pass whose record was refused. */
export interface Instead {
  readonly ctx: MachineContext;
  /** Whether the pass has failed all the same, and is repeated. */
  readonly failed: boolean;
}

/**
 * What is left of a pass when the API server refuses to record which VM a machine has (a Node name that no label can hold, a webhook):
 * a new machine says so and waits, up to its creation timeout; a deletion goes on without, and the driver looks for the VM by name.
 * Undefined when it was about something else.
 */
export function withoutRecord(ctx: MachineContext, err: ApiError): Instead | undefined {
  const { observed, machine, memory } = ctx;
  if (!recordsIdentity(observed, machine)) return undefined;
  // A server that fails once works the next time; a webhook that does not work fails again.
  if (!isRefused(err) && memory.isNews(observed.metadata.uid, 'recording failed')) return undefined;
  if (isBeingDeleted(observed)) return { ctx: { ...ctx, machine: asRecorded(machine, observed) }, failed: false };
  if (!isBeingCreated(observed)) return undefined;
  const pass = new PassNotes();
  const description = describe(machine, err);
  if (observed.status?.lastOperation?.description !== description) pass.event('RecordRefused', description);
  return { ctx: { ...ctx, machine: told(ctx, description), pass }, failed: true };
}

/** Since when (ms since the epoch) the API server has refused to record the VM of a new machine; undefined when it does not. */
export function refusedSinceMs(machine: Pick<Machine, 'status'>): number | undefined {
  const { description = '' } = machine.status?.lastOperation ?? {};
  if (phaseOf(machine) !== 'CrashLoopBackOff' || !description.startsWith(RECORD_REFUSED)) return undefined;
  return fromTimestamp(machine.status?.currentStatus?.lastUpdateTime);
}

/** The VM has the whole creation timeout from the first refusal on. */
function told({ observed, clock }: MachineContext, description: string): MachineCopy {
  const copy = copyOf(observed);
  if (refusedSinceMs(observed) === undefined) restartPhase(copy, 'CrashLoopBackOff', clock.now());
  setFailure(copy, { type: 'Create', state: 'Failed', description }, clock.now());
  return copy;
}

function describe(machine: Machine, err: ApiError): string {
  const { providerID = '' } = machine.spec;
  return `${RECORD_REFUSED}VM ${providerID} with Node name ${nodeOf(machine)}: ${reasonFor(err, machine.metadata.name)}`;
}

function asRecorded(machine: MachineCopy, { metadata, spec }: Machine): MachineCopy {
  const { [NODE_LABEL]: _refused, ...labels } = machine.metadata.labels ?? {};
  const { providerID: _unrecorded, ...rest } = machine.spec;
  const node = metadata.labels?.[NODE_LABEL];
  const providerID = spec?.providerID;
  return {
    ...machine,
    metadata: { ...machine.metadata, labels: { ...labels, ...(node !== undefined && { [NODE_LABEL]: node }) } },
    spec: { ...rest, ...(providerID !== undefined && { providerID }) },
  };
}

function nodeOf({ metadata }: Machine): string {
  return metadata.labels?.[NODE_LABEL] ?? '';
}
