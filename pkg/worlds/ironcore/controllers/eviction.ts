import { drivingOut } from '../api/taint.ts';
import { isBeingDeleted, refOf } from '../../../apis/meta.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { ironCoreMachinePools, ironCoreMachines } from '../api/resources.ts';
import { stop, type StepResult } from '../../../work/reconcile/result.ts';
import type { IronCoreCollaborators } from './collaborators.ts';

type Deps = Pick<IronCoreCollaborators, 'machines' | 'pools' | 'reader' | 'writer' | 'recorder'>;

/** Deletes Machines that are in a pool with a taint NoExecute which they do not tolerate. */
export class Eviction {
  readonly #deps: Deps;

  constructor(deps: Deps) {
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
