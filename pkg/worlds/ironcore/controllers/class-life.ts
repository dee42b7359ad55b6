import type { IronCoreMachine } from '../api/machine.ts';
import { MACHINE_CLASS_FINALIZER, type IronCoreMachineClass } from '../api/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { ironCoreMachineClasses, ironCoreMachines } from '../api/resources.ts';
import { Finalizer } from '../../../work/reconcile/finalizer.ts';
import { ReportedOnce } from '../../../work/reconcile/reported-once.ts';
import { stop, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import type { IronCoreCollaborators } from './collaborators.ts';
import { namedUpTo } from '../../../apis/short-text.ts';

type Deps = Pick<IronCoreCollaborators, 'classes' | 'machines' | 'reader' | 'writer' | 'classRecorder'>;

const MOST_NAMED = 5;

/** Keeps a class until the last Machine of it is gone. */
export class ClassLife {
  readonly #deps: Deps;
  readonly #finalizer: Finalizer<IronCoreMachineClass>;
  readonly #reported = new ReportedOnce();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, ironCoreMachineClasses, MACHINE_CLASS_FINALIZER);
  }

  async reconcile(name: string, signal: AbortSignal): Promise<StepResult> {
    const { classes, machines, reader } = this.#deps;
    const found = classes.get(name);
    if (found === undefined) return stop;
    if (!isBeingDeleted(found)) {
      await this.#finalizer.add(found, signal).catch(ignoreNotFound);
      return stop;
    }
    if (!this.#finalizer.holds(found)) return stop;
    const users = machines.byIndex('class', name);
    if (users.length > 0) return this.#waits(found, users);
    // The cache may not have heard of the newest.
    const { items } = await reader.list(ironCoreMachines, { signal });
    const live = items.filter(({ spec }) => spec.machineClassRef.name === name);
    if (live.length > 0) return this.#waits(found, live);
    await this.#finalizer.remove(found, signal).catch(ignoreNotFound);
    this.#reported.forget(found.metadata.uid);
    return stop;
  }

  /** The end of each of them starts another pass. */
  #waits(found: IronCoreMachineClass, users: readonly IronCoreMachine[]): StepResult {
    const { uid } = found.metadata;
    const names = users.map(keyOf).toSorted((a, b) => a.localeCompare(b));
    const message = `Its deletion waits for Machines: ${namedUpTo(MOST_NAMED, names)}`;
    if (this.#reported.isNew(uid, 'InUse'))
      this.#deps.classRecorder.event({ object: found, type: 'Warning', reason: 'InUse', message });
    return waitFor(message);
  }
}
