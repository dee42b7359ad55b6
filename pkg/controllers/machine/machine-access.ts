import { hasFinalizer } from '../../apis/finalizers.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import {
  CREATION_SENT_ANNOTATION,
  MACHINE_FINALIZER,
  VM_CLASS_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import { refOf } from '../../apis/meta.ts';
import { toTimestamp, type Clock } from '../../base/clock/clock.ts';
import { concernedClusters } from '../../driver/concerned-clusters.ts';
import type { Preconditions, Reader, Writer } from '../../kube/client/client.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import { mergePatch } from '../../kube/client/patch.ts';
import { machineClasses, machines } from '../../kube/client/resource.ts';
import type { Targets } from '../../kube/targets/targets.ts';
import { noteOfForcedRemoval } from '../vms/forced-removals.ts';

/** What steps may ask the API server about their Machine, beside the writes at the end of a pass. */
export interface MachineAccess {
  /** Live read of a Machine; undefined when the server says NotFound. */
  readonly readMachine: (machine: Machine, signal: AbortSignal) => Promise<Machine | undefined>;
  /**
   * Live: whether the MachineClass that a Machine names carries our finalizer, without which no VM is asked for. One that does not
   * exist, or is not named, does not. Throws ApiError.
   */
  readonly isClassProtected: (machine: Machine, signal: AbortSignal) => Promise<boolean>;
  /** Annotates exactly this Machine with the time at which CreateMachine is sent, and with which class: the one write that a pass cannot make. */
  readonly markCreationSent: (machine: Machine, className: string, signal: AbortSignal) => Promise<void>;
  /** Annotates exactly this MachineClass, because a Machine of it is let go by force. Throws ApiError. */
  readonly noteForcedRemoval: (machineClass: MachineClass, machine: Machine, signal: AbortSignal) => Promise<void>;
  /** DELETE of exactly this Machine, while it and its target cluster are known to live; gone already is fine. */
  readonly deleteMachine: (machine: Machine, signal: AbortSignal) => Promise<void>;
  /** The same, only if the Machine has not changed since it was read in any way. Throws a conflict otherwise. */
  readonly deleteUnchanged: (machine: Machine, signal: AbortSignal) => Promise<void>;
}

interface Deps {
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Pick<Targets, 'of'>;
  readonly clock: Clock;
}

/** The real Machines of the control cluster. */
export function machineAccess({ reader, writer, targets, clock }: Deps): MachineAccess {
  const remove = async (machine: Machine, only: Preconditions, signal: AbortSignal): Promise<void> => {
    const options = { signal, clusters: concernedClusters(machine, targets.of(machine)?.cluster) };
    await writer.delete('destroy', machines, refOf(machine), only, options).catch(ignoreNotFound);
  };
  return {
    readMachine: (machine, signal) => reader.get(machines, refOf(machine), { signal }).catch(ignoreNotFound),

    async isClassProtected({ metadata, spec }, signal) {
      const name = spec?.class?.name ?? '';
      if (name === '') return false;
      const ref = { namespace: metadata.namespace ?? '', name };
      const machineClass = await reader.get(machineClasses, ref, { signal }).catch(ignoreNotFound);
      return machineClass !== undefined && hasFinalizer(machineClass, MACHINE_FINALIZER);
    },

    deleteMachine: (machine, signal) => remove(machine, { uid: machine.metadata.uid }, signal),

    async deleteUnchanged(machine, signal) {
      const { uid, resourceVersion } = machine.metadata;
      await remove(machine, { uid, resourceVersion }, signal);
    },

    async noteForcedRemoval(machineClass, machine, signal) {
      const patch = mergePatch(machineClass, { metadata: { annotations: noteOfForcedRemoval(machine) } });
      await writer.patch('change', machineClasses, refOf(machineClass), patch, { signal });
    },

    async markCreationSent(machine, className, signal) {
      const annotations = { [CREATION_SENT_ANNOTATION]: toTimestamp(clock.now()), [VM_CLASS_ANNOTATION]: className };
      const patch = mergePatch(machine, { metadata: { annotations } });
      await writer.patch('change', machines, refOf(machine), patch, { signal });
    },
  };
}
