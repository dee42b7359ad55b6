import type { IronCoreMachine, IronCoreMachineStatus } from '../../api/machine.ts';
import { isBeingDeleted, keyOf, refOf } from '../../../../apis/meta.ts';
import type { RuntimeError } from '../../runtime/error.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { ignoreNotFound, type ApiError } from '../../../../kube/client/errors.ts';
import { replacing } from '../../../../kube/client/merge-change.ts';
import { statusPatch } from '../../../../kube/client/patch.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { isEqualInGo } from '../../../../kube/client/zero-values.ts';
import { conditionOf } from '../../../../work/reconcile/conditions.ts';
import { runtimeIDOf } from './runtime-id.ts';
import { ironCoreStatusOf, runtimeStateName, type MachineStatusFacts } from './status.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

type Deps = Pick<IronCoreCollaborators, 'machines' | 'writer' | 'recorder' | 'clock'>;

export class Reports {
  readonly #deps: Deps;
  /** Errors that were told, by whoever knew most of them. */
  readonly #reported = new WeakSet<RuntimeError>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Writes the status, if it is another one, and tells of a new reason for which it is not ready. Throws ApiError. */
  async report(
    observed: IronCoreMachine,
    said: Partial<MachineStatusFacts>,
    signal: AbortSignal,
    more: Partial<IronCoreMachineStatus> = {},
  ): Promise<void> {
    const { machines, clock, writer } = this.#deps;
    // A claim or a finalizer may have been written since.
    const current = machines.get(keyOf(observed)) ?? observed;
    if (current.metadata.uid !== observed.metadata.uid) return;
    const nothing = { seen: undefined, machineID: undefined, waits: [], problem: undefined };
    const after = { ...ironCoreStatusOf({ ...nothing, ...said, machine: current }, clock.now()), ...more };
    if (isEqualInGo(current.status ?? {}, after)) return;
    const change = replacing<IronCoreMachineStatus>(current.status ?? {}, after);
    if (change === null || Object.keys(change).length === 0) return;
    const patch = statusPatch(current, change);
    await writer.patch('change', ironCoreMachines, refOf(current), patch, { signal }).catch(ignoreNotFound);
    const [was, is] = [current.status, after].map((status) => conditionOf(status?.conditions, 'Ready'));
    const isWorth =
      said.waits !== undefined && said.waits.length > 0 ? said.seen === undefined : said.problem !== undefined;
    if (isWorth && is !== undefined && was?.message !== is.message) {
      this.event(observed, is.reason === 'Terminating' ? 'Normal' : 'Warning', is.reason, is.message);
    }
  }

  /**
   * That its runtime cannot be reached, or has refused something. A Machine that has its machine, and is not going, is no less ready for it:
   * nobody knows where a look failed, and where a change was refused it is as it was `seen`, or before. Once for each error. Throws ApiError.
   */
  async reportTrouble(
    observed: IronCoreMachine,
    pool: string,
    err: RuntimeError,
    signal: AbortSignal,
    { seen, ...more }: Partial<IronCoreMachineStatus> & { readonly seen?: RuntimeMachine | undefined } = {},
  ): Promise<void> {
    if (this.#reported.has(err)) return;
    this.#reported.add(err);
    const reason = UNREACHABLE.has(err.code) ? 'RuntimeUnreachable' : REFUSED_BY_RUNTIME;
    const message = `MachinePool ${pool}: ${err.message}`;
    // Before a machine is created anew, that of the one before is taken off.
    const current = this.#deps.machines.get(keyOf(observed)) ?? observed;
    const isThere = runtimeIDOf(current) !== '' && !isBeingDeleted(observed);
    const isAsBefore = err.isMutation && reason === REFUSED_BY_RUNTIME;
    const state = seen === undefined ? current.status?.state : runtimeStateName(seen.status.state);
    const status = isAsBefore ? (state === 'Running' ? 'True' : 'False') : 'Unknown';
    await this.report(observed, { seen, problem: { reason, message, ...(isThere && { status }) } }, signal, more);
  }

  /**
   * That the API server refuses what is to be written for it. A Machine that has its machine, and is not going, stays as ready as it is: an
   * Event alone says so. Throws ApiError.
   */
  async reportRefusal(observed: IronCoreMachine, err: ApiError, signal: AbortSignal): Promise<void> {
    const isRunning = runtimeIDOf(observed) !== '' && !isBeingDeleted(observed);
    if (isRunning) return this.refused(observed, err);
    const problem = { reason: REFUSED, message: refusalMessage(err) };
    await this.report(observed, { problem }, signal).catch(() => {
      // What refuses may refuse the status, too.
      this.refused(observed, err);
    });
  }

  /** The Event alone. */
  refused(observed: IronCoreMachine, err: ApiError): void {
    this.event(observed, 'Warning', REFUSED, refusalMessage(err));
  }

  event(object: IronCoreMachine, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.recorder.event({ object, type, reason, message });
  }
}

const REFUSED_BY_RUNTIME = 'RuntimeRefused';
/** Reason of the condition and the Event about what the API server refuses. */
const REFUSED = 'ApiServerRefused';

function refusalMessage({ message }: ApiError): string {
  return (
    `The API server rejects a request for this object: ${message}. It is retried. Apply deploy/rbac/ironcore-machines.yaml if a ` +
    'permission is missing, or change the quota, webhook or policy that rejects it'
  );
}

/** Codes that say nothing about what was asked. */
const UNREACHABLE: ReadonlySet<string> = new Set(['Unavailable', 'DeadlineExceeded', 'Canceled', 'Unimplemented']);
