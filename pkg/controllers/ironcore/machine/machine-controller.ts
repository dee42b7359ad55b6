import { isDeepStrictEqual } from 'node:util';

import { capital } from '../../../apis/capital.ts';
import { withFinalizer } from '../../../apis/finalizers.ts';
import type { IronCoreMachine, IronCoreMachineStatus } from '../../../apis/ironcore/machine.ts';
import type { IronCoreMachinePool } from '../../../apis/ironcore/machine-pool.ts';
import { isBeingDeleted, keyOf, refOf } from '../../../apis/meta.ts';
import { CREATION_SENT_ANNOTATION, CREATION_SENT_TO_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Lister } from '../../../cache/lister.ts';
import { fromTimestamp, toTimestamp } from '../../../clock/clock.ts';
import { GateClosedError } from '../../../gate/gate.ts';
import { RuntimeError } from '../../../ironcore-runtime/error.ts';
import type { PoolRuntime } from '../../../ironcore-runtime/gated-runtime.ts';
import type { RuntimeMachine, DesiredRuntimeMachine } from '../../../ironcore-runtime/runtime.ts';
import { ApiError, ignoreNotFound, isDenial } from '../../../kube/errors.ts';
import { mergePatch, mergePatchIfUnchanged, type MergePatch } from '../../../kube/patch.ts';
import { ironCoreMachines } from '../../../kube/resource.ts';
import { Finalizer } from '../../../reconcile/finalizer.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../reconcile/result.ts';
import type { PoolClaims } from '../pool-claims.ts';
import type { ServedPools } from '../served-pools.ts';
import { carryOut, deleteRuntimeMachine } from './carry-out.ts';
import { Claiming, type ClaimingDeps } from './claiming.ts';
import { decideMachine, waitsOf, type RuntimeChange, type MachineDecision, type Wait } from './decision.ts';
import { withDevices } from './devices.ts';
import { DeletionNotes } from './deletion-notes.ts';
import type { KeptUses } from './kept-uses.ts';
import {
  downwardOf,
  IRONCORE_MACHINE_FINALIZER,
  REQUESTED_AT_ANNOTATION,
  RUNTIME_GENERATION,
  UID_LABEL,
} from './keys.ts';
import { deletionLeftText, leftToOthers } from './left-to-others.ts';
import { MissingMachines, recipientOf, type Doubt, type MissingMachinesDeps } from './missing-machines.ts';
import { RECHECK_MS, Rechecks } from './rechecks.ts';
import { Reports, type ReportsDeps } from './reports.ts';
import { CLAIMED_BY_ANOTHER, type Rivals } from './rivals.ts';
import { RuntimeClasses } from './runtime-classes.ts';
import { isMachineOf, runtimeIDOf, runtimeNameOf } from './runtime-id.ts';
import { listRuntimeMachines, type Sightings } from './sightings.ts';
import { isUpToDate, runtimeStateName, type MachineProblem, type MachineStatusFacts } from './status.ts';
import { surroundingsOf, type SurroundingsDeps } from './surroundings.ts';
import { Uncertainty, type DeletionIntent } from './uncertainty.ts';
import { desiredRuntimeMachine, type DesiredMachine } from './desired-machine.ts';

export interface IronCoreMachineControllerDeps
  extends SurroundingsDeps, ReportsDeps, MissingMachinesDeps, Omit<ClaimingDeps, 'reports'> {
  /** Index: `pool`. */
  readonly machines: Lister<IronCoreMachine>;
  readonly pools: Lister<IronCoreMachinePool>;
  readonly keptUses: Pick<KeptUses, 'whyNot' | 'holderOf'>;
  readonly sightings: Pick<Sightings, 'saw' | 'has' | 'vouchesFor' | 'remembers' | 'deletionSent'>;
  /** Pools that nobody else serves: of others nothing is touched. */
  readonly served: Pick<ServedPools, 'has'>;
  readonly claims: Pick<PoolClaims, 'ownOf'>;
  readonly rivals: Pick<Rivals, 'has' | 'whyNot'>;
  /** By pool. Machines of others are not looked at. */
  readonly runtimes: ReadonlyMap<string, PoolRuntime>;
  /** Value of the label of Machines that are looked after; empty: all are. */
  readonly watchFilter: string;
  readonly writer: ClaimingDeps['writer'];
  /** Something is on its way at the runtime of a pool: it is to be looked at soon. */
  readonly hurry: (pool: string) => void;
}

