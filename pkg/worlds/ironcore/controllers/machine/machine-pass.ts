import type { IronCoreMachine } from '../../api/machine.ts';
import type { PoolRuntime } from '../../runtime/gated-runtime.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import type { Finalizer } from '../../../../work/reconcile/finalizer.ts';
import type { Step } from '../../../../work/reconcile/result.ts';
import type { IronCoreMachineControllerDeps } from './machine-controller.ts';
import type { MissingMachines } from './missing-machines.ts';
import type { Rechecks } from './rechecks.ts';
import type { Reports } from './reports.ts';
import type { RuntimeClasses } from './runtime-classes.ts';
import type { Uncertainty } from './uncertainty.ts';

export interface IronCorePass {
  readonly observed: IronCoreMachine;
  readonly isGoing: boolean;
  readonly poolName: string;
  /** Empty for a Machine that is being deleted, and whose MachinePool is gone. */
  readonly poolUID: string;
  readonly runtime: PoolRuntime;
  readonly signal: AbortSignal;
  /** What the runtime has for the Machine, once it was asked. */
  existing: readonly RuntimeMachine[];
  /** Name of the runtime, if it does not show the machine that is known. */
  answering: string | undefined;
  /**
   * How long it stays uncertain what the runtime has, as step certainty found. Steps after it do not look at the clock again: what becomes
   * certain meanwhile was not checked.
   */
  uncertainMs: number;
}

/** A part of a pass. It writes what others have to know before it sends a request to the runtime, and the status as soon as it has changed. */
export type IronCoreStep = Step<IronCorePass>;

export interface PassCollaborators extends IronCoreMachineControllerDeps {
  readonly finalizer: Finalizer<IronCoreMachine>;
  readonly reports: Reports;
  readonly uncertainty: Uncertainty;
  readonly missing: MissingMachines;
  readonly runtimeClasses: RuntimeClasses;
  readonly rechecks: Rechecks;
}
