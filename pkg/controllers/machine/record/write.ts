import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, refOf } from '../../../apis/meta.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import { concernedClusters } from '../../../driver/concerned-clusters.ts';
import type { Writer } from '../../../kube/client/client.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import {
  CREATION_SENT_ANNOTATION,
  DRAIN_SINCE_ANNOTATION,
  DELETION_POLICY_IN_FORCE_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  FORCED_DELETION_SINCE_ANNOTATION,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MACHINE_FINALIZER,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  NODE_LABEL,
  NODE_SYNC_REFUSED_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  VM_CLASS_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import {
  mergePatch,
  mergePatchIfUnchanged,
  statusPatch,
  type MergePatch,
  type Patch,
} from '../../../kube/client/patch.ts';
import { machines } from '../../../kube/client/resource.ts';
import { type FieldPath, patchOf, changedFields } from '../../../work/reconcile/object-pass/owned-fields.ts';
import { writeRecord } from '../../../work/reconcile/object-pass/record.ts';
import { machineStatusChange } from '../../machine-facts/status-change.ts';
import type { MachineEventSink } from '../../machine-facts/events.ts';
import { isUninitialized } from '../../machine-facts/joining.ts';
import { isWorthReporting, refusedFor } from '../../machine-facts/node-refusal.ts';
import {
  hidesVanishedVM,
  machineConditions,
  recordedRefusalOf,
  refusalShownBy,
  showsMaintenanceOf,
} from '../explain/conditions.ts';
import type { MachineContext } from '../context.ts';
import type { RefusedRecords } from './refused-record.ts';

const RECORD = { resource: machines, finalizer: MACHINE_FINALIZER };

const FINALIZERS = ['metadata', 'finalizers'];

const annotation = (key: string): FieldPath => ['metadata', 'annotations', key];

/** What users ask for may change at any moment: only what was seen is taken away. */
const REQUESTS = [PRESERVE_ANNOTATION, DELETION_PREPARATION_SINCE_ANNOTATION].map(annotation);

/** Fields that are written only to the version that they follow from. */
const STRICT_FIELDS: ReadonlySet<FieldPath> = new Set([FINALIZERS, ...REQUESTS]);

const OWNED_FIELDS: readonly FieldPath[] = [
  ['metadata', 'labels', NODE_LABEL],
  ...[
    PRIORITY_ANNOTATION,
    CREATION_SENT_ANNOTATION,
    DRAIN_SINCE_ANNOTATION,
    DELETION_POLICY_IN_FORCE_ANNOTATION,
    FORCED_DELETION_SINCE_ANNOTATION,
    MAINTENANCE_NODE_ANNOTATION,
    MAINTENANCE_SINCE_ANNOTATION,
    NODE_SYNC_REFUSED_ANNOTATION,
    LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
    VM_CLASS_ANNOTATION,
  ].map(annotation),
  ...REQUESTS,
  FINALIZERS,
  ['spec', 'providerID'],
];

interface Deps {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly recorder: MachineEventSink;
  readonly refused: RefusedRecords;
}

/** The end of a pass: at most one patch of the Machine and one of its status, each only when something changed; then its Events. */
export async function writePass(deps: Deps, pass: MachineContext): Promise<void> {
  const { writer, refused } = deps;
  const ctx = beginsToInitialize(pass) ? await withStatusFirst(deps, pass) : pass;
  if (ctx === undefined) return await writeReportedStatus(deps, pass, undefined, undefined);
  let base: Machine | undefined;
  try {
    const { observed, machine, signal } = ctx;
    const patch = recordPatch(observed, machine, hasNews(observed, machine, undefined));
    base = await writeRecord(writer, RECORD, { observed, after: machine, patch }, signal);
  } catch (err) {
    const instead = isWorthReporting(err) ? refused.withoutRecord(ctx, err) : undefined;
    if (instead === undefined) throw err;
    await writeReportedStatus(deps, instead.ctx, ctx.observed, instead.refusal);
    if (instead.failed) throw err;
    return;
  }
  await writeReportedStatus(deps, ctx, base, refused.leftAfter(ctx));
}

/**
 * Whether a pass records a VM, and that it is to be initialized. That comes first: a process that died between the two would leave a Machine that
 * runs as soon as its Node is healthy, with a VM that nothing initializes.
 */
function beginsToInitialize({ observed, machine }: MachineContext): boolean {
  const isRecorded = providerIDOf(machine) !== providerIDOf(observed);
  return isRecorded && isUninitialized(machine) && !isUninitialized(observed);
}

