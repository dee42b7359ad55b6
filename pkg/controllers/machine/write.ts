import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Writer } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { NODE_LABEL, PRIORITY_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, type Patch } from '../../kube/patch.ts';
import { machines } from '../../kube/resource.ts';
import { machineConditions } from './conditions.ts';
import type { MachineContext } from './context.ts';

/** Members of the status that the machine controller owns. */
const OWNED_STATUS = [
  'addresses',
  'conditions',
  'lastOperation',
  'currentStatus',
  'lastKnownState',
  'machineConditions',
] as const;

type Fields = Record<string, unknown>;

/**
 * Writes what a pass has changed: the object, then its status on top of the answer, so that both fail when anybody else wrote
 * meanwhile. The story told by conditions goes along when the status is written anyway. A Machine that is gone needs no write;
 * nor does the status of one that this very write lets go. Throws ApiError and GateClosedError.
 */
export async function writeMachine(
  writer: Writer,
  {
    observed,
    machine,
    clock,
    pass,
    signal,
  }: Pick<MachineContext, 'observed' | 'machine' | 'clock' | 'pass' | 'signal'>,
): Promise<void> {
  const hasNews = statusChange(observed, machine) !== undefined;
  if (hasNews) machine.status.machineConditions = machineConditions(machine, clock.now());
  const status = statusChange(observed, machine);
  const main = mainPatch(observed, machine, hasNews);
  const { name, namespace = '' } = observed.metadata;
  const ref = { namespace, name };
  try {
    let base: Machine = observed;
    if (main !== undefined) {
      const isRelease = isBeingDeleted(observed) && machine.metadata.finalizers?.length === 0;
      base = await writer.patch(isRelease ? 'destroy' : 'change', machines, ref, main, { signal });
      if (isRelease) return;
    }
    if (status !== undefined) {
      await writer.patch(pass.intent, machines, ref, statusPatch(base, status), { signal });
    }
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
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
  if (annotations?.[PRIORITY_ANNOTATION] !== before.metadata.annotations?.[PRIORITY_ANNOTATION]) {
    metadata['annotations'] = { [PRIORITY_ANNOTATION]: annotations?.[PRIORITY_ANNOTATION] ?? null };
  }
  const finalizersChanged = !isDeepStrictEqual(finalizers ?? [], before.metadata.finalizers ?? []);
  if (finalizersChanged) metadata['finalizers'] = finalizers ?? [];

  const change: Fields = {};
  if (Object.keys(metadata).length > 0) change['metadata'] = metadata;
  if (after.spec.providerID !== before.spec?.providerID) change['spec'] = { providerID: after.spec.providerID ?? null };
  if (Object.keys(change).length === 0) return undefined;
  return finalizersChanged || strict ? mergePatchIfUnchanged(before, change) : mergePatch(before, change);
}

/** What a pass changed in the status, as a merge patch of the fields that we own; undefined when nothing did. */
export function statusChange(before: Machine, after: Machine): Fields | undefined {
  const old = (before.status ?? {}) as Fields;
  const current = (after.status ?? {}) as Fields;
  const change: Fields = {};
  for (const member of OWNED_STATUS) {
    if (!isDeepStrictEqual(old[member], current[member])) change[member] = replace(old[member], current[member]);
  }
  return Object.keys(change).length === 0 ? undefined : change;
}

/** A merge patch replaces lists and scalars, but merges objects: members that vanished must be named to go. */
function replace(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  if (!isObject(before) || !isObject(after)) return after;
  const gone = Object.keys(before).filter((member) => after[member] === undefined);
  return { ...after, ...Object.fromEntries(gone.map((member) => [member, null])) };
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
