import type { IronCoreMachine } from '../../api/machine.ts';
import { IRONCORE_MACHINE_FINALIZER, IRONCORE_WATCH_FILTER_LABEL, MANAGED_BY_ANNOTATION } from './keys.ts';

/** Of a Machine that somebody else looks after. */
interface Left {
  readonly why: string;
  /** What would help if nobody does. */
  readonly remedy: string;
}

/** Why somebody else looks after a Machine; undefined: it is looked after here. `watchFilter`: value of the label of those that are; empty: all. */
export function leftToOthers(
  { metadata: { annotations = {}, labels = {} } }: IronCoreMachine,
  watchFilter: string,
): Left | undefined {
  const manager = annotations[MANAGED_BY_ANNOTATION];
  if (manager !== undefined) {
    return { why: `because of its annotation ${MANAGED_BY_ANNOTATION}=${manager}`, remedy: 'remove the annotation' };
  }
  if (watchFilter === '' || labels[IRONCORE_WATCH_FILTER_LABEL] === watchFilter) return undefined;
  const label = `${IRONCORE_WATCH_FILTER_LABEL}=${watchFilter}`;
  return { why: `because it does not have label ${label} (--ironcore-watch-filter)`, remedy: 'set the label' };
}

/** Its deletion waits for whoever manages it, or for nobody: only they may know of a machine of it. */
export function deletionLeftText({ why, remedy }: Left): string {
  return (
    `Not managed here ${why}: its machine is not deleted, and its finalizer ${IRONCORE_MACHINE_FINALIZER} is not removed. ` +
    `Its manager must do so, or ${remedy}`
  );
}
