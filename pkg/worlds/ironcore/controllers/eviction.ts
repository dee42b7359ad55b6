import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import { drivingOut } from '../api/taint.ts';
import { isBeingDeleted, refOf } from '../../../apis/meta.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import type { Reader, Writer } from '../../../kube/client/client.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { ironCoreMachinePools, ironCoreMachines } from '../api/resources.ts';
import { stop, type StepResult } from '../../../work/reconcile/result.ts';

export interface EvictionDeps {
  readonly machines: Lister<IronCoreMachine>;
  readonly pools: Lister<IronCoreMachinePool>;
  readonly reader: Pick<Reader, 'get'>;
  readonly writer: Pick<Writer, 'delete'>;
  readonly recorder: ObjectEvents<IronCoreMachine>;
}

/** Deletes Machines that are in a pool with a taint NoExecute which they do not tolerate. */
export class Eviction {
  readonly #deps: EvictionDeps;

  constructor(deps: EvictionDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { machines, pools, reader, writer, recorder } = this.#deps;
    const machine = machines.get(key);
    const name = machine?.spec.machinePoolRef?.name;
    if (machine === undefined || name === undefined || isBeingDeleted(machine)) return stop;
    const { tolerations } = machine.spec;
    if (drivingOut(pools.get(name)?.spec?.taints, tolerations) === undefined) return stop;
    // A taint that was taken back must not cost a machine because a cache is late.
    const live = await reader.get(ironCoreMachinePools, { name }, { signal }).catch(ignoreNotFound);
    const taint = drivingOut(live?.spec?.taints, tolerations);
    if (taint === undefined) return stop;
    // What it tolerates is that of this version.
    const { uid, resourceVersion } = machine.metadata;
    await writer.delete('destroy', ironCoreMachines, refOf(machine), { uid, resourceVersion }, { signal });
    const shown = `${taint.key}${taint.value === undefined ? '' : `=${taint.value}`}:${taint.effect}`;
    const message = `Evicted from MachinePool ${name}: does not tolerate taint ${shown}`;
    recorder.event({ object: machine, type: 'Normal', reason: 'Evicted', message });
    return stop;
  }
}
