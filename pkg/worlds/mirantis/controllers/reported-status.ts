import { membersOf } from '../../../apis/members.ts';
import { replacing } from '../../../kube/client/merge-change.ts';

/** What has to change of a status so that the members of `after` are as they stand there, and all else stays; undefined: nothing. */
export function changeOfStatus(before: unknown, after: object): object | undefined {
  const own = Object.fromEntries(Object.entries(membersOf(before)).filter(([member]) => member in after));
  const wanted = Object.fromEntries(Object.entries(after).filter(([, value]) => value !== undefined));
  const change = replacing<object>(own, wanted);
  return change === null || Object.keys(change).length === 0 ? undefined : change;
}
