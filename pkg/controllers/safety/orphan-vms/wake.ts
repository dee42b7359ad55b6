import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import type { Informer, Lister } from '../../../kube/cache/lister.ts';
import type { Trust } from '../../../kube/gate/leader-gate.ts';
import { reportsSeveralVMs } from '../../machine-facts/original-texts.ts';
import { holdOf } from '../../machine-facts/replacement-hold.ts';
import { classIndex } from '../../../operator/indexes/class-index.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import { remainsOf } from '../deleted-machines.ts';
import { isLeaving, type OrphanVMsController, type OrphanVMsDeps } from './controller.ts';

export const ORPHAN_VMS_KEY = 'orphan-vms';

/** What happens to many objects at once is looked at once. */
const GATHER_MS = 1_000;

export interface OrphanVMsWakeDeps extends Pick<OrphanVMsDeps, 'removed' | 'gone' | 'ownerless' | 'log'> {
  readonly machines: Informer<Machine> & Pick<Lister<Machine>, 'byIndex'>;
  readonly classes: Informer<MachineClass> & Pick<Lister<MachineClass>, 'get'>;
  readonly queue: Queue;
  readonly controller: Pick<OrphanVMsController, 'hurry' | 'hasten'>;
  /**
   * A process that does not lead any more sees Machines vanish that its successor removes, and does not warn of them. It records them all the
   * same: a suspended leadership may continue, and a restore of the control cluster takes long enough to suspend it.
   */
  readonly trust: Pick<Trust, 'trustedForMs'>;
}

/**
 * Looks now, when a Machine vanishes otherwise than by us, when one begins to tell of several VMs, and when a class is about to go that
 * may still be needed to reach its VMs; soon, when that has no Machine any more, because its lists count only with a look after them. Other
 * Machines that go in order cost no look.
 */
export function wakeOrphanVMs(deps: OrphanVMsWakeDeps): void {
  const { machines, classes, queue, controller, trust, removed, gone, ownerless, log } = deps;
  const look = (): void => {
    controller.hurry();
    queue.addAfter(ORPHAN_VMS_KEY, GATHER_MS);
  };
  const lookSoon = (): void => {
    controller.hasten();
    queue.addAfter(ORPHAN_VMS_KEY, GATHER_MS);
  };
  const isOfLeaving = (machine: Machine): boolean =>
    classIndex(machine).some((key) => {
      const machineClass = classes.get(key);
      return machineClass !== undefined && isLeaving(machineClass, machines);
    });
  queue.add(ORPHAN_VMS_KEY);
  removed.onLateEnd((machine, departure) => {
    const fields = fieldsOf(machine);
    if (departure === 'in-order') {
      log.info(fields, 'deleted the VM of a vanished machine');
      ownerless.remove(providerIDOf(machine));
      gone.addLate(remainsOf(machine));
      return;
    }
    log.warn(fields, 'could not delete the VM of a vanished machine');
    look();
  });
  machines.onChange((old, current) => {
    if (current !== undefined && hasSeveralVMs(current) && (old === undefined || !hasSeveralVMs(old))) look();
    if (current !== undefined && isKeptWithOthers(current) && (old === undefined || !isKeptWithOthers(old))) lookSoon();
    if (old !== undefined && isOfLeaving(old)) lookSoon();
    if (old === undefined || old.metadata.uid === current?.metadata.uid) return;
    const level = trust.trustedForMs([]) > 0 ? 'warn' : 'debug';
    const fields = fieldsOf(old);
    const how = removed.record(old);
    // Some providers make IDs from names: that of an earlier machine, which we have deleted, may be this one's.
    if (how !== 'in-order') gone.forget(remainsOf(old));
    switch (how) {
      case 'in-order':
        ownerless.remove(providerIDOf(old));
        if (!isKept(old, machines)) gone.add(remainsOf(old));
        return;
      case 'deleting':
        return log[level](fields, 'machine vanished during the deletion of its VM');
      default:
        log[level](fields, 'machine vanished before its VM was deleted');
        look();
    }
  });
  classes.onChange((old, current) => {
    if (current !== undefined && isBeingDeleted(current) && (old === undefined || !isBeingDeleted(old))) look();
  });
}

/** Whether its VM may be there for a Machine in another namespace with the same target cluster. */
function isKept(machine: Machine, machines: OrphanVMsWakeDeps['machines']): boolean {
  const { namespace } = machine.metadata;
  return machines.byIndex('providerID', providerIDOf(machine)).some(({ metadata }) => metadata.namespace !== namespace);
}

function hasSeveralVMs({ status }: Machine): boolean {
  return reportsSeveralVMs(status?.lastOperation);
}

function isKeptWithOthers(machine: Machine): boolean {
  const kind = holdOf(machine)?.kind;
  return kind === 'zone' || kind === 'target';
}

function fieldsOf(machine: Machine): { machine: string; providerID: string } {
  return { machine: keyOf(machine), providerID: providerIDOf(machine) };
}
