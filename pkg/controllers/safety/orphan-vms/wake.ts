import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import type { Informer } from '../../../cache/lister.ts';
import type { Logger } from '../../../log/logger.ts';
import type { Queue } from '../../../workqueue/queue.ts';
import type { Departures } from '../departures.ts';
import type { GoneMachines } from '../gone-machines.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import type { OrphanVMsController } from './controller.ts';

/** The one key of the loop. */
export const ORPHAN_VMS_KEY = 'orphan-vms';

/** What happens to many objects at once is looked at once. */
const GATHER_MS = 1_000;

/** What tells the orphan loop that it should look now. */
export interface WakeParts {
  readonly machines: Informer<Machine>;
  readonly classes: Informer<MachineClass>;
  readonly queue: Queue;
  readonly controller: Pick<OrphanVMsController, 'hurry'>;
  readonly departures: Departures;
  readonly gone: GoneMachines;
  readonly ownerless: OwnerlessVMs;
  readonly log: Logger;
}

/**
 * Looks now, when a Machine vanishes otherwise than by us, and when a class is about to go that may still be needed to reach
 * its VMs. Machines that go in order cost no look.
 */
export function wakeOrphanVMs(parts: WakeParts): void {
  const { machines, classes, queue, controller, departures, gone, ownerless, log } = parts;
  const look = (): void => {
    controller.hurry();
    queue.addAfter(ORPHAN_VMS_KEY, GATHER_MS);
  };
  queue.add(ORPHAN_VMS_KEY);
  machines.onChange((old, current) => {
    if (old === undefined || old.metadata.uid === current?.metadata.uid) return;
    const providerID = (old.spec as Machine['spec'] | undefined)?.providerID ?? '';
    if (departures.left(old) === 'in-order') {
      gone.add({ name: old.metadata.name, providerID });
      ownerless.remove(providerID);
      return;
    }
    log.warn({ machine: keyOf(old), providerID }, 'a machine vanished although nobody deleted its VM');
    look();
  });
  classes.onChange((old, current) => {
    if (current !== undefined && isBeingDeleted(current) && (old === undefined || !isBeingDeleted(old))) look();
  });
}
