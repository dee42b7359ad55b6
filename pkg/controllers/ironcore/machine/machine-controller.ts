import { isDeepStrictEqual } from 'node:util';

import {
  networkInterfaceNameOf,
  type IronCoreMachine,
  type IronCoreMachineStatus,
} from '../../../apis/ironcore/machine.ts';
import type { IronCoreMachinePool } from '../../../apis/ironcore/machine-pool.ts';
import type { IronCoreNetworkInterface } from '../../../apis/ironcore/network-interface.ts';
import type { IronCoreVolume } from '../../../apis/ironcore/volume.ts';
import { isBeingDeleted, keyBeside, keyOf, refOf, type KubeObject } from '../../../apis/meta.ts';
import { CREATION_SENT_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Lister } from '../../../cache/lister.ts';
import { fromTimestamp, toTimestamp, type Clock } from '../../../clock/clock.ts';
import type { ObjectEvents } from '../../../events/event-sink.ts';
import { CONTROL, GateClosedError } from '../../../gate/gate.ts';
import { RuntimeError } from '../../../ironcore-runtime/error.ts';
import type { PoolRuntime } from '../../../ironcore-runtime/gated-runtime.ts';
import type { RuntimeMachine, WantedMachine } from '../../../ironcore-runtime/runtime.ts';
import type { Writer } from '../../../kube/client.ts';
import { ApiError, ignoreNotFound, isAlreadyExists } from '../../../kube/errors.ts';
import { replacing } from '../../../kube/merge-change.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, type MergePatch } from '../../../kube/patch.ts';
import { ironCoreMachines, ironCoreNetworkInterfaces, ironCoreVolumes, type Resource } from '../../../kube/resource.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { claimBy, networkInterfaceClaims, volumeClaims, type Claimable, type Claims } from './claims.ts';
import { decide, type Change, type Decision } from './decision.ts';
import { withDevices } from './devices.ts';
import { MACHINE_FINALIZER, MANAGED_BY_ANNOTATION, UID_LABEL } from './keys.ts';
import { isUpToDate, statusOf, type Said } from './status.ts';
import { surroundingsOf, type SurroundingsDeps } from './surroundings.ts';
import { Uncertainty } from './uncertainty.ts';
import { wantedOf, type Wanted } from './wanted.ts';

/** What Machines are made real with. */
export interface MachineControllerDeps extends SurroundingsDeps {
  /** Index: `pool`. */
  readonly machines: Lister<IronCoreMachine>;
  readonly pools: Lister<IronCoreMachinePool>;
  /** Indexes of both: `user`, the UIDs of the Machines that have claimed them or that they were made for. */
  readonly volumes: Lister<IronCoreVolume>;
  readonly networkInterfaces: Lister<IronCoreNetworkInterface>;
  /** By pool. Machines of others are not looked at. */
  readonly runtimes: ReadonlyMap<string, PoolRuntime>;
  readonly writer: Pick<Writer, 'create' | 'patch' | 'delete'>;
  readonly recorder: ObjectEvents<IronCoreMachine>;
  readonly clock: Clock;
  /** Something is on its way at the runtime of a pool: it is to be looked at soon. */
  readonly hurry: (pool: string) => void;
}

/** How soon something that was begun at a runtime is looked at again. */
const SOON_MS = 1_000;
/** More machines that vanish at once are no mishap: the runtime has lost its state, or is another one, and what it had may come back. */
const MOST_LOST = 5;
/** How often what no watch tells of is looked for: Secrets, prefixes. */
const LOOK_AGAIN_MS = 5_000;

/** One pass over one Machine. */
interface Pass {
  readonly observed: IronCoreMachine;
  readonly poolName: string;
  /** Empty for a Machine that is being deleted, and whose MachinePool is gone. */
  readonly poolUID: string;
  readonly runtime: PoolRuntime;
  readonly signal: AbortSignal;
}

