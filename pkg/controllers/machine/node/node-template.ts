import { isDeepStrictEqual } from 'node:util';

import {
  LAST_APPLIED_TEMPLATE_ANNOTATION,
  MACHINE_NAME_LABEL,
  NODE_FINALIZER,
  NOT_MANAGED_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ObjectMeta } from '../../../apis/meta.ts';
import type { Node, Taint } from '../../../apis/wire.ts';
import type { StrategicPatch } from '../../../kube/client/patch.ts';

type Values = Readonly<Record<string, string>>;
type Changes = Record<string, string | null>;

/** What a Machine's node template enforces; everything else on the Node is none of our business. */
interface Template {
  readonly labels: Values;
  readonly annotations: Values;
  readonly taints: readonly Taint[];
}

export interface NodeChange {
  /** `metadata` of one strategic merge patch; null removes a member. */
  readonly metadata: StrategicPatch<ObjectMeta>;
  /** The whole new list. It has no merge key: recompute it from a live read, and patch with that resourceVersion. */
  readonly taints: readonly Taint[] | undefined;
}

/** Our own marks on a Node, as entries beside those of the template: the finalizer, and the machine's name. */
export const OWN_ENTRIES = ['finalizer', 'machine name'] as const;

/**
 * What must change so that a Node shows whose it is and obeys its Machine's template: finalizer, machine-name label, labels,
 * annotations and taints, and the record of what was applied; undefined when nothing must. Three-way: keys that were applied
 * before and left the template are removed, keys of others are left alone. `without`: entries that are left out.
 */
export function nodeChange(
  machine: Machine,
  node: Node,
  without: ReadonlySet<string> = new Set(),
): NodeChange | undefined {
  const [wantsFinalizer, wantsName] = OWN_ENTRIES.map((entry) => !without.has(entry));
  const template = restrict(templateOf(machine), without);
  const record = node.metadata.annotations?.[LAST_APPLIED_TEMPLATE_ANNOTATION];
  const applied = parseRecord(record);
  const current = node.metadata;

  const labels = changesOf(template.labels, applied?.labels ?? {}, current.labels ?? {});
  const isNamed = current.labels?.[MACHINE_NAME_LABEL] === machine.metadata.name;
  if (wantsName && !isNamed) labels[MACHINE_NAME_LABEL] = machine.metadata.name;
  const annotations = changesOf(template.annotations, applied?.annotations ?? {}, current.annotations ?? {});
  if (wantsName && current.annotations?.[NOT_MANAGED_ANNOTATION] !== undefined)
    annotations[NOT_MANAGED_ANNOTATION] = null;
  const taints = taintsOf(template.taints, applied?.taints ?? [], node.spec?.taints ?? []);
  if (!isRecorded(template, applied, record)) {
    annotations[LAST_APPLIED_TEMPLATE_ANNOTATION] = JSON.stringify(recordOf(template));
  }

  const metadata: StrategicPatch<ObjectMeta> = {};
  if (Object.keys(labels).length > 0) metadata.labels = labels;
  if (Object.keys(annotations).length > 0) metadata.annotations = annotations;
  if (wantsFinalizer && current.finalizers?.includes(NODE_FINALIZER) !== true) metadata.finalizers = [NODE_FINALIZER];
  return Object.keys(metadata).length === 0 && taints === undefined ? undefined : { metadata, taints };
}

/** What the template of a Machine asks for, each entry by a name of its own. */
export function templateEntries(machine: Machine): string[] {
  const { labels, annotations, taints } = templateOf(machine);
  return [
    ...Object.keys(labels).map(labelEntry),
    ...Object.keys(annotations).map(annotationEntry),
    ...taints.map(taintEntry),
  ];
}

const labelEntry = (key: string): string => `label ${key}`;
const annotationEntry = (key: string): string => `annotation ${key}`;
const taintEntry = (taint: Taint): string => `taint ${idOf(taint)}`;

function restrict({ labels, annotations, taints }: Template, without: ReadonlySet<string>): Template {
  const keep = (values: Values, nameOf: (key: string) => string): Values =>
    Object.fromEntries(Object.entries(values).filter(([key]) => !without.has(nameOf(key))));
  return {
    labels: keep(labels, labelEntry),
    annotations: keep(annotations, annotationEntry),
    taints: taints.filter((taint) => !without.has(taintEntry(taint))),
  };
}

function templateOf({ spec }: Machine): Template {
  const { labels = {}, annotations = {} } = spec.nodeTemplate?.metadata ?? {};
  return { labels, annotations, taints: spec.nodeTemplate?.spec?.taints ?? [] };
}

function changesOf(wanted: Values, applied: Values, current: Values): Changes {
  const changes: Changes = {};
  for (const [key, value] of Object.entries(wanted)) if (current[key] !== value) changes[key] = value;
  for (const key of Object.keys(applied)) {
    if (wanted[key] === undefined && current[key] !== undefined) changes[key] = null;
  }
  return changes;
}

/** Undefined when the Node's taints are right. A taint is known by key and effect. */
function taintsOf(
  wanted: readonly Taint[],
  applied: readonly Taint[],
  current: readonly Taint[],
): readonly Taint[] | undefined {
  const wantedByID = new Map(wanted.map((taint) => [idOf(taint), taint]));
  const withdrawn = new Set(applied.map(idOf).filter((id) => !wantedByID.has(id)));
  const kept = current
    .filter((taint) => !withdrawn.has(idOf(taint)))
    .map((taint) => overwrite(taint, wantedByID.get(idOf(taint))));
  const known = new Set(kept.map(idOf));
  const all = [...kept, ...wanted.filter((taint) => !known.has(idOf(taint)))];
  return isDeepStrictEqual(all, current) ? undefined : all;
}

function overwrite(taint: Taint, wanted: Taint | undefined): Taint {
  if (wanted === undefined) return taint;
  const isSame =
    (taint.value ?? '') === (wanted.value ?? '') && (wanted.timeAdded ?? taint.timeAdded) === taint.timeAdded;
  return isSame ? taint : wanted;
}

function idOf({ key, effect }: Taint): string {
  return `${key}:${effect}`;
}

/** An empty template that was never applied needs no record. */
function isRecorded(template: Template, applied: Template | undefined, record: string | undefined): boolean {
  if (applied !== undefined) return isDeepStrictEqual(template, applied);
  const isEmpty =
    Object.keys(template.labels).length + Object.keys(template.annotations).length + template.taints.length === 0;
  return isEmpty && record === undefined;
}

/** The record is a NodeTemplateSpec, as Go writes it: empty members are left out. */
function recordOf({ labels, annotations, taints }: Template): unknown {
  return {
    metadata: {
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: { ...(taints.length > 0 && { taints }) },
  };
}

/** The labels that a Node was given, by the record of it. */
export function appliedLabels(record: string | undefined): Values {
  return parseRecord(record)?.labels ?? {};
}

/** Undefined for an absent record, and for one that nobody can read: it is written anew then, and nothing removed. */
function parseRecord(record: string | undefined): Template | undefined {
  if (record === undefined) return undefined;
  try {
    const { metadata, spec } = JSON.parse(record) as {
      metadata?: { labels?: Values | null; annotations?: Values | null } | null;
      spec?: { taints?: Taint[] | null } | null;
    };
    return { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {}, taints: spec?.taints ?? [] };
  } catch {
    return undefined;
  }
}
