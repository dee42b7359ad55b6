import { isDeepStrictEqual } from 'node:util';

import {
  ANNOTATIONS_FROM_MACHINE_ANNOTATION,
  INTERRUPTIBLE_LABEL,
  LABELS_FROM_MACHINE_ANNOTATION,
  NODE_CLUSTER_NAME_ANNOTATION,
  NODE_CLUSTER_NAMESPACE_ANNOTATION,
  NODE_MACHINE_ANNOTATION,
  NODE_OWNER_KIND_ANNOTATION,
  NODE_OWNER_NAME_ANNOTATION,
  OUTDATED_TAINT,
  TAINTS_FROM_MACHINE_ANNOTATION,
  UNINITIALIZED_TAINT,
} from '../api/keys.ts';
import type { ClusterAPIMachine, MachineTaint } from '../api/machine.ts';
import { controllerOf } from '../../../apis/meta.ts';
import type { Node, Taint } from '../../../apis/wire.ts';

type Texts = Readonly<Record<string, string>>;

/** What has to change of a Node so that it shows what its Machine says. Members of `null` go. */
export interface NodePatch {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string | null>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  /** The whole list: it was made of the Node as it was seen. */
  readonly spec?: { readonly taints: readonly Taint[] };
}

const LABEL_DOMAINS = ['node-restriction.kubernetes.io', 'node.cluster.x-k8s.io'];
const ROLE_DOMAIN = 'node-role.kubernetes.io';
const ANNOTATION_DOMAIN = 'node.cluster.x-k8s.io';

export interface ShownOnNode {
  /** The provider may take the machine back; undefined: nobody knows, and what the Node has been given stays. */
  readonly isInterruptible: boolean | undefined;
  /** The Machine is of an older revision; undefined: nobody knows, and what is on the Node stays. */
  readonly isOutdated: boolean | undefined;
}

/** Of which keys labels and annotations are followed beside those of the domains of Cluster API. */
export interface SyncedKeys {
  readonly labels: readonly RegExp[];
  readonly annotations: readonly RegExp[];
}

const NO_OTHERS: SyncedKeys = { labels: [], annotations: [] };

/** What has to change of the Node of a Machine; undefined: nothing. What others put on the Node stays. */
export function nodePatch(
  node: Node,
  machine: ClusterAPIMachine,
  { isInterruptible, isOutdated }: ShownOnNode,
  others: SyncedKeys = NO_OTHERS,
): NodePatch | undefined {
  const { labels: has = {}, annotations: noted = {} } = node.metadata;
  const isShown = isInterruptible ?? listed(noted[LABELS_FROM_MACHINE_ANNOTATION]).includes(INTERRUPTIBLE_LABEL);
  const labels = {
    ...chosen(machine.metadata.labels, others.labels, (one) => one === ROLE_DOMAIN || isIn(one, LABEL_DOMAINS)),
    ...(isShown && { [INTERRUPTIBLE_LABEL]: '' }),
  };
  const own = chosen(machine.metadata.annotations, others.annotations, (one) => isIn(one, [ANNOTATION_DOMAIN]));
  const lost = (note: string, kept: Texts, held: Texts): Record<string, null> =>
    Object.fromEntries(
      listed(noted[note]).flatMap((key) => (key in kept || !(key in held) ? [] : [[key, null] as const])),
    );
  const { taints: followed, tracked } = taintsOf(node, machine.spec?.taints ?? []);
  const taints = withOutdated(followed, isOutdated);
  const annotations = {
    ...own,
    ...identityOf(machine),
    [LABELS_FROM_MACHINE_ANNOTATION]: noteOf(labels),
    [ANNOTATIONS_FROM_MACHINE_ANNOTATION]: noteOf(own),
    [TAINTS_FROM_MACHINE_ANNOTATION]: tracked,
  };
  const changedLabels = { ...differing(labels, has), ...lost(LABELS_FROM_MACHINE_ANNOTATION, labels, has) };
  const changedNotes = {
    ...differing(annotations, noted),
    ...lost(ANNOTATIONS_FROM_MACHINE_ANNOTATION, annotations, noted),
  } as Record<string, string>;
  const metadata = {
    ...(Object.keys(changedLabels).length > 0 && { labels: changedLabels }),
    ...(Object.keys(changedNotes).length > 0 && { annotations: changedNotes }),
  };
  const hasTaints = !isDeepStrictEqual(taints, node.spec?.taints ?? []);
  if (Object.keys(metadata).length === 0 && !hasTaints) return undefined;
  return { ...(Object.keys(metadata).length > 0 && { metadata }), ...(hasTaints && { spec: { taints } }) };
}

