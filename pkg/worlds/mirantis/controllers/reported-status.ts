import { replacing } from '../../../kube/client/merge-change.ts';

/** What has to change of a status so that the members of `after` are as they stand there, and all else stays; undefined: nothing. */
export function changeOfStatus(before: unknown, after: object): object | undefined {
  const isObject = typeof before === 'object' && before !== null && !Array.isArray(before);
  const own = Object.fromEntries(Object.entries(isObject ? before : {}).filter(([member]) => member in after));
  const wanted = Object.fromEntries(Object.entries(after).filter(([, value]) => value !== undefined));
  const change = replacing<object>(own, wanted);
  return change === null || Object.keys(change).length === 0 ? undefined : change;
}