/** How soon something that was begun at a runtime is looked at again. */
const SOON_MS = 1_000;

/** One pass over one Machine. */
interface Pass {
  readonly observed: IronCoreMachine;
  readonly poolName: string;
  /** Empty for a Machine that is being deleted, and whose MachinePool is gone. */
  readonly poolUID: string;
  readonly runtime: PoolRuntime;
  readonly signal: AbortSignal;
}

/** What the runtime has for a Machine. */
interface RuntimeObservation {
  readonly existing: readonly RuntimeMachine[];
  /** Name of the runtime; undefined: it was not asked. */
  readonly answering: string | undefined;
}

/**
 * Makes Machines real at the runtimes of their pools. A pass looks at everything, decides one thing, does it, and tells:
 *
 *   finalizer, devices ─▶ claims ─▶ what there is at the runtime ─▶ decision.ts ─▶ doing it ─▶ status ─▶ what is no longer used
 */
export class IronCoreMachineController {
  readonly #deps: IronCoreMachineControllerDeps;
  readonly #finalizer: Finalizer<IronCoreMachine>;
  readonly #uncertainty: Uncertainty;
  readonly #missing: MissingMachines;
  readonly #classes: RuntimeClasses;
  readonly #rechecks = new Rechecks();
  readonly #deletionNotes: DeletionNotes;
  readonly #reports: Reports;
  readonly #claiming: Claiming;

