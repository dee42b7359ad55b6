import {
  HAD_CONTROL_PLANE_ANNOTATION,
  HAD_KUBECONFIG_ANNOTATION,
  NODE_CLUSTER_ANNOTATION,
} from '../../pkg/worlds/cluster-api/api/keys.ts';
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
  HAD_CONTROL_PLANE_ANNOTATION,
]);
/** Lists in which the place of an item says nothing, by what tells their items apart. */
const SORTED: ReadonlyMap<string, string> = new Map([
  ['conditions', 'type'],
  ['taints', 'key'],
]);
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
    if (key === 'annotations' && members.length === 0) return undefined;
    return Object.fromEntries(members.map(([name, one]) => [renamed(name), walk(one, name)]));
  };
  return walk(object, '');
}

function textOf(item: unknown, member: string): string {
  return String((item as Readonly<Record<string, unknown>>)[member]);
}