/** What is left of a pass after its status was written; undefined when the Machine is gone. */
async function withStatusFirst(deps: Deps, ctx: MachineContext): Promise<MachineContext | undefined> {
  const observed = await reportedStatus(deps, ctx, ctx.observed, undefined);
  return observed === undefined ? undefined : { ...ctx, observed };
}

async function writeReportedStatus(
  deps: Deps,
  ctx: MachineContext,
  base: Machine | undefined,
  refusal: string | undefined,
): Promise<void> {
  if (base !== undefined) await reportedStatus(deps, ctx, base, refusal);
  ctx.pass.complete((event) => deps.recorder.event({ ...event, object: ctx.machine }));
}

/** Writes the status as writeStatus does, and tells when the API server refuses it. */
async function reportedStatus(
  deps: Deps,
  ctx: MachineContext,
  base: Machine,
  refusal: string | undefined,
): Promise<Machine | undefined> {
  const { refused, recorder } = deps;
  try {
    return await writeStatus(deps, ctx, base, refusal);
  } catch (err) {
    const event = isWorthReporting(err) ? refused.refusedStatus(ctx, err) : undefined;
    if (event !== undefined) recorder.event(event);
    throw err;
  }
}

/**
 * Writes what a pass has changed in the status. The story told by conditions goes along when the status is written anyway, or when
 * what the API server refuses to record has changed, or the VM has vanished. Resolves with the Machine as it is then; undefined when it is gone.
 * Throws ApiError and GateClosedError.
 */
async function writeStatus(
  { writer, clock }: Pick<Deps, 'writer' | 'clock'>,
  { observed, machine, pass, signal, nodes }: MachineContext,
  base: Machine,
  refusal: string | undefined,
): Promise<Machine | undefined> {
  if (hasNews(observed, machine, refusal)) {
    machine.status.machineConditions = machineConditions(machine, clock.now(), refusal);
  }
  const status = machineStatusChange(observed, machine);
  if (status === undefined) return base;
  const clusters = pass.intent === 'destroy' ? concernedClusters(observed, nodes?.cluster) : [];
  return await writer
    .patch(pass.intent, machines, refOf(observed), statusPatch(base, status), { signal, clusters })
    .catch(ignoreNotFound);
}

/** Whether there is something to tell in the status. */
function hasNews(before: Machine, after: Machine, refusal: string | undefined): boolean {
  if (machineStatusChange(before, after) !== undefined || refusedFor(before) !== refusedFor(after)) return true;
  if (!showsMaintenanceOf(before, after)) return true;
  if (hidesVanishedVM(before, after)) return true;
  return refusalShownBy(before) !== (refusal ?? recordedRefusalOf(after));
}

/**
 * The patch of what a pass changed outside of the status; undefined when nothing did. Fails (409) on a Machine that has changed since it was
 * read when the finalizers changed, or when `strict`.
 */
export function recordPatch(before: Machine, after: Machine, strict: boolean): Patch | undefined {
  const changed = changedFields(before, after, OWNED_FIELDS);
  if (changed.length === 0) return undefined;
  const change = patchOf<Machine>(after, changed);
  if (endsFieldTracking(before, change)) change.metadata = { ...change.metadata, managedFields: [{}] };
  return strict || changed.some((field) => STRICT_FIELDS.has(field))
    ? mergePatchIfUnchanged(before, change)
    : mergePatch(before, change);
}

/**
 * Whether this patch asks the API server to keep no `managedFields` of the Machine any more: one empty entry clears them, and an object
 * without any gets them again only by a server-side apply (Kubernetes documentation, "Server-Side Apply", "Clearing managedFields").
 * Keeping them is half of what every later patch costs the server. Asked once, when the VM of a Machine of a MachineSet is recorded: hardly
 * anybody applies such Machines, and what is applied later is not cleared again.
 */
function endsFieldTracking(before: Machine, { spec }: MergePatch<Machine>): boolean {
  return typeof spec?.providerID === 'string' && controllerOf(before)?.kind === 'MachineSet';
}

/** What a pass changed outside of the status, by name. */
export function changesOf(before: Machine, after: Machine): readonly string[] {
  return changedFields(before, after, OWNED_FIELDS).map(nameOfField);
}

function nameOfField([root = '', member = '', key = '']: FieldPath): string {
  switch (member) {
    case 'labels':
      return `label ${key}`;
    case 'annotations':
      return `annotation ${key}`;
    case 'finalizers':
      return `finalizer ${MACHINE_FINALIZER}`;
    default:
      return `field ${root}.${member}`;
  }
}