  constructor(deps: IronCoreMachineControllerDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, ironCoreMachines, IRONCORE_MACHINE_FINALIZER);
    this.#uncertainty = new Uncertainty(deps);
    this.#missing = new MissingMachines(deps);
    this.#classes = new RuntimeClasses(deps.clock);
    this.#deletionNotes = new DeletionNotes({ ...deps, missing: this.#missing });
    this.#reports = new Reports(deps);
    this.#claiming = new Claiming({ ...deps, reports: this.#reports });
  }

  /** One pass over one Machine. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { machines, pools, runtimes, served } = this.#deps;
    const observed = machines.get(key);
    const poolName = observed?.spec.machinePoolRef?.name ?? '';
    const runtime = runtimes.get(poolName);
    if (observed === undefined || runtime === undefined) return stop;
    if (!served.has(poolName)) return waitFor('the pool to be served by this process');
    const isHeld = this.#finalizer.holds(observed);
    const left = leftToOthers(observed, this.#deps.watchFilter);
    if (left !== undefined) {
      if (isBeingDeleted(observed) && isHeld)
        this.#reports.event(observed, 'Warning', 'ManagedByAnother', deletionLeftText(left));
      return stop;
    }
    if (isBeingDeleted(observed) && !isHeld) return stop;
    const pool = pools.get(poolName);
    const isGoing = isBeingDeleted(observed);
    if (pool === undefined && !isGoing) return waitFor('the MachinePool to be created');
    const pass = { observed, poolName, poolUID: pool?.metadata.uid ?? '', runtime, signal };
    try {
      if (!isGoing && (await this.#prepare(observed, signal))) return requeue(0, 'the cache to show the Machine');
      return await this.#run(pass);
    } catch (err) {
      if (isDenial(err) && !signal.aborted) await this.#reports.reportRefusal(observed, err, signal);
      if (err instanceof RuntimeError && !signal.aborted)
        await this.#reports.reportTrouble(observed, poolName, err, signal);
      throw err;
    }
  }

  /** Adds the finalizer, and devices to volumes that have none, and takes off that a look is asked for. Says whether there was something to do. */
  async #prepare(observed: IronCoreMachine, signal: AbortSignal): Promise<boolean> {
    const { annotations } = observed.metadata;
    const volumes = withDevices(observed.spec.volumes ?? []);
    const isHeld = this.#finalizer.holds(observed);
    const isComplete = volumes === undefined || isDeepStrictEqual(volumes, observed.spec.volumes);
    const isAskedFor = annotations?.[REQUESTED_AT_ANNOTATION] !== undefined;
    if (isHeld && isComplete && !isAskedFor) return false;
    const metadata = {
      ...(!isHeld && { finalizers: withFinalizer(observed, IRONCORE_MACHINE_FINALIZER) }),
      ...(isAskedFor && { annotations: { [REQUESTED_AT_ANNOTATION]: null } }),
    };
    const change: MergePatch<IronCoreMachine> = {
      ...((!isHeld || isAskedFor) && { metadata }),
      ...(!isComplete && { spec: { volumes } }),
    };
    const patch = mergePatchIfUnchanged(observed, change);
    await this.#deps.writer.patch('change', ironCoreMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
    return true;
  }

  async #run(pass: Pass): Promise<StepResult> {
    const { observed, poolName, poolUID, runtime, signal } = pass;
    const { uid } = observed.metadata;
    const isGoing = isBeingDeleted(observed);
    // One that nothing was ever made for is looked for at the runtime when it has all that it needs.
    if (!isGoing && this.#isNew(pass)) {
      await this.#claiming.claim(observed, [], false, signal);
      const waits = waitsOf({ desired: await this.#desired(pass, false) });
      if (waits.length > 0) return await this.#wait(pass, waits);
    }
    // Before anything is claimed: what the runtime has may still use what the Machine no longer names.
    const { existing, answering } = await this.#observe(pass);
    const rival = await this.#yieldToRival(pass, existing);
    if (rival !== undefined) return rival;
    if (existing.length > 0) this.#rechecks.release(uid);
    else if (answering !== undefined) {
      const doubt = this.#missing.wrongRuntime(observed, poolName, answering);
      if (doubt !== undefined) return await this.#hold(pass, doubt);
    } else if (wasSent(observed)) {
      const { name } = await runtime.version(signal);
      const doubt = this.#missing.sentElsewhere(observed, poolName, recipientOf(name, runtime));
      if (doubt !== undefined) return await this.#hold(pass, doubt);
    }
    if (existing.length > 0) {
      this.#uncertainty.forget(uid);
      this.#missing.found(observed);
    } else if ((observed.status?.machineID ?? '') !== '')
      this.#uncertainty.vanished(uid, this.#deletionIntentOf(observed));
    else this.#uncertainty.recall(uid, fromTimestamp(observed.metadata.annotations?.[CREATION_SENT_ANNOTATION]));
    const isCertain = this.#uncertainty.leftMs(uid) === 0;
    if (existing.length === 0) await this.#deletionNotes.write(observed, this.#missing.deletionOf(observed), signal);
    // Before anything is given back, made anew, or ended.
    if (existing.length === 0 && this.#missing.isMissed(observed) && (isCertain || this.#rechecks.isHeld(uid))) {
      const held = await this.#holdIfLost(pass);
      if (held !== undefined) return held;
    }
    if (!isGoing) await this.#claiming.claim(observed, existing, this.#uncertainty.leftMs(uid) === 0, signal);
    const desired = isGoing ? NOTHING : await this.#desired(pass, existing.length > 0);
    const decision = decideMachine({
      machine: observed,
      poolUID,
      downward: {
        labels: downwardOf(this.#deps.downwardAPI.machineLabels, observed.metadata),
        annotations: downwardOf(this.#deps.downwardAPI.machineAnnotations, observed.metadata),
      },
      claim: this.#deps.claims.ownOf(poolName),
      desired,
      networkInterfaceUIDs: this.#claiming.networkInterfaceUIDs(observed),
      existing,
      uncertainMs: this.#uncertainty.leftMs(uid),
    });
    return await this.#do(pass, decision, desired);
  }

  /**
   * All machines of the Machine: by the label with its UID, and by the id that it knows, for one whose labels were lost. With the name of the
   * runtime if it does not show the machine that is known.
   */
  async #observe({ observed, poolName, runtime, signal }: Pass): Promise<RuntimeObservation> {
    const { sightings } = this.#deps;
    const shown = await listRuntimeMachines(runtime, { labels: { [UID_LABEL]: observed.metadata.uid } }, signal);
    sightings.saw(poolName, shown);
    const labelled = shown.machines;
    const id = runtimeIDOf(observed);
    if (id === '' || labelled.some(({ metadata }) => metadata.id === id)) {
      return { existing: labelled, answering: undefined };
    }
    const { name: answering } = await runtime.version(signal);
    // Another runtime may have given the id to somebody else.
    if (answering !== runtimeNameOf(observed)) return { existing: labelled, answering };
    const known = await runtime.machines({ id }, signal);
    return { existing: [...labelled, ...known.filter((one) => isMachineOf(observed, one))], answering };
  }

  /** Whether nothing says that there is, or may be, a machine of the Machine. */
  #isNew({ observed: { metadata, status }, poolName }: Pass): boolean {
    const { rivals, sightings } = this.#deps;
    const { uid, annotations } = metadata;
    return (
      (status?.machineID ?? '') === '' &&
      annotations?.[CREATION_SENT_ANNOTATION] === undefined &&
      !this.#rechecks.isHeld(uid) &&
      this.#uncertainty.leftMs(uid) === 0 &&
      rivals.has(poolName) &&
      rivals.whyNot(poolName) === undefined &&
      !sightings.has(poolName, uid)
    );
  }

  /** Says what it waits for, and when that is looked for again. */
  async #wait(pass: Pass, waits: readonly Wait[]): Promise<StepResult> {
    await this.#report(pass, { waits });
    return this.#recheck(pass, waits);
  }

  #recheck({ observed }: Pass, waits: readonly Wait[]): StepResult {
    const { afterMs, text } = this.#rechecks.wait(observed.metadata.uid, waits);
    return requeue(afterMs, text);
  }

  /** Whether somebody else claims machines of the pool, or nobody has looked yet: then nothing is done. */
  async #yieldToRival(pass: Pass, existing: readonly RuntimeMachine[]): Promise<StepResult | undefined> {
    const { rivals, pools, keptUses, hurry } = this.#deps;
    const { poolName } = pass;
    const message = rivals.whyNot(poolName, pools.get(poolName), existing);
    if (message !== undefined) {
      const [seen] = existing;
      const isThere = seen !== undefined && !isBeingDeleted(pass.observed);
      return await this.#hold(
        pass,
        { reason: CLAIMED_BY_ANOTHER, message, ...(isThere && { status: 'Unknown' }) },
        seen,
      );
    }
    if (rivals.has(poolName)) return undefined;
    const why = keptUses.whyNot(poolName);
    if (why === undefined) hurry(poolName);
    else if (existing.length === 0 || isBeingDeleted(pass.observed)) {
      const unknown = `MachinePool ${poolName}: its runtime cannot list its machines: ${why}`;
      await this.#report(pass, { problem: { reason: 'RuntimeUnreachable', message: unknown } });
    }
    return requeue(SOON_MS, 'the first list of all machines of the runtime');
  }

  #deletionIntentOf(observed: IronCoreMachine): DeletionIntent {
    const id = runtimeIDOf(observed);
    // Somebody else has told it to go, such as its provider.
    if (id !== '' && this.#deps.sightings.vouchesFor(observed.spec.machinePoolRef?.name ?? '', { id })) return 'going';
    if (!isBeingDeleted(observed)) return 'stay';
    return this.#missing.isExpected(observed) ? 'going' : 'go';
  }

  /** Says why nothing is done, and that the look begins anew when that has ended. */
  async #hold(pass: Pass, { leftMs, ...problem }: MachineProblem & Pick<Doubt, 'leftMs'>, seen?: RuntimeMachine) {
    const { uid } = pass.observed.metadata;
    const afterMs = this.#rechecks.hold(uid, leftMs);
    this.#uncertainty.distrusted(uid);
    await this.#report(pass, { problem, seen }, seen === undefined ? notRunning(pass.observed) : {});
    return requeue(afterMs, problem.message);
  }

  /** Holds the Machine if the runtime shows too few of the pool's machines to be believed; undefined: it is. */
  async #holdIfLost(pass: Pass): Promise<StepResult | undefined> {
    const { observed, poolName, runtime, signal } = pass;
    const doubt = await this.#missing.lost(observed, poolName, runtime, signal);
    if (doubt !== undefined) return await this.#hold(pass, doubt);
    const { uid } = observed.metadata;
    // What a runtime that is believed again shows may come one after the other, and the last pass may have been a minute ago.
    if (this.#rechecks.release(uid)) this.#uncertainty.distrusted(uid);
    return undefined;
  }

  async #desired(pass: Pass, isThere: boolean): Promise<DesiredMachine> {
    const { observed, poolName, runtime, signal } = pass;
    const runtimeClasses = isThere ? [] : await this.#classes.of(poolName, runtime, signal);
    const wanted = desiredRuntimeMachine(observed, await surroundingsOf(observed, runtimeClasses, this.#deps, signal));
    // Of a machine that is there neither its class changes nor what it was started with.
    const { runtimeClass, ignition } = NOTHING;
    return isThere ? { ...wanted, runtimeClass, ignition } : wanted;
  }

  async #do(pass: Pass, decision: MachineDecision, { ignored }: Pick<DesiredMachine, 'ignored'>): Promise<StepResult> {
    switch (decision.kind) {
      case 'wait':
        return await this.#wait(pass, decision.waits);
      case 'look':
        await this.#report(
          pass,
          { problem: { reason: 'Pending', message: capital(decision.why) } },
          notRunning(pass.observed),
        );
        return requeue(Math.min(decision.afterMs, RECHECK_MS), decision.why);
      case 'create':
        if (ignored !== undefined) this.#reports.event(pass.observed, 'Warning', 'ImageNotUsed', ignored);
        return await this.#create(pass, decision.machine);
      case 'keep':
        return await this.#keep(pass, decision);
      case 'delete':
        return await this.#delete(pass, decision);
      case 'finish':
        return await this.#finish(pass);
    }
  }

  async #create(pass: Pass, machine: DesiredRuntimeMachine): Promise<StepResult> {
    const { observed, poolName, runtime, signal } = pass;
    const { uid } = observed.metadata;
    const { name: scheme } = await runtime.version(signal);
    const { machineID = '' } = observed.status ?? {};
    // That it is gone was decided on with what this process has seen. Whoever comes after it has not, and would hold the Machine; so the id
    // goes first, and with it that decision is kept. What was noted of the creation of the one before is old by then, and holds nothing up.
    if (machineID !== '') {
      this.#reports.event(
        observed,
        'Warning',
        'MachineLost',
        `The runtime no longer has ${machineID}; creating a new machine`,
      );
      await this.#report(pass, { machineID: '' });
    }
    // Whoever comes after this process must not send another one too soon, nor let go of what the machine uses. The note itself may have no
    // answer: nothing was sent then.
    this.#uncertainty.certain(uid);
    const marked = await this.#markCreation(observed, recipientOf(scheme, runtime), signal);
    if (marked === undefined || isBeingDeleted(marked)) return requeue(0, 'the deletion of the Machine');
    this.#uncertainty.creating(uid);
    let id: string;
    try {
      id = await runtime.create(keyOf(observed), machine, signal);
    } catch (err) {
      const isUnsent = err instanceof GateClosedError;
      if (isUnsent || (err instanceof RuntimeError && !err.unanswered)) {
        this.#uncertainty.certain(uid);
        // Where it stays, whoever comes after this process waits, and takes no other runtime for the one that it was sent to.
        await this.#markCreation(observed, undefined, signal).catch((why: unknown) => {
          if (!(why instanceof ApiError || why instanceof GateClosedError)) throw why;
        });
      }
      throw err;
    }
    this.#deps.hurry(poolName);
    await this.#report(pass, { machineID: `${scheme}://${id}` });
    this.#reports.event(observed, 'Normal', 'Created', `Created machine ${id} in MachinePool ${poolName}`);
    // Switched off, where it is to be, and told what became of it.
    return requeue(0, 'the runtime to list the machine');
  }

  /**
   * Notes that a creation is sent to a runtime, or, without one, that none was. Resolves with the Machine as it is now; undefined when it is
   * gone. Throws ApiError.
   */
  async #markCreation(
    observed: IronCoreMachine,
    recipient: string | undefined,
    signal: AbortSignal,
  ): Promise<IronCoreMachine | undefined> {
    const { clock, writer } = this.#deps;
    const annotations = {
      [CREATION_SENT_ANNOTATION]: recipient === undefined ? null : toTimestamp(clock.now()),
      [CREATION_SENT_TO_ANNOTATION]: recipient ?? null,
    };
    const patch = mergePatch(observed, { metadata: { annotations } });
    return await writer.patch('change', ironCoreMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
  }

  async #keep(pass: Pass, decision: MachineDecision & { readonly kind: 'keep' }): Promise<StepResult> {
    const { observed, poolName, runtime, signal } = pass;
    const { machine, duplicates, changes, waits } = decision;
    const { id } = machine.metadata;
    const isLate =
      (duplicates.length > 0 && !(await this.#isCurrent(observed, ({ status }) => status?.machineID ?? '', signal))) ||
      (changes.some(({ kind }) => kind !== 'annotate') &&
        // By what it says: not every API server counts the changes of a spec.
        !(await this.#isCurrent(observed, ({ spec }) => spec, signal)));
    if (isLate) return requeue(SOON_MS, 'the current version of the Machine');
    for (const duplicate of duplicates) {
      await deleteRuntimeMachine(runtime, keyOf(observed), duplicate, signal);
      const message = `The runtime has more than one machine for this Machine: deleting ${duplicate}, keeping ${id}`;
      this.#reports.event(observed, 'Warning', 'DuplicateMachine', message);
    }
    const seen = await this.#carryOut(pass, machine, changes);
    const hasChanged = duplicates.length + changes.length > 0;
    const { name: scheme } = await runtime.version(signal);
    await this.#report(pass, { seen: isUpToDate(seen) ? seen : undefined, machineID: `${scheme}://${id}`, waits });
    await this.#claiming.noteHandles(observed, seen, signal);
    if (hasChanged) this.#deps.hurry(poolName);
    // What takes the place of something waits until that is gone.
    if (hasChanged) return requeue(SOON_MS, 'the changes at the runtime to take effect');
    if (waits.length > 0) return this.#recheck(pass, waits);
    this.#rechecks.resume(observed.metadata.uid);
    return stop;
  }

  /**
   * Does at the runtime all that it does not refuse, and resolves with the machine as it is then. Throws what it refuses first, when the Machine
   * has told so.
   */
  async #carryOut(pass: Pass, machine: RuntimeMachine, changes: readonly RuntimeChange[]): Promise<RuntimeMachine> {
    const { observed, poolName, runtime, signal } = pass;
    const { id } = machine.metadata;
    let refusal: RuntimeError | undefined;
    const carried = async (change: RuntimeChange): Promise<void> => {
      try {
        await carryOut(runtime, keyOf(observed), id, change, signal);
      } catch (err) {
        if (!(err instanceof RuntimeError)) throw err;
        refusal ??= err;
      }
    };
    const others = changes.filter(({ kind }) => kind !== 'annotate');
    for (const change of others) {
      await carried(change);
      // Nobody knows what else would become of it.
      if (refusal?.unanswered === true) break;
    }
    let after = machine;
    // By its annotations a machine says which spec it is of, and which of its own generations has that.
    if (refusal === undefined && changes.length > 0) {
      if (others.length > 0) [after = machine] = await runtime.machines({ id }, signal);
      const annotations = {
        ...after.metadata.annotations,
        ...changes.find((one) => one.kind === 'annotate')?.annotations,
        [RUNTIME_GENERATION]: String(after.metadata.generation),
      };
      await carried({ kind: 'annotate', annotations });
      after = { ...after, metadata: { ...after.metadata, annotations } };
    }
    if (refusal === undefined) return after;
    // What is refused may be so for ever, and the machine may stop meanwhile.
    const seen = isUpToDate(machine) ? machine : undefined;
    if (!signal.aborted) await this.#reports.reportTrouble(observed, poolName, refusal, signal, { seen });
    throw refusal;
  }

  /** A cache that is late would have what was just attached detached, and the machine deleted that has just taken the place of another. */
  async #isCurrent(
    observed: IronCoreMachine,
    what: (machine: IronCoreMachine) => unknown,
    signal: AbortSignal,
  ): Promise<boolean> {
    const live = await this.#deps.reader.get(ironCoreMachines, refOf(observed), { signal }).catch(ignoreNotFound);
    return (
      live?.metadata.uid === observed.metadata.uid &&
      !isBeingDeleted(live) &&
      isDeepStrictEqual(what(live), what(observed))
    );
  }

  async #delete(pass: Pass, { left, ids }: MachineDecision & { readonly kind: 'delete' }): Promise<StepResult> {
    const { observed, poolName, runtime, signal } = pass;
    const { sightings, hurry } = this.#deps;
    const { uid } = observed.metadata;
    const [first] = left;
    const message = `Waiting for the runtime to delete machine ${first?.metadata.id ?? ''}`;
    await this.#report(pass, { problem: { reason: 'Terminating', message } }, { state: 'Terminating' });
    // Right before it is told to go, for whoever comes after this process: nothing in between may fail, and leave a note of what was never
    // sent. What it has accepted once stays so.
    if (ids.length > 0 && this.#missing.deletionOf(observed) !== 'accepted')
      await this.#deletionNotes.write(observed, 'sent', signal);
    let areAccepted = true;
    for (const id of ids) {
      const isAccepted = await deleteRuntimeMachine(runtime, keyOf(observed), id, signal).catch(
        async (err: unknown) => {
          await this.#takeBack(pass, first, err);
          throw err;
        },
      );
      if (isAccepted) sightings.deletionSent(poolName, id, uid);
      // One that was accepted before may be shown for a moment after it is gone.
      areAccepted &&= isAccepted || sightings.vouchesFor(poolName, { id });
    }
    this.#uncertainty.certain(uid);
    await this.#deletionNotes.write(observed, areAccepted ? 'accepted' : 'unanswered', signal);
    hurry(poolName);
    // One that shows a machine and says that it has none may do so for ever, and each time is noted. That it is gone wakes its Machine.
    return requeue(areAccepted ? SOON_MS : RECHECK_MS, message);
  }

  /** The runtime has not accepted that the machine goes. */
  async #takeBack(pass: Pass, shown: RuntimeMachine | undefined, err: unknown): Promise<void> {
    const { observed, poolName, signal } = pass;
    await this.#deletionNotes.takeBack(observed, err, signal);
    if (signal.aborted) return;
    if (!(err instanceof RuntimeError) || shown === undefined) return;
    const state = runtimeStateName(shown.status.state) ?? 'Pending';
    await this.#reports.reportTrouble(observed, poolName, err, signal, { state });
  }

  /** Nothing is left at the runtime: what was used is free again, and the Machine may go. */
  async #finish({ observed, signal }: Pass): Promise<StepResult> {
    const { uid } = observed.metadata;
    await this.#claiming.releaseAll(observed, signal);
    await this.#finalizer.remove(observed, signal, 'destroy').catch(ignoreNotFound);
    this.#uncertainty.forget(uid);
    this.#rechecks.release(uid);
    this.#rechecks.resume(uid);
    return stop;
  }

  async #report(
    { observed, signal }: Pass,
    said: Partial<MachineStatusFacts>,
    more: Partial<IronCoreMachineStatus> = {},
  ): Promise<void> {
    await this.#reports.report(observed, said, signal, more);
  }
}

/** Nothing is missing. */
const NOTHING: DesiredMachine = {
  runtimeClass: { ready: '' },
  ignition: { ready: new Uint8Array() },
  volumes: new Map(),
  networkInterfaces: new Map(),
  hostname: undefined,
  ignored: undefined,
};

/** The state of a Machine whose machine is not there, as far as the runtime shows: it was running perhaps. */
function notRunning(observed: IronCoreMachine): Partial<IronCoreMachineStatus> {
  return { state: isBeingDeleted(observed) ? 'Terminating' : 'Pending' };
}

/** Whether a creation was sent of which nobody knows what became. */
function wasSent({ metadata, status }: IronCoreMachine): boolean {
  return (status?.machineID ?? '') === '' && metadata.annotations?.[CREATION_SENT_TO_ANNOTATION] !== undefined;
}