function identityOf(machine: ClusterAPIMachine): Texts {
  const { name, namespace = '' } = machine.metadata;
  const owner = controllerOf(machine);
  return {
    [NODE_CLUSTER_NAME_ANNOTATION]: machine.spec?.clusterName ?? '',
    [NODE_CLUSTER_NAMESPACE_ANNOTATION]: namespace,
    [NODE_MACHINE_ANNOTATION]: name,
    ...(owner !== undefined && {
      [NODE_OWNER_KIND_ANNOTATION]: owner.kind,
      [NODE_OWNER_NAME_ANNOTATION]: owner.name,
    }),
  };
}

/** The taints that the Node is to have, and the note of those that follow the Machine from now on. */
function taintsOf(
  node: Node,
  wanted: readonly MachineTaint[],
): { readonly taints: readonly Taint[]; readonly tracked: string } {
  const note = node.metadata.annotations?.[TAINTS_FROM_MACHINE_ANNOTATION];
  const always = wanted.filter(({ propagation }) => propagation === 'Always');
  const joining = note === undefined ? wanted.filter(({ propagation }) => propagation !== 'Always') : [];
  const followed = new Set(always.map(nameOf));
  const left = new Set(listed(note).filter((name) => !followed.has(name)));
  const kept = (node.spec?.taints ?? []).filter((one) => one.key !== UNINITIALIZED_TAINT && !left.has(nameOf(one)));
  const taints = [...always, ...joining].reduce<readonly Taint[]>((all, { key, value, effect }) => {
    const at = all.findIndex((one) => nameOf(one) === nameOf({ key, effect }));
    const taint = { key, effect, ...(value !== undefined && value !== '' && { value }) };
    if (at === -1) return [...all, taint];
    return (all[at]?.value ?? '') === (value ?? '') ? all : all.with(at, taint);
  }, kept);
  return { taints, tracked: [...followed].toSorted().join(',') };
}

function withOutdated(taints: readonly Taint[], isOutdated: boolean | undefined): readonly Taint[] {
  const isIt = (one: Taint): boolean => nameOf(one) === nameOf(OUTDATED_TAINT);
  if (isOutdated === undefined || isOutdated === taints.some(isIt)) return taints;
  return isOutdated ? [...taints, OUTDATED_TAINT] : taints.filter((one) => !isIt(one));
}

const nameOf = ({ key, effect }: { readonly key: string; readonly effect: string }): string => `${key}:${effect}`;

function chosen(all: Texts | undefined, others: readonly RegExp[], isChosen: (domain: string) => boolean): Texts {
  const isSynced = (key: string): boolean => isChosen(domainOf(key)) || others.some((one) => one.test(key));
  return Object.fromEntries(Object.entries(all ?? {}).filter(([key]) => isSynced(key)));
}

function domainOf(key: string): string {
  const at = key.indexOf('/');
  return at === -1 ? '' : key.slice(0, at);
}

function isIn(domain: string, domains: readonly string[]): boolean {
  return domains.some((one) => domain === one || domain.endsWith(`.${one}`));
}

function differing(wanted: Texts, has: Texts): Texts {
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => has[key] !== value));
}

function noteOf(texts: Texts): string {
  return Object.keys(texts).toSorted().join(',');
}

function listed(note: string | undefined): readonly string[] {
  return note === undefined || note === '' ? [] : note.split(',');
}
