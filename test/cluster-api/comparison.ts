import { HAD_KUBECONFIG_ANNOTATION, NODE_CLUSTER_ANNOTATION } from '../../pkg/apis/cluster-api/keys.ts';
import type { ClusterAPIMachine } from '../../pkg/apis/cluster-api/machine.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';

/** Members that say when and how often something was written, not what. */
const DROPPED = new Set([
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'managedFields',
  'uid',
  'message',
  // Notes of ours: the core has none to compare.
  NODE_CLUSTER_ANNOTATION,
  HAD_KUBECONFIG_ANNOTATION,
]);
/** Lists in which the place of an item says nothing, by what tells their items apart. */
const SORTED: ReadonlyMap<string, string> = new Map([
  ['conditions', 'type'],
  ['taints', 'key'],
]);
/** Of the conditions of the older contract those that providers read. */
const READ_BY_PROVIDERS = ['BootstrapReady', 'InfrastructureReady'];
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * An object as anybody would have made it: without its own times, numbers, ids and texts for people, with other words in place of `own` ones,
 * such as its namespace; of what it says about generations only whether it is about the present one.
 */
export function normalised(object: KubeObject, own: Readonly<Record<string, string>>): unknown {
  const { generation } = object.metadata;
  const renamed = (text: string): string =>
    Object.entries(own).reduce((result, [word, other]) => result.replaceAll(word, other), text);
  const walk = (value: unknown, key: string): unknown => {
    if (key === 'observedGeneration') return value === generation ? 'the present' : 'an older';
    if (typeof value === 'string') return TIME.test(value) ? 'some time' : renamed(value);
    if (Array.isArray(value)) {
      const items = (value as readonly unknown[]).map((one) => walk(one, ''));
      const by = SORTED.get(key);
      return by === undefined ? items : items.toSorted((a, b) => (textOf(a, by) < textOf(b, by) ? -1 : 1));
    }
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value).filter(([name]) => !DROPPED.has(name));
    return Object.fromEntries(members.map(([name, one]) => [renamed(name), walk(one, name)]));
  };
  return walk(withoutOlder(object), '');
}

function withoutOlder(object: ClusterAPIMachine): KubeObject {
  const older = object.status?.deprecated?.v1beta1?.conditions;
  if (older === undefined) return object;
  const read = older.filter(({ type }) => READ_BY_PROVIDERS.includes(type));
  const conditions = read.map(({ type, status }) => ({ type, status }));
  return { ...object, status: { ...object.status, deprecated: { v1beta1: { conditions } } } } as KubeObject;
}

function textOf(item: unknown, member: string): string {
  return String((item as Readonly<Record<string, unknown>>)[member]);
}
