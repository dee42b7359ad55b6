import type { IronCoreMachine } from '../../api/machine.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import { RuntimeError } from '../../runtime/error.ts';
import { isDenial } from '../../../../kube/client/errors.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { Finalizer } from '../../../../work/reconcile/finalizer.ts';
import { runSteps, stop, waitFor, type StepResult } from '../../../../work/reconcile/result.ts';
import { act } from './act.ts';
import { certainty, rightRuntime, yieldToRival } from './doubts.ts';
import { IRONCORE_MACHINE_FINALIZER, IRONCORE_WATCH_FILTER_LABEL, MANAGED_BY_ANNOTATION } from './keys.ts';
import type { PassCollaborators, IronCoreStep } from './machine-pass.ts';
import { MissingMachines } from './missing-machines.ts';
import { needs } from './needs.ts';
import { nowhereElse } from './nowhere-else.ts';
import { observeMachines } from './observe.ts';
import { prepare } from './prepare.ts';
import { Rechecks } from './rechecks.ts';
import { Reports } from './reports.ts';
import { RuntimeClasses } from './runtime-classes.ts';
import { Uncertainty } from './uncertainty.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

export type IronCoreMachineControllerDeps = Omit<IronCoreCollaborators, NotNeeded>;
type NotNeeded =
  | 'poolLeases'
  | 'secrets'
  | 'prefixes'
  | 'classRecorder'
  | 'metrics'
  | 'log'
  | 'poolUIDs'
  | 'departures';

/**
 * Makes Machines real at the runtimes of their pools. A pass looks at everything, decides one thing, does it, and tells. It writes as it goes:
 * whoever comes after this process has to know of a request before it is sent.
 */
export class IronCoreMachineController {
  readonly #deps: IronCoreMachineControllerDeps;
  readonly #finalizer: Finalizer<IronCoreMachine>;
  readonly #reports: Reports;
  readonly #steps: readonly IronCoreStep[];

  constructor(deps: IronCoreMachineControllerDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, ironCoreMachines, IRONCORE_MACHINE_FINALIZER);
    this.#reports = new Reports(deps);
    const reports = this.#reports;
    const uncertainty = new Uncertainty(deps);
    const missing = new MissingMachines(deps);
    const rechecks = new Rechecks();
    const given: PassCollaborators = {
      ...deps,
      finalizer: this.#finalizer,
      reports,
      uncertainty,
      missing,
      rechecks,
      runtimeClasses: new RuntimeClasses(deps.clock),
    };
    this.#steps = [
      prepare(given),
      needs(given),
      observeMachines(given),
      yieldToRival(given),
      rightRuntime(given),
      nowhereElse(given),
      certainty(given),
      act(given),
    ];
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { machines, pools, runtimes, served, keptUses } = this.#deps;
    keptUses.withdraw(key);
    const observed = machines.get(key);
    const poolName = observed?.spec.machinePoolRef?.name ?? '';
    const runtime = runtimes.get(poolName);
    if (observed === undefined || runtime === undefined) return stop;
    if (!served.has(poolName)) return waitFor('the pool to be served by this process');
    const isHeld = this.#finalizer.holds(observed);
    const isGoing = isBeingDeleted(observed);
    const left = leftToOthers(observed, this.#deps.watchFilter);
    if (left !== undefined) {
      if (isGoing && isHeld) this.#reports.event(observed, 'Warning', 'ManagedByAnother', deletionLeftText(left));
      return stop;
    }
    if (isGoing && !isHeld) return stop;
    const pool = pools.get(poolName);
    if (pool === undefined && !isGoing) return waitFor('the MachinePool to be created');
    const poolUID = pool?.metadata.uid ?? '';
    const pass = {
      observed,
      isGoing,
      poolName,
      poolUID,
      runtime,
      signal,
      existing: [],
      answering: undefined,
      uncertainMs: Infinity,
    };
    try {
      return await runSteps(this.#steps, pass);
    } catch (err) {
      if (isDenial(err) && !signal.aborted) await this.#reports.reportRefusal(observed, err, signal);
      if (err instanceof RuntimeError && !signal.aborted)
        await this.#reports.reportTrouble(observed, poolName, err, signal);
      throw err;
    }
  }
}

interface Left {
  readonly why: string;
  /** What would help if nobody does. */
  readonly remedy: string;
}

/** Why somebody else looks after a Machine; undefined: it is looked after here. `watchFilter`: value of the label of those that are; empty: all. */
function leftToOthers(
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
function deletionLeftText({ why, remedy }: Left): string {
  return (
    `Not managed here ${why}: its machine is not deleted, and its finalizer ${IRONCORE_MACHINE_FINALIZER} is not removed. ` +
    `Its manager must do so, or ${remedy}`
  );
}
