import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, isBeingDeleted, refOf, type ObjectMeta } from '../../../apis/meta.ts';
import type { Clock } from '../../../clock/clock.ts';
import { concernedClusters } from '../../../driver/concerned-clusters.ts';
import type { Writer } from '../../../kube/client.ts';
import { isNotFound } from '../../../kube/errors.ts';
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
import { CONTROL } from '../../../gate/gate.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, type MergePatch, type Patch } from '../../../kube/patch.ts';
import { machines } from '../../../kube/resource.ts';
import { hasMachineFinalizer } from '../../machines/status.ts';
import { machineStatusChange } from '../../machines/status-change.ts';
import { refusedFor } from '../../machines/node-refusal.ts';
import {
  hidesVanishedVM,
  machineConditions,
  recordedRefusalOf,
  refusalShownBy,
  showsMaintenanceOf,
} from '../explain/conditions.ts';
import type { MachineContext } from '../context.ts';

/** Annotations that the machine controller owns. */
const OWNED_ANNOTATIONS = [
  PRIORITY_ANNOTATION,
  CREATION_SENT_ANNOTATION,
  DRAIN_SINCE_ANNOTATION,
  DELETION_POLICY_IN_FORCE_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  FORCED_DELETION_SINCE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  NODE_SYNC_REFUSED_ANNOTATION,
  PRESERVE_ANNOTATION,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  VM_CLASS_ANNOTATION,
] as const;

type Values = Readonly<Record<string, string>>;

type Written = Pick<MachineContext, 'observed' | 'machine' | 'pass' | 'signal' | 'nodes'>;

/**
 * Writes what a pass has changed outside of the status: the record of the machine. Returns what its status goes on top of, so that both
 * fail when anybody else wrote meanwhile; undefined when the Machine is gone, or goes with this very write. To let go of a
 * Machine destroys, also when finalizers of others keep it; only the control cluster is asked for a sign of life then, because
 * nothing is left in the target cluster. Throws ApiError and GateClosedError.
 */
export async function writeRecord(
  writer: Writer,
  { observed, machine, signal }: Pick<Written, 'observed' | 'machine' | 'signal'>,
): Promise<Machine | undefined> {
  const main = mainPatch(observed, machine, hasNews(observed, machine, undefined));
  if (main === undefined) return observed;
  const intent = isRelease(observed, machine) ? 'destroy' : 'change';
  const clusters = intent === 'destroy' ? [CONTROL] : [];
  try {
    const written = await writer.patch(intent, machines, refOf(observed), main, { signal, clusters });
    return isBeingDeleted(observed) && machine.metadata.finalizers?.length === 0 ? undefined : written;
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

/**
 * Writes what a pass has changed in the status. The story told by conditions goes along when the status is written anyway, or when
 * what the API server refuses to record has changed, or the VM has vanished. Throws ApiError and GateClosedError.
 */
export async function writeStatus(
  { writer, clock }: { readonly writer: Writer; readonly clock: Clock },
  { observed, machine, pass, signal, nodes }: Written,
  base: Machine,
  refusal: string | undefined,
): Promise<void> {
  if (hasNews(observed, machine, refusal)) {
    machine.status.machineConditions = machineConditions(machine, clock.now(), refusal);
  }
  const status = machineStatusChange(observed, machine);
  if (status === undefined) return;
  const clusters = pass.intent === 'destroy' ? concernedClusters(observed, nodes?.cluster) : [];
  try {
    await writer.patch(pass.intent, machines, refOf(observed), statusPatch(base, status), { signal, clusters });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

/** Whether there is something to tell in the status. */
function hasNews(before: Machine, after: Machine, refusal: string | undefined): boolean {
  if (machineStatusChange(before, after) !== undefined || refusedFor(before) !== refusedFor(after)) return true;
  if (!showsMaintenanceOf(before, after)) return true;
  if (hidesVanishedVM(before, after)) return true;
  return refusalShownBy(before) !== (refusal ?? recordedRefusalOf(after));
}

/** Whether a pass takes our finalizer from a Machine that is being deleted. */
export function isRelease(before: Machine, after: Machine): boolean {
  return isBeingDeleted(before) && hasMachineFinalizer(before) && !hasMachineFinalizer(after);
}

/**
 * The patch of what a pass changed outside of the status; undefined when nothing did. Fails (409) on a Machine that has changed since it was
 * read when the finalizers changed, or when `strict`.
 */
export function mainPatch(before: Machine, after: Machine, strict: boolean): Patch | undefined {
  const change = mainChange(before, after);
  const { finalizers, annotations } = change.metadata ?? {};
  if (Object.keys(change).length === 0) return undefined;
  if (endsFieldTracking(before, change)) change.metadata = { ...change.metadata, managedFields: [{}] };
  // What a user asks for may change at any moment: only what was seen is taken away.
  const requestChanged = [PRESERVE_ANNOTATION, DELETION_PREPARATION_SINCE_ANNOTATION].some(
    (key) => key in (annotations ?? {}),
  );
  return finalizers !== undefined || requestChanged || strict
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

/** What a pass changed of the fields that we own outside of the status: label `node`, the annotations, finalizers and provider id. */
function mainChange(before: Machine, after: Machine): MergePatch<Machine> {
  const metadata: MergePatch<ObjectMeta> = {};
  const { labels, annotations, finalizers = [] } = after.metadata;
  if (labels?.[NODE_LABEL] !== before.metadata.labels?.[NODE_LABEL]) {
    metadata.labels = { [NODE_LABEL]: labels?.[NODE_LABEL] ?? null };
  }
  const annotated = changedOf(OWNED_ANNOTATIONS, before.metadata.annotations, annotations);
  if (annotated !== undefined) metadata.annotations = annotated;
  if (!isDeepStrictEqual(finalizers, before.metadata.finalizers ?? [])) metadata.finalizers = finalizers;

  const change: MergePatch<Machine> = {};
  if (Object.keys(metadata).length > 0) change.metadata = metadata;
  if (after.spec.providerID !== before.spec?.providerID) change.spec = { providerID: after.spec.providerID ?? null };
  return change;
}

/** What a pass changed outside of the status, by name. */
export function changesOf(before: Machine, after: Machine): readonly string[] {
  const { metadata, spec } = mainChange(before, after);
  return [
    ...Object.keys(metadata?.labels ?? {}).map((key) => `label ${key}`),
    ...Object.keys(metadata?.annotations ?? {}).map((key) => `annotation ${key}`),
    ...(metadata?.finalizers === undefined ? [] : [`finalizer ${MACHINE_FINALIZER}`]),
    ...Object.keys(spec ?? {}).map((key) => `field spec.${key}`),
  ];
}

/** The owned keys that differ, null for those that went; undefined when none does. */
function changedOf(
  owned: readonly string[],
  before: Values | undefined,
  after: Values | undefined,
): Record<string, string | null> | undefined {
  const changed = owned.filter((key) => before?.[key] !== after?.[key]);
  return changed.length === 0 ? undefined : Object.fromEntries(changed.map((key) => [key, after?.[key] ?? null]));
}
