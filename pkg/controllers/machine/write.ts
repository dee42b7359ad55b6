import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { concernedClusters } from '../../driver/concerned-clusters.ts';
import type { Writer } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import {
  CREATION_SENT_ANNOTATION,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MACHINE_FINALIZER,
  NODE_LABEL,
  NODE_SYNC_REFUSED_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import { CONTROL } from '../../gate/gate.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, type Patch } from '../../kube/patch.ts';
import { machines } from '../../kube/resource.ts';
import { statusChange } from '../machines/status-change.ts';
import { machineConditions } from './conditions.ts';
import type { MachineContext } from './context.ts';
import { refusedFor } from '../machines/node-refusal.ts';

/** Annotations that the machine controller owns. */
const OWNED_ANNOTATIONS = [
  PRIORITY_ANNOTATION,
  CREATION_SENT_ANNOTATION,
  NODE_SYNC_REFUSED_ANNOTATION,
  PRESERVE_ANNOTATION,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
] as const;

type Fields = Record<string, unknown>;
type Values = Readonly<Record<string, string>>;

/**
 * Writes what a pass has changed: the object, then its status on top of the answer, so that both fail when anybody else wrote
 * meanwhile. The story told by conditions goes along when the status is written anyway. A Machine that is gone needs no write;
 * nor does the status of one that goes with this very write. To let go of a Machine destroys, also when finalizers of others
 * keep it; only the control cluster is asked for a sign of life then, because nothing is left in the target cluster. Throws
 * ApiError and GateClosedError.
 */
export async function writeMachine(
  writer: Writer,
  {
    observed,
    machine,
    clock,
    pass,
    signal,
    target,
  }: Pick<MachineContext, 'observed' | 'machine' | 'clock' | 'pass' | 'signal' | 'target'>,
): Promise<void> {
  const hasNews = statusChange(observed, machine) !== undefined || refusedFor(observed) !== refusedFor(machine);
  if (hasNews) machine.status.machineConditions = machineConditions(machine, clock.now());
  const status = statusChange(observed, machine);
  const main = mainPatch(observed, machine, hasNews);
  const { name, namespace = '' } = observed.metadata;
  const ref = { namespace, name };
  const clusters = concernedClusters(observed, target?.cluster);
  try {
    let base: Machine = observed;
    if (main !== undefined) {
      base = isRelease(observed, machine)
        ? await writer.patch('destroy', machines, ref, main, { signal, clusters: [CONTROL] })
        : await writer.patch('change', machines, ref, main, { signal });
      if (isBeingDeleted(observed) && machine.metadata.finalizers?.length === 0) return;
    }
    if (status !== undefined) {
      const concerned = pass.intent === 'destroy' ? clusters : [];
      await writer.patch(pass.intent, machines, ref, statusPatch(base, status), { signal, clusters: concerned });
    }
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

/** Whether a pass takes our finalizer from a Machine that is being deleted. */
function isRelease(before: Machine, after: Machine): boolean {
  const isHeld = ({ metadata }: Machine): boolean => metadata.finalizers?.includes(MACHINE_FINALIZER) === true;
  return isBeingDeleted(before) && isHeld(before) && !isHeld(after);
}

/**
 * The patch of what a pass changed outside of the status, of the fields that we own: label `node`, the priority, finalizers
 * and provider id; undefined when nothing did. Fails (409) on a Machine that has changed since it was read when the
 * finalizers changed, or when `strict`.
 */
export function mainPatch(before: Machine, after: Machine, strict: boolean): Patch | undefined {
  const metadata: Fields = {};
  const { labels, annotations, finalizers } = after.metadata;
  if (labels?.[NODE_LABEL] !== before.metadata.labels?.[NODE_LABEL]) {
    metadata['labels'] = { [NODE_LABEL]: labels?.[NODE_LABEL] ?? null };
  }
  const annotated = changedOf(OWNED_ANNOTATIONS, before.metadata.annotations, annotations);
  if (annotated !== undefined) metadata['annotations'] = annotated;
  const finalizersChanged = !isDeepStrictEqual(finalizers ?? [], before.metadata.finalizers ?? []);
  if (finalizersChanged) metadata['finalizers'] = finalizers ?? [];

  const change: Fields = {};
  if (Object.keys(metadata).length > 0) change['metadata'] = metadata;
  if (after.spec.providerID !== before.spec?.providerID) change['spec'] = { providerID: after.spec.providerID ?? null };
  if (Object.keys(change).length === 0) return undefined;
  // What a user asks for may change at any moment: only what was seen is taken away.
  const requestChanged = annotated !== undefined && PRESERVE_ANNOTATION in annotated;
  return finalizersChanged || requestChanged || strict
    ? mergePatchIfUnchanged(before, change)
    : mergePatch(before, change);
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
