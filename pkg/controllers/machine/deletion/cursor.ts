import { hasForceDeletionLabel } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { LastOperation, Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import { requeue, type StepResult } from '../../../work/reconcile/result.ts';
import type { OperationCode } from '../../machine-facts/operation-codes.ts';
import { codeInDeletion, setFailure, setOperation, wasNeverRequested } from '../../machine-facts/status.ts';
import { deletionStageOf, describeStage, hasReached, type DeletionStage } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';

export function isAt({ machine }: MachineContext, stage: DeletionStage): boolean {
  return deletionStageOf(machine) === stage;
}

/**
 * Before something that cannot be undone its marker must have been written: anyone who takes over then knows that it may have
 * happened. Returns the result that ends the pass while that is not so.
 */
export function untilRecorded({ observed }: MachineContext, stage: DeletionStage): StepResult | undefined {
  return hasReached(deletionStageOf(observed), stage) ? undefined : requeue(0, 'the deletion to be recorded');
}

type CursorDeps = Pick<Collaborators, 'clock' | 'trust' | 'machines' | 'readMachine'>;

/** So long a stage that this process has written is as good as a look at the Machine. */
const PROOF_MS = 5_000;

/** Moves deletions from stage to stage. Remembers what this process has written of that itself. */
export class DeletionCursor {
  readonly #deps: CursorDeps;
  /** By the UID of the Machine; `atMs` is monotonic. */
  readonly #moves = new Map<string, { readonly operation: LastOperation | undefined; readonly atMs: number }>();

  constructor(deps: CursorDeps) {
    this.#deps = deps;
  }

  /** Begins the deletion of the copy. `isNeverAsked`: it is certain that no provider was asked for a VM. */
  begin(ctx: MachineContext, isNeverAsked: boolean): void {
    this.#move(ctx, 'vm-status', '', isNeverAsked);
  }

  /** Moves the copy on. The marker is written with whatever else the pass changes. */
  advance(ctx: MachineContext, stage: DeletionStage, text = ''): void {
    this.#move(ctx, stage, text, wasNeverRequested(ctx.machine));
  }

  #move(ctx: MachineContext, stage: DeletionStage, text: string, isNeverAsked: boolean): void {
    const { machine, observed, pass } = ctx;
    const { clock } = this.#deps;
    const told = { type: 'Delete', state: 'Processing', description: describeStage(stage, text) } as const;
    setOperation(machine, isNeverAsked ? { ...told, errorCode: 'NeverAsked' } : told, clock.now());
    const operation = machine.status.lastOperation;
    // What changes nothing is not written, and proves nothing.
    if (isSameOperation(operation, observed.status?.lastOperation)) return;
    pass.afterWrite(() => this.#moves.set(machine.metadata.uid, { operation, atMs: clock.monotonicMs() }));
  }

  /** Shows why the copy stays at a stage; much the same text again is no write. True when it is news. */
  stay(ctx: MachineContext, stage: DeletionStage, text: string, errorCode?: OperationCode): boolean {
    this.#report(ctx, 'Failed', stage, text, errorCode);
    return ctx.machine.status.lastOperation?.description !== ctx.observed.status?.lastOperation?.description;
  }

  /**
   * Shows what goes on at a stage, and is no failure; much the same text again is no write. Its words must differ from those of `stay`,
   * or a failure that follows is no news.
   */
  resume(ctx: MachineContext, stage: DeletionStage, text: string): void {
    this.#report(ctx, 'Processing', stage, text);
  }

  #report(
    { machine }: MachineContext,
    state: 'Failed' | 'Processing',
    stage: DeletionStage,
    text: string,
    errorCode?: OperationCode,
  ): void {
    const told = { type: 'Delete', state, description: describeStage(stage, text) } as const;
    const code = codeInDeletion(machine, errorCode);
    setFailure(machine, code === undefined ? told : { ...told, errorCode: code }, this.#deps.clock.now());
  }

  /**
   * Whether the Node is left to itself: a deletion that is forced goes on although the target cluster cannot be reached (it is
   * hibernated, or deleted), as long as the control cluster can.
   */
  isNodeAbandoned(ctx: MachineContext): boolean {
    const { nodes } = ctx;
    if (nodes === undefined || !hasForceDeletionLabel(ctx.machine)) return false;
    const { trust } = this.#deps;
    return trust.trustedForMs([CONTROL]) > 0 && trust.trustedForMs([nodes.cluster]) === 0;
  }

  /**
   * Whether the very Machine that this pass looks at still exists and is still being deleted. Asked before what cannot be undone and is
   * done by name: a Machine that was re-created under the same name has a life of its own.
   *
   * | this pass sees                                              | the cache has        | the Machine is |
   * |-------------------------------------------------------------|----------------------|----------------|
   * | the very stage that this process wrote at most 5 s ago      | a Machine of its UID | ours           |
   * | that                                                        | another one, or none | read live      |
   * | anything else: the deletion was taken over, or is tried again | whatever           | read live      |
   *
   * A write names UID and resourceVersion, and its answer is what the pass sees: it says what a read would have said then. For another
   * Machine of that name only this process asks for a VM, and only when the cache has it. Throws ApiError.
   */
  async isStillOurs(
    { observed, key }: Pick<MachineContext, 'observed' | 'key'>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { uid } = observed.metadata;
    if (this.#isJustWritten(observed) && this.#deps.machines.get(key)?.metadata.uid === uid) return true;
    const live = await this.#deps.readMachine(observed, signal);
    return live?.metadata.uid === uid && isBeingDeleted(live);
  }

  #isJustWritten({ metadata: { uid }, status }: Machine): boolean {
    const move = this.#moves.get(uid);
    if (move === undefined || this.#deps.clock.monotonicMs() - move.atMs > PROOF_MS) return false;
    return isSameOperation(move.operation, status?.lastOperation);
  }

  forget(uid: string): void {
    this.#moves.delete(uid);
  }
}

function isSameOperation(a: LastOperation | undefined, b: LastOperation | undefined): boolean {
  return a?.description === b?.description && a?.state === b?.state && a?.lastUpdateTime === b?.lastUpdateTime;
}