/**
 * Makes Machines real at the runtimes of their pools. A pass looks at everything, decides one thing, does it, and tells:
 *
 *   finalizer, devices ─▶ claims ─▶ what there is at the runtime ─▶ decision.ts ─▶ doing it ─▶ status ─▶ what is no longer used
 */
export class IronCoreMachineController {
  readonly #deps: MachineControllerDeps;
  readonly #uncertainty: Uncertainty;

  constructor(deps: MachineControllerDeps) {
    this.#deps = deps;
    this.#uncertainty = new Uncertainty(deps);
  }

  /** One pass over one Machine. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { machines, pools, runtimes } = this.#deps;
    const observed = machines.get(key);
    const poolName = observed?.spec.machinePoolRef?.name ?? '';
    const runtime = runtimes.get(poolName);
    if (observed === undefined || runtime === undefined) return stop;
    const { annotations, finalizers = [] } = observed.metadata;
    if (annotations?.[MANAGED_BY_ANNOTATION] !== undefined) return stop;
    const isHeld = finalizers.includes(MACHINE_FINALIZER);
    if (isBeingDeleted(observed) && !isHeld) return stop;
    const pool = pools.get(poolName);
    const isGoing = isBeingDeleted(observed);
    if (pool === undefined && !isGoing) return waitFor('the MachinePool to be created');
    if (!isGoing && (await this.#prepare(observed, signal))) return requeue(0, 'the Machine to be seen');

    const pass = { observed, poolName, poolUID: pool?.metadata.uid ?? '', runtime, signal };
    try {
      return await this.#run(pass);
    } catch (err) {
      if (err instanceof RuntimeError && !signal.aborted) await this.#tellTrouble(pass, err);
      throw err;
    }
  }

  /** Adds the finalizer, and devices to volumes that have none. Says whether there was something to add. */
  async #prepare(observed: IronCoreMachine, signal: AbortSignal): Promise<boolean> {
    const { finalizers = [] } = observed.metadata;
    const volumes = withDevices(observed.spec.volumes ?? []);
    const isHeld = finalizers.includes(MACHINE_FINALIZER);
    const isComplete = volumes === undefined || isDeepStrictEqual(volumes, observed.spec.volumes);
    if (isHeld && isComplete) return false;
    const change: MergePatch<IronCoreMachine> = {
      ...(!isHeld && { metadata: { finalizers: [...finalizers, MACHINE_FINALIZER] } }),
      ...(!isComplete && { spec: { volumes } }),
    };
    await this.#write(observed, change, signal);
    return true;
  }

  async #run(pass: Pass): Promise<StepResult> {
    const { observed, runtime, poolUID, signal } = pass;
    const { uid } = observed.metadata;
    const isGoing = isBeingDeleted(observed);
    // Before anything is claimed: what the runtime has may still use what the Machine no longer names.
    const existing = await runtime.machines({ labels: { [UID_LABEL]: uid } }, signal);
    if (existing.length > 0) this.#uncertainty.forget(uid);
    else if ((observed.status?.machineID ?? '') !== '') this.#uncertainty.vanished(uid, isGoing);
    else this.#uncertainty.recall(uid, fromTimestamp(observed.metadata.annotations?.[CREATION_SENT_ANNOTATION]));
    if (!isGoing) await this.#claim(pass, existing);
    const wanted = isGoing ? NOTHING : await this.#wanted(pass, existing.length > 0);
    const decision = decide({
      machine: observed,
      poolUID,
      wanted,
      networkInterfaceUIDs: this.#uidsOf(observed),
      existing,
      uncertainMs: this.#uncertainty.leftMs(uid),
    });
    return await this.#do(pass, decision);
  }

  async #wanted({ observed, runtime, signal }: Pass, isThere: boolean): Promise<Wanted> {
    const runtimeClasses = isThere ? [] : await runtime.classes(signal);
    const wanted = wantedOf(observed, await surroundingsOf(observed, runtimeClasses, this.#deps, signal));
    // Of a machine that is there neither its class changes nor what it was started with.
    const { runtimeClass, ignition } = NOTHING;
    return isThere ? { ...wanted, runtimeClass, ignition } : wanted;
  }

  async #do(pass: Pass, decision: Decision): Promise<StepResult> {
    switch (decision.kind) {
      case 'wait':
        await this.#tell(pass, { waits: decision.waits });
        return requeue(LOOK_AGAIN_MS, decision.waits.map(({ message }) => message).join('; '));
      case 'look':
        await this.#tell(pass, { problem: { reason: 'Pending', message: capital(decision.why) } });
        return requeue(Math.min(decision.afterMs, LOOK_AGAIN_MS), decision.why);
      case 'create':
        return await this.#create(pass, decision.machine);
      case 'keep':
        return await this.#keep(pass, decision);
      case 'delete':
        return await this.#delete(pass, decision);
      case 'finish':
        return await this.#finish(pass);
    }
  }

  async #create(pass: Pass, machine: WantedMachine): Promise<StepResult> {
    const { observed, poolName, runtime, signal } = pass;
    const { uid } = observed.metadata;
    const { name: scheme } = await runtime.version(signal);
    const { machineID = '' } = observed.status ?? {};
    if (machineID !== '') {
      const lost = await this.#lostIn(pass);
      if (lost > MOST_LOST) {
        const message =
          `The runtime shows ${lost} machines of MachinePool ${poolName} no more: none is created anew while there are more than ` +
          `${MOST_LOST}. Bring them back, or delete Machines that are to be given up`;
        await this.#tell(pass, { problem: { reason: 'MachinesLost', message } });
        return requeue(LOOK_AGAIN_MS, message);
      }
      this.#event(
        observed,
        'Warning',
        'MachineLost',
        `The runtime has no ${machineID} any more: another one is created`,
      );
      await this.#tell(pass, { machineID: '' });
    }
    // Whoever comes after this process must not send another one too soon, nor let go of what the machine uses. The note itself may have no
    // answer: nothing was sent then.
    this.#uncertainty.certain(uid);
    const marked = await this.#markCreationSent(observed, signal);
    if (marked === undefined || isBeingDeleted(marked)) return requeue(0, 'the deletion of the Machine');
    this.#uncertainty.creating(uid);
    let id: string;
    try {
      id = await runtime.create(keyOf(observed), machine, signal);
    } catch (err) {
      const isUnsent = err instanceof GateClosedError;
      if (isUnsent || (err instanceof RuntimeError && !err.unanswered)) this.#uncertainty.certain(uid);
      throw err;
    }
    this.#deps.hurry(poolName);
    await this.#tell(pass, { machineID: `${scheme}://${id}` });
    this.#event(observed, 'Normal', 'Created', `Created machine ${id} in MachinePool ${poolName}`);
    // Switched off, where it is to be, and told what became of it.
    return requeue(0, 'the machine to be seen');
  }

  /** How many machines of the pool the runtime does not show although they were made: of its whole list, whatever it makes of labels. */
  async #lostIn({ poolName, runtime, signal }: Pass): Promise<number> {
    const shown = new Set((await runtime.machines({}, signal)).map(({ metadata }) => metadata.id));
    const left = this.#deps.machines.byIndex('pool', poolName).filter((one) => !isBeingDeleted(one));
    const ids = left.map(({ status }) => status?.machineID ?? '');
    return ids.filter((id) => id !== '' && !shown.has(id.slice(id.indexOf('://') + '://'.length))).length;
  }

  /** Resolves with the Machine as it is now; undefined when it is gone. */
  async #markCreationSent(observed: IronCoreMachine, signal: AbortSignal): Promise<IronCoreMachine | undefined> {
    const { clock, writer } = this.#deps;
    const annotations = { [CREATION_SENT_ANNOTATION]: toTimestamp(clock.now()) };
    const patch = mergePatch(observed, { metadata: { annotations } });
    return await writer.patch('change', ironCoreMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
  }

  async #keep(pass: Pass, decision: Decision & { readonly kind: 'keep' }): Promise<StepResult> {
    const { observed, poolName, runtime, signal } = pass;
    const { machine, duplicates, changes, waits } = decision;
    const { id } = machine.metadata;
    for (const duplicate of duplicates) {
      await runtime.delete(keyOf(observed), duplicate, signal).catch(ignoring('NotFound'));
      const message = `The runtime has another machine for it: ${duplicate} is deleted, ${id} is kept`;
      this.#event(observed, 'Warning', 'DuplicateMachine', message);
    }
    for (const change of changes) await this.#change(pass, id, change);
    const hasChanged = duplicates.length + changes.length > 0;
    const [seen = machine] = hasChanged ? await runtime.machines({ id }, signal) : [machine];
    const { name: scheme } = await runtime.version(signal);
    await this.#tell(pass, { seen: isUpToDate(seen) ? seen : undefined, machineID: `${scheme}://${id}`, waits });
    await this.#noteHandles(pass, seen);
    if (hasChanged) this.#deps.hurry(poolName);
    // What takes the place of something waits until that is gone.
    if (hasChanged) return requeue(SOON_MS, 'what was changed at the runtime');
    return waits.length > 0 ? requeue(LOOK_AGAIN_MS, waits.map(({ message }) => message).join('; ')) : stop;
  }

  async #change({ observed, runtime, signal }: Pass, id: string, change: Change): Promise<void> {
    const of = keyOf(observed);
    switch (change.kind) {
      case 'detachVolume':
        return await runtime.detachVolume(of, id, change.name, signal).catch(ignoring('NotFound'));
      case 'detachNetworkInterface':
        return await runtime.detachNetworkInterface(of, id, change.name, signal).catch(ignoring('NotFound'));
      case 'attachVolume':
        return await runtime.attachVolume(of, id, change.volume, signal).catch(ignoring('AlreadyExists'));
      case 'updateVolume':
        return await runtime.updateVolume(of, id, change.volume, signal);
      case 'attachNetworkInterface':
        return await runtime
          .attachNetworkInterface(of, id, change.networkInterface, signal)
          .catch(ignoring('AlreadyExists'));
      case 'power':
        return await runtime.setPower(of, id, change.power, signal);
      case 'annotate':
        return await runtime.annotate(of, id, change.annotations, signal);
    }
  }

  async #delete(pass: Pass, { left, ids }: Decision & { readonly kind: 'delete' }): Promise<StepResult> {
    const { observed, poolName, runtime, signal } = pass;
    for (const id of ids) await runtime.delete(keyOf(observed), id, signal).catch(ignoring('NotFound'));
    this.#uncertainty.certain(observed.metadata.uid);
    this.#deps.hurry(poolName);
    const [first] = left;
    const message = `Waiting for machine ${first?.metadata.id ?? ''} to be gone`;
    await this.#tell(pass, { problem: { reason: 'Terminating', message } }, { state: 'Terminating' });
    return requeue(SOON_MS, message);
  }

  /** Nothing is left at the runtime: what was used is free again, and the Machine may go. */
  async #finish({ observed, signal }: Pass): Promise<StepResult> {
    const { volumes, networkInterfaces } = this.#deps;
    const { uid, finalizers = [] } = observed.metadata;
    for (const volume of volumes.byIndex('user', uid)) await this.#release(observed, ironCoreVolumes, volume, signal);
    for (const nic of networkInterfaces.byIndex('user', uid)) {
      await this.#release(observed, ironCoreNetworkInterfaces, nic, signal);
    }
    const left = finalizers.filter((one) => one !== MACHINE_FINALIZER);
    await this.#write(observed, { metadata: { finalizers: left } }, signal, 'destroy');
    this.#uncertainty.forget(uid);
    return stop;
  }

  /** Takes what the Machine names, makes what is to be made for it, and lets go of what neither it nor its machine uses any more. */
  async #claim({ observed, signal }: Pass, existing: readonly RuntimeMachine[]): Promise<void> {
    const { volumes, networkInterfaces, classes } = this.#deps;
    const { spec } = observed;
    const names = (entries: readonly { readonly name: string }[] = []): Set<string> =>
      new Set(entries.map(({ name }) => name));
    const [volumeNames, nicNames] = [names(spec.volumes), names(spec.networkInterfaces)];
    const isCertain = this.#uncertainty.leftMs(observed.metadata.uid) === 0;
    const uses = (kind: 'volumes' | 'networkInterfaces', named: Set<string>): boolean =>
      existing.some((one) => [...one.spec[kind], ...one.status[kind]].some(({ name }) => !named.has(name)));
    const ofVolumes = volumeClaims(
      observed,
      classes.get(spec.machineClassRef.name),
      this.#claimable(observed, volumes, isCertain && !uses('volumes', volumeNames)),
    );
    await this.#carryOut(observed, ironCoreVolumes, ofVolumes, signal);
    const mayLetGo = isCertain && !uses('networkInterfaces', nicNames);
    const ofNICs = networkInterfaceClaims(observed, this.#claimable(observed, networkInterfaces, mayLetGo));
    await this.#carryOut(observed, ironCoreNetworkInterfaces, ofNICs, signal);
  }

  #claimable<T extends KubeObject>(observed: IronCoreMachine, all: Lister<T>, mayLetGo: boolean): Claimable<T> {
    const own = all.byIndex('user', observed.metadata.uid);
    return { get: (name) => all.get(keyBeside(observed, name)), own, mayLetGo };
  }

  async #carryOut<T extends IronCoreVolume | IronCoreNetworkInterface>(
    observed: IronCoreMachine,
    resource: Resource<T>,
    claims: Claims<T>,
    signal: AbortSignal,
  ): Promise<void> {
    const { writer } = this.#deps;
    const claim = claimBy(observed);
    for (const object of claims.claim) {
      const spec = resource.kind === 'Volume' ? { claimRef: claim } : { machineRef: claim, providerID: null };
      await this.#patch(resource, object, { spec }, signal);
    }
    for (const object of claims.create) {
      await writer.create('create', resource, object, { signal }).catch((err: unknown) => {
        if (isAlreadyExists(err)) return;
        // A quota, or a webhook: the machine that there is is looked after all the same.
        if (!ApiError.is(err, 'Forbidden', 'Invalid', 'BadRequest')) throw err;
        const { kind } = resource;
        const message = `${kind} ${object.metadata.name} cannot be made: ${err.message}`;
        this.#event(observed, 'Warning', `${kind}NotReady`, message);
      });
    }
    for (const object of claims.release) await this.#release(observed, resource, object, signal);
    for (const object of claims.delete) {
      const { uid } = object.metadata;
      await writer.delete('destroy', resource, refOf(object), { uid }, { signal }).catch(ignoreNotFound);
    }
  }

  async #release<T extends IronCoreVolume | IronCoreNetworkInterface>(
    { metadata }: IronCoreMachine,
    resource: Resource<T>,
    object: T,
    signal: AbortSignal,
  ): Promise<void> {
    const spec = object.spec as { claimRef?: { uid: string }; machineRef?: { uid: string } } | undefined; // Of either kind.
    if ((spec?.claimRef ?? spec?.machineRef)?.uid !== metadata.uid) return;
    const free = resource.kind === 'Volume' ? { claimRef: null } : { machineRef: null, providerID: null };
    await this.#patch(resource, object, { spec: free }, signal);
  }

  /** What the runtime calls the NetworkInterfaces of a Machine is noted at them. */
  async #noteHandles({ observed, signal }: Pass, { status }: RuntimeMachine): Promise<void> {
    for (const entry of observed.spec.networkInterfaces ?? []) {
      const nic = this.#deps.networkInterfaces.get(keyBeside(observed, networkInterfaceNameOf(observed, entry)));
      if (nic?.spec?.machineRef?.uid !== observed.metadata.uid) continue;
      const handle = status.networkInterfaces.find(({ name }) => name === entry.name)?.handle ?? '';
      if (handle === '' || handle === nic.spec.providerID) continue;
      await this.#patch(ironCoreNetworkInterfaces, nic, { spec: { providerID: handle } }, signal);
    }
  }

  #uidsOf(observed: IronCoreMachine): ReadonlyMap<string, string> {
    const names = (observed.spec.networkInterfaces ?? []).map((entry) => networkInterfaceNameOf(observed, entry));
    return new Map(
      names.flatMap((name) => {
        const nic = this.#deps.networkInterfaces.get(keyBeside(observed, name));
        return nic === undefined ? [] : [[name, nic.metadata.uid] as const];
      }),
    );
  }

  async #tellTrouble(pass: Pass, err: RuntimeError): Promise<void> {
    const reason = UNREACHABLE.has(err.code) ? 'RuntimeUnreachable' : 'RuntimeRefused';
    await this.#tell(pass, { problem: { reason, message: `MachinePool ${pass.poolName}: ${err.message}` } });
  }

  /** Writes the status, if it is another one, and tells of a new reason for which it is not ready. */
  async #tell(
    { observed, signal }: Pass,
    said: Partial<Said>,
    more: Partial<IronCoreMachineStatus> = {},
  ): Promise<void> {
    const { machines, clock, writer } = this.#deps;
    // A claim or a finalizer may have been written since.
    const current = machines.get(keyOf(observed)) ?? observed;
    if (current.metadata.uid !== observed.metadata.uid) return;
    const nothing = { seen: undefined, machineID: undefined, waits: [], problem: undefined };
    const after = { ...statusOf({ ...nothing, ...said, machine: current }, clock.now()), ...more };
    const change = replacing<IronCoreMachineStatus>(current.status ?? {}, after);
    if (change === null || Object.keys(change).length === 0) return;
    const patch = statusPatch(current, change);
    await writer.patch('change', ironCoreMachines, refOf(current), patch, { signal }).catch(ignoreNotFound);
    const [was, is] = [current.status, after].map((status) => status?.conditions?.find(({ type }) => type === 'Ready'));
    const isWorth =
      said.waits !== undefined && said.waits.length > 0 ? said.seen === undefined : said.problem !== undefined;
    if (isWorth && is !== undefined && was?.message !== is.message) {
      this.#event(observed, is.reason === 'Terminating' ? 'Normal' : 'Warning', is.reason, is.message);
    }
  }

  #event(object: IronCoreMachine, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.recorder.event({ object, type, reason, message });
  }

  async #write(
    observed: IronCoreMachine,
    change: MergePatch<IronCoreMachine>,
    signal: AbortSignal,
    intent: 'change' | 'destroy' = 'change',
  ): Promise<void> {
    const clusters = intent === 'destroy' ? [CONTROL] : [];
    const patch = mergePatchIfUnchanged(observed, change);
    await this.#deps.writer
      .patch(intent, ironCoreMachines, refOf(observed), patch, { signal, clusters })
      .catch(ignoreNotFound);
  }

  /** A patch of what a Machine uses, unless it has changed meanwhile: two Machines that want one have one winner. */
  async #patch<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    change: object,
    signal: AbortSignal,
  ): Promise<void> {
    const patch = mergePatchIfUnchanged<KubeObject>(object, change);
    await this.#deps.writer.patch('change', resource, refOf(object), patch, { signal }).catch(ignoreNotFound);
  }
}

/** Nothing is missing. */
const NOTHING: Wanted = {
  runtimeClass: { ready: '' },
  ignition: { ready: new Uint8Array() },
  volumes: new Map(),
  networkInterfaces: new Map(),
  hostname: undefined,
};

/** Codes that say nothing about what was asked. */
const UNREACHABLE: ReadonlySet<string> = new Set(['Unavailable', 'DeadlineExceeded', 'Canceled', 'Unimplemented']);

function ignoring(...codes: ('NotFound' | 'AlreadyExists')[]): (err: unknown) => void {
  return (err) => {
    if (!RuntimeError.hasCode(err, ...codes)) throw err;
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
