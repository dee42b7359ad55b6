import { FORCE_DELETION_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { parseGoBool } from '../../../apis/go-bool.ts';
import type { Clock } from '../../../clock/clock.ts';
import type { Trust } from '../../../gate/leader-gate.ts';
import { CONTROL } from '../../../gate/gate.ts';
import { requeue, type StepResult } from '../../../reconcile/result.ts';
import { setFailure, setOperation, wasNeverAsked } from '../../machines/status.ts';
import { deletionStageOf, describeStage, hasReached, type DeletionStage } from '../../machines/deletion-stage.ts';
import type { MachineContext } from '../context.ts';
import type { MachineAccess } from '../machine-access.ts';

/** Whether the copy is at this stage. */
export function isAt({ machine }: MachineContext, stage: DeletionStage): boolean {
  return deletionStageOf(machine) === stage;
}

/**
 * Before something that cannot be undone its marker must have been written: anyone who takes over then knows that it may have
 * happened. Returns the result that ends the pass while that is not so.
 */
export function untilRecorded({ observed }: MachineContext, stage: DeletionStage): StepResult | undefined {
  return hasReached(deletionStageOf(observed), stage) ? undefined : requeue(0, 'the marker to be recorded');
}

/** Whether the user asked for a deletion that waits for nothing. */
export function isForced({ machine }: Pick<MachineContext, 'machine'>): boolean {
  return parseGoBool(machine.metadata.labels?.[FORCE_DELETION_LABEL]) === true;
}

interface CursorDeps extends Pick<MachineAccess, 'readMachine'> {
  readonly clock: Clock;
  readonly trust: Pick<Trust, 'trustedForMs'>;
}

/** Moves deletions from stage to stage. Remembers which of them this process has moved itself. */
export class DeletionCursor {
  readonly #deps: CursorDeps;
  /** Their Machine was there, and being deleted, when that was written. */
  readonly #advanced = new Set<string>();

  constructor(deps: CursorDeps) {
    this.#deps = deps;
  }

  /** Begins the deletion of the copy. `isNeverAsked`: it is certain that no provider was asked for a VM. */
  begin(ctx: MachineContext, isNeverAsked: boolean): void {
    this.#move(ctx, 'vm-status', '', isNeverAsked);
  }

  /** Moves the copy on. The marker is written with whatever else the pass changes. */
  advance(ctx: MachineContext, stage: DeletionStage, text = ''): void {
    this.#move(ctx, stage, text, wasNeverAsked(ctx.machine));
  }

  #move({ machine, pass }: MachineContext, stage: DeletionStage, text: string, isNeverAsked: boolean): void {
    const told = { type: 'Delete', state: 'Processing', description: describeStage(stage, text) } as const;
    setOperation(machine, isNeverAsked ? { ...told, errorCode: 'NeverAsked' } : told, this.#deps.clock.now());
    pass.afterWrite(() => this.#advanced.add(machine.metadata.uid));
  }

  /** Shows why the copy stays at a stage; much the same text again is no write. True when it is news. */
  stay({ machine, observed }: MachineContext, stage: DeletionStage, text: string): boolean {
    const told = { type: 'Delete', state: 'Failed', description: describeStage(stage, text) } as const;
    setFailure(machine, wasNeverAsked(machine) ? { ...told, errorCode: 'NeverAsked' } : told, this.#deps.clock.now());
    return machine.status.lastOperation?.description !== observed.status?.lastOperation?.description;
  }

  /** Whether this process has moved the deletion of this Machine. */
  hasAdvanced({ metadata: { uid } }: Machine): boolean {
    return this.#advanced.has(uid);
  }

  /**
   * Whether the Node is left to itself: a deletion that is forced goes on although the target cluster cannot be reached (it is
   * hibernated, or deleted), as long as the control cluster can.
   */
  isNodeAbandoned(ctx: MachineContext): boolean {
    const { nodes } = ctx;
    if (nodes === undefined || !isForced(ctx)) return false;
    const { trust } = this.#deps;
    return trust.trustedForMs([CONTROL]) > 0 && trust.trustedForMs([nodes.cluster]) === 0;
  }

  /**
   * Whether the very Machine that this pass looks at still exists and is still being deleted, by a live read. Asked before what
   * cannot be undone and is done by name: a Machine that was re-created under the same name has a life of its own. Throws ApiError.
   */
  async isStillOurs({ observed }: Pick<MachineContext, 'observed'>, signal: AbortSignal): Promise<boolean> {
    const live = await this.#deps.readMachine(observed, signal);
    return live?.metadata.uid === observed.metadata.uid && isBeingDeleted(live);
  }

  /** The Machine is gone. */
  forget(uid: string): void {
    this.#advanced.delete(uid);
  }
}
