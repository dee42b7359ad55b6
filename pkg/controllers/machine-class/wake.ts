import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../apis/meta.ts';
import type { Informer } from '../../cache/lister.ts';
import type { Queue } from '../../workqueue/queue.ts';
import { CLASS_INDEX, classIndex } from '../../indexes/class-index.ts';

/** What tells the MachineClass controller, and the Machines of a class, that there is work. */
export interface WakeParts {
  readonly classes: Informer<MachineClass>;
  /** With the index CLASS_INDEX. */
  readonly machines: Informer<Machine>;
  /** Keys of MachineClasses. */
  readonly queue: Queue;
  /** Keys of Machines. */
  readonly machineQueue: Queue;
}

/**
 * Enqueues a class when it changes, and when it gains or loses a Machine; and the Machines of a class when it appears,
 * vanishes, or changes in what they depend on.
 */
export function wakeMachineClasses({ classes, machines, queue, machineQueue }: WakeParts): void {
  classes.onChange((old, current) => {
    const machineClass = current ?? old;
    if (machineClass === undefined) return;
    queue.add(keyOf(machineClass), classes.hasSynced ? 'normal' : 'low');
    if (old !== undefined && current !== undefined && isSameForMachines(old, current)) return;
    for (const machine of machines.byIndex(CLASS_INDEX, keyOf(machineClass))) {
      machineQueue.add(keyOf(machine), isBeingDeleted(machine) ? 'high' : 'low');
    }
  });
  machines.onChange((old, current) => {
    const before = old === undefined ? undefined : classIndex(old)[0];
    const after = current === undefined ? undefined : classIndex(current)[0];
    if (before === after) return;
    for (const key of [before, after]) if (key !== undefined) queue.add(key, machines.hasSynced ? 'normal' : 'low');
  });
}

/**
 * Metadata matters to Machines only by the finalizer, without which they do not start. Compared as text: the server always
 * writes members in the same order, and a difference too many costs one look.
 */
function isSameForMachines(old: MachineClass, current: MachineClass): boolean {
  return textOf(old) === textOf(current);
}

function textOf({ metadata, kind: _kind, apiVersion: _apiVersion, ...content }: MachineClass): string {
  return JSON.stringify([metadata.uid, metadata.finalizers, metadata.deletionTimestamp, content]);
}
