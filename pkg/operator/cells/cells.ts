import type { Registry } from 'prom-client';

import type { KubeObject } from '../../apis/meta.ts';
import { ConfigError } from '../../kube/client/config-error.ts';
import { ApiError } from '../../kube/client/errors.ts';
import type { Recorder } from '../../kube/events/recorder.ts';
import type { Endpoint } from '../../kube/client/endpoint.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { requeue, type StepResult, stop } from '../../work/reconcile/result.ts';
import { Worker } from '../../work/reconcile/worker.ts';
import { Backoff } from '../../work/workqueue/backoff.ts';
import { KeyedQueue } from '../../work/workqueue/keyed-queue.ts';
import { type CellsConfig, CellSettingsError } from '../config/cells.ts';
import type { Config } from '../config/config.ts';
import type { ManagerProcess } from '../manager-process.ts';
import type { Operator } from '../operator.ts';
import { TargetRefusedError } from '../target-refused-error.ts';
import { shardOf } from './assignment.ts';
import type { CellClaims } from './cell-claims.ts';
import { type CellClients, describeClash } from './cell-clients.ts';
import type { CellCaches } from './cell-caches.ts';
import type { CellNamespaces, LookedAt } from './cell-namespaces.ts';
import type { CommonTarget } from './common-target.ts';
import { cellEndpoint } from './cell-kubeconfig.ts';
import { cellSubject, RunningCell } from './running-cell.ts';
import { CELL_EVENTS, type CellEvent } from './events.ts';
import type { CellsService } from './service.ts';
import type { OtherManager, OtherManagers } from './other-managers.ts';
import type { SharedDrivers } from './shared-drivers.ts';
import type { HeldShard } from './shards.ts';

export interface CellsOptions {
  readonly process: ManagerProcess;
  readonly config: CellsConfig;
  readonly namespaces: CellNamespaces;
  readonly shared: CellCaches;
  readonly drivers: SharedDrivers;
  readonly commonTarget: CommonTarget | undefined;
  readonly claims: CellClaims;
  readonly others: OtherManagers;
  /** Told when a namespace is no cell any more. Must not throw. */
  readonly released: () => void;
  /** Told of each cell that has ended, with what it has counted. Never rejects. */
  readonly ended: (name: string, registry: Registry) => Promise<void>;
  /** Reports on the Namespaces. */
  readonly recorder: Recorder;
  /** The shard of this index, if it is held. */
  readonly holding: (shard: number) => HeldShard | undefined;
  readonly controllersOf: (operator: Operator) => readonly Controller[];
  /** What the process serves for all of them. */
  readonly service: CellsService | undefined;
  /** Whose names clients of that show. */
  readonly clients: CellClients;
}

/** One that was begun, or is about to. */
interface Running {
  readonly cell: RunningCell;
  readonly madeOf: string;
  readonly cannotBegin?: string;
}

/** A cell as it is, or why it is not. */
interface Known {
  readonly running?: Running;
  /** Last reported. */
  readonly refusal?: string;
  /** Why it could not begin: that is said until it has begun, also while this is tried again. */
  readonly notBegun?: string;
  /** Its Secrets have changed since they were last looked at. */
  readonly isUnchecked?: boolean;
  /** Its claim of the target cluster may be lost. */
  readonly isUnclaimed?: boolean;
}

/** What a cell has to be made of; a difference makes it another one. */
interface Wanted {
  readonly namespace: KubeObject;
  readonly config: Config;
  readonly shard: HeldShard;
  readonly madeOf: string;
}

const NAME = 'cells';
const CONCURRENCY = 20;
const PASS_TIMEOUT_MS = 120_000;
/** A cell whose Secret or settings are wrong is looked at so often, apart from changes of either. */
const RETRY_MS = 30_000;
/** What is aborted gets so long to end. */
const END_MS = 10_000;
/** What a cell that ends while the process goes on leaves to its running calls. */
const GRACE_MS = 20_000;
/** Whether the target cluster of all cells is still claimed is looked at so often. */
const LOOK_AGAIN_MS = 60_000;
/** What could not be claimed is tried again so often. */
const CLAIM_RETRY_MS = 5_000;

/** Looks after a cell for each selected namespace of the shards that are held: as a workqueue of namespaces, each of which is begun, ended, or made anew. */
export class Cells {
  readonly #options: CellsOptions;
  readonly #queue: KeyedQueue;
  readonly #known = new Map<string, Known>();
  /** Last reported of names of autoscalers that are also another one's. */
  readonly #clashes = new Map<string, string>();
  #isEnding = false;
  readonly #ending = new AbortController();

  constructor(options: CellsOptions) {
    const { clock, log } = options.process.options;
    const { random, metrics } = options.process;
    this.#options = options;
    const worker = new Worker({
      controller: NAME,
      reconcile: (key, signal) => this.#pass(key, signal),
      timeoutMs: PASS_TIMEOUT_MS,
      clock,
      random,
      log,
      metrics: metrics.reconcile,
    });
    this.#queue = new KeyedQueue({
      name: NAME,
      concurrency: CONCURRENCY,
      clock,
      backoff: new Backoff({ baseMs: 200, maxMs: RETRY_MS, random }),
      metrics: metrics.queue,
      work: worker.work,
    });
  }

  /** Those that run, by namespace. */
  get running(): ReadonlyMap<string, RunningCell> {
    return new Map(
      [...this.#known].flatMap(([namespace, known]) => (runs(known) ? [[namespace, known.running.cell]] : [])),
    );
  }

  /** Why cells do not run, by namespace. */
  get refused(): ReadonlyMap<string, string> {
    return new Map(
      [...this.#known].flatMap(([namespace, known]) => {
        const { refusal = known.notBegun } = known;
        return runs(known) || refusal === undefined ? [] : [[namespace, refusal]];
      }),
    );
  }

  /** What is said of cells that run without their target cluster, because another namespace has it; by namespace. */
  get taken(): ReadonlyMap<string, string> {
    return new Map([...this.#options.claims.taken].filter(([namespace]) => this.#runs(namespace)));
  }

  /** What of cells that run cannot be used, by namespace: they go on with what was valid before. */
  get outdated(): ReadonlyMap<string, string> {
    return new Map(
      [...this.#known].flatMap(([namespace, known]) =>
        runs(known) && known.refusal !== undefined ? [[namespace, known.refusal]] : [],
      ),
    );
  }

  /** Which names of autoscalers of cells that run are also another one's, by namespace. */
  get clashes(): ReadonlyMap<string, string> {
    return new Map([...this.#clashes].filter(([namespace]) => this.#runs(namespace)));
  }

  /** Hears of namespaces and their Secrets from now on. */
  watch(): void {
    const { namespaces, shared, config, service, clients } = this.#options;
    if (config.hasOneTarget) void this.#keepClaiming();
    if (service !== undefined) clients.onChange((namespace) => this.#tellClash(namespace));
    namespaces.onChange((name) => this.#queue.add(name));
    shared.onSecret([config.kubeconfigSecret, config.tokenSecret], (namespace) => {
      const known = this.#known.get(namespace);
      known?.running?.cell.kubeconfigChanged();
      if (known !== undefined) this.#known.set(namespace, { ...known, isUnchecked: true });
      this.#queue.add(namespace);
    });
  }

  /** A shard was gained: its cells begin. */
  gained(shard: HeldShard): void {
    for (const namespace of this.#of(shard)) {
      // What was seen before it was somebody else's says nothing.
      this.#options.others.forget(namespace);
      this.#queue.add(namespace);
    }
  }

  /** A shard is to be left, or the process ends: resolves when nothing of its cells is mutated any more. Never rejects. */
  async leave(shard: HeldShard, graceMs: number): Promise<void> {
    const left = [...this.#known].flatMap(([namespace, { running }]) =>
      running?.cell.shard === shard ? [{ namespace, cell: running.cell }] : [],
    );
    // What is begun meanwhile finds that the shard is not held any more.
    await Promise.all(left.map(({ namespace, cell }) => this.#end(namespace, cell, graceMs)));
  }

  /** Nothing is begun any more. */
  async end(graceMs: number): Promise<void> {
    this.#isEnding = true;
    this.#ending.abort(new Error('the process is stopping'));
    await this.#queue.stop(graceMs);
  }

  #of(shard: HeldShard): readonly string[] {
    const { namespaces, config } = this.#options;
    return namespaces.names().filter((name) => shardOf(name, config.shards) === shard.index);
  }

  #isOurs(name: string): boolean {
    const { holding, config } = this.#options;
    return !this.#isEnding && holding(shardOf(name, config.shards)) !== undefined;
  }

  #pass(name: string, signal: AbortSignal): Promise<StepResult> {
    const { looked } = this.#options.namespaces;
    return looked === undefined ? this.#reconcile(name, signal) : this.#look(looked, name, signal);
  }

  /** Where nobody tells of changes of a namespace. */
  async #look(looked: LookedAt, name: string, signal: AbortSignal): Promise<StepResult> {
    const { namespaces } = this.#options;
    const isOurs = (): boolean => this.#isOurs(name);
    if (!isOurs()) return await this.#reconcile(name, signal);
    // Looking may fail, also because of what it could not begin for.
    const { cannotBegin } = this.#known.get(name)?.running ?? {};
    if (cannotBegin === undefined) await looked.look(name, signal);
    const trouble = cannotBegin ?? looked.troubleOf(name);
    if (trouble === undefined || !isOurs()) {
      return sooner(await this.#reconcile(name, signal), looked.againMs(name), 'changes of the namespace');
    }
    const { running, notBegun } = this.#known.get(name) ?? {};
    if (running !== undefined) {
      await this.#end(name, running.cell, GRACE_MS);
      if (!isOurs()) return stop;
      if (notBegun !== undefined) this.#known.set(name, { refusal: notBegun });
    }
    const why = `${trouble}.`;
    this.#refuse(name, namespaces.get(name), 'MissingPermissions', why);
    this.#known.set(name, { ...this.#known.get(name), notBegun: why });
    return requeue(looked.againMs(name), 'permissions in the namespace');
  }

  /** Two managers would undo each other's work: nothing is done beside one that the namespace has for itself. */
  async #reconcile(name: string, signal: AbortSignal): Promise<StepResult> {
    const { others, namespaces } = this.#options;
    const namespace = namespaces.get(name);
    if (namespace === undefined || !this.#isOurs(name)) {
      others.forget(name);
      return await this.#reconcileAlone(name, signal);
    }
    const other = await this.#lookForOther(name, signal);
    const { running, ...known } = this.#known.get(name) ?? {};
    if (other?.kind === 'runs') {
      if (running !== undefined) await this.#end(name, running.cell, GRACE_MS);
      if (!this.#isOurs(name)) return stop;
      const text = `Another manager is running in the namespace: ${other.text}, and renewed. Stop it, or exclude the namespace from the cells.`;
      this.#refuse(name, namespace, 'ManagedByAnother', text, 'The Machines are left to it');
      return requeue(other.againMs, 'the end of another manager');
    }
    if (other?.kind === 'unclear' && running === undefined) {
      const refusal = `${other.text}: the cell begins when it is clear that no other manager renews one.`;
      this.#known.set(name, { ...known, refusal });
      return requeue(other.againMs, 'a sign of another manager');
    }
    signal.throwIfAborted();
    return sooner(await this.#reconcileAlone(name, signal), other?.againMs ?? RETRY_MS, 'a look for another manager');
  }

  /** Undefined: nobody answers, which ends nothing that runs. Throws ApiError. */
  async #lookForOther(name: string, signal: AbortSignal): Promise<OtherManager | undefined> {
    try {
      return await this.#options.others.look(name, signal);
    } catch (err) {
      if (!(err instanceof ApiError) || this.#known.get(name)?.running === undefined) throw err;
      return undefined;
    }
  }

  async #reconcileAlone(name: string, signal: AbortSignal): Promise<StepResult> {
    const isClaimed = await this.#claimIfLost(name, signal);
    const result = await this.#reconcileCell(name, signal);
    return isClaimed || result.kind === 'requeue' ? result : requeue(CLAIM_RETRY_MS, 'the claim of its target cluster');
  }

  async #reconcileCell(name: string, signal: AbortSignal): Promise<StepResult> {
    const wanted = this.#want(name);
    const { running, notBegun, isUnchecked = false } = this.#known.get(name) ?? {};
    if (wanted === undefined) {
      // Settings that are wrong do not end what runs by those that were right.
      if (this.#isRefused(name)) return requeue(RETRY_MS, 'valid settings');
      if (running !== undefined) await this.#end(name, running.cell, GRACE_MS);
      this.#known.delete(name);
      return stop;
    }
    const isSame = running?.madeOf === wanted.madeOf;
    if (isSame && !isUnchecked) {
      this.#accept(name);
      return stop;
    }
    // Before anything ends: a cell that could not begin again goes on.
    let endpoint: Endpoint | undefined;
    try {
      endpoint = await this.#endpointOf(name);
    } catch (err) {
      if (!(err instanceof ConfigError)) throw err;
      this.#refuse(name, wanted.namespace, 'InvalidKubeconfig', `${err.message}.`);
      return requeue(RETRY_MS, 'a usable kubeconfig');
    }
    signal.throwIfAborted();
    this.#accept(name);
    if (isSame) return stop;
    if (running !== undefined) await this.#end(name, running.cell, GRACE_MS);
    if (notBegun !== undefined) this.#known.set(name, { notBegun });
    this.#begin(name, wanted, endpoint);
    return stop;
  }

  /** A cell whose target cluster has become that of another one ends; one that begins then waits for it. Whether that is settled. */
  async #claimIfLost(name: string, signal: AbortSignal): Promise<boolean> {
    const { running, isUnclaimed = false } = this.#known.get(name) ?? {};
    if (running === undefined || !isUnclaimed) return true;
    const { claims } = this.#options;
    const { setBackMs } = claims;
    try {
      await running.cell.claim(signal);
    } catch (err) {
      if (!(err instanceof ApiError)) throw err;
      if (!(err instanceof TargetRefusedError)) return false;
      await this.#end(name, running.cell, GRACE_MS);
      return true;
    }
    if (claims.setBackMs !== setBackMs) return false;
    const { isUnclaimed: _claimed, ...known } = this.#known.get(name) ?? {};
    this.#known.set(name, known);
    return true;
  }

  /** Undefined: no cell is to be there, or its settings are wrong, which is reported. */
  #want(name: string): Wanted | undefined {
    const { namespaces, config, holding } = this.#options;
    const namespace = namespaces.get(name);
    const shard = holding(shardOf(name, config.shards));
    if (namespace === undefined || shard === undefined || this.#isEnding) {
      this.#accept(name);
      return undefined;
    }
    try {
      const annotations = namespace.metadata.annotations ?? {};
      const own = config.of(name, annotations);
      const settings = Object.entries(annotations).filter(([key]) => config.isSetting(key));
      const ordered = settings.toSorted(([a], [b]) => (a < b ? -1 : 1));
      const madeOf = JSON.stringify([namespace.metadata.uid, shard.index, ordered]);
      return { namespace, config: own, shard, madeOf };
    } catch (err) {
      if (!(err instanceof CellSettingsError)) throw err;
      this.#refuse(name, namespace, 'InvalidSettings', `${err.message}.`);
      return undefined;
    }
  }

  #begin(name: string, { namespace, config, shard, madeOf }: Wanted, endpoint: Endpoint | undefined): void {
    const { process, shared, drivers, commonTarget, claims, controllersOf, service, holding } = this.#options;
    const { maxTargetBytes } = this.#options.config;
    const isOurs = holding(shard.index) === shard && !this.#isEnding;
    if (!isOurs) return void this.#known.delete(name);
    const cell = new RunningCell({
      process,
      shared,
      drivers,
      commonTarget,
      namespace,
      config,
      endpoint,
      shard,
      maxTargetBytes,
      controllersOf,
      service,
      ...claims.of(namespace, () => this.#known.get(name)?.running?.cell.outages),
      ended: (registry) => this.#options.ended(name, registry),
      setBack: () => this.#claimAgain(name),
      cannotBegin: (why) => {
        const { running, ...known } = this.#known.get(name) ?? {};
        if (running?.cell !== cell) return;
        this.#known.set(name, { ...known, running: { ...running, cannotBegin: why } });
        this.#queue.add(name);
      },
      begun: () => {
        const { notBegun: _begun, ...known } = this.#known.get(name) ?? {};
        if (known.running?.cell === cell) this.#known.set(name, known);
      },
      broke: () =>
        void process.options.clock.schedule(RETRY_MS, () => {
          if (this.#known.get(name)?.running?.cell === cell) this.#remake(name);
        }),
    });
    this.#known.set(name, { ...this.#known.get(name), running: { cell, madeOf } });
    process.options.log.info({ cell: name, shard: shard.index, server: endpoint?.url }, 'started managing a cell');
    if (service !== undefined) this.#tellClash(name);
  }

  /** The Lease of the target cluster of all cells can be deleted by hand, and another process may take it. Never rejects. */
  async #keepClaiming(): Promise<void> {
    const { claims, process } = this.#options;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        await process.options.clock.sleep(LOOK_AGAIN_MS, signal);
        await claims.lookAgain(signal);
      } catch {
        // Ended, or refused: then each cell finds that out, and ends.
        if (signal.aborted) return;
        for (const name of this.running.keys()) if (!claims.taken.has(name)) this.#unclaimed(name);
      }
    }
  }

  #claimAgain(name: string): void {
    this.#options.claims.setBack();
    this.#unclaimed(name);
  }

  #unclaimed(name: string): void {
    const known = this.#known.get(name);
    if (known?.running === undefined) return;
    this.#known.set(name, { ...known, isUnclaimed: true });
    this.#queue.add(name);
  }

  /** Once for each that comes up, where the cell runs. */
  #tellClash(name: string): void {
    const running = this.#known.get(name)?.running;
    const clash = this.#options.clients.clashOf(name);
    const why = clash && describeClash(clash);
    if (running === undefined || why === this.#clashes.get(name)) return;
    if (clash === undefined || why === undefined) return void this.#clashes.delete(name);
    this.#clashes.set(name, why);
    const told = describeClash({ name: clash.name });
    this.#report(running.cell.namespace, 'AutoscalerNameTaken', `${told.replace(/^a/, 'A')}.`);
    this.#options.process.options.log.warn({ cell: name, err: why }, 'rejecting the autoscaler of a cell');
  }

  async #endpointOf(name: string): Promise<Endpoint | undefined> {
    const { process, shared, config: names } = this.#options;
    if (names.kubeconfigSecret === '') return undefined;
    const { reader } = process.clusters.control;
    const secrets = shared.secretsIn(name);
    const moved = (): void => this.#remake(name);
    return await cellEndpoint({ reader, secrets, namespace: name, names, clock: process.options.clock, moved });
  }

  /** What runs is of something else than what is wanted now. */
  #remake(name: string): void {
    const { running, ...known } = this.#known.get(name) ?? {};
    if (running === undefined) return;
    this.#known.set(name, { ...known, running: { ...running, madeOf: '' } });
    this.#queue.add(name);
  }

  /**
   * Never rejects, and does not resolve before the cell has ended: what does not end in time may still change something, so that nobody else may
   * begin. The process ends then, and its Leases run out.
   */
  async #end(name: string, cell: RunningCell, graceMs: number): Promise<void> {
    const { process, namespaces } = this.#options;
    const { clock, log } = process.options;
    const ended = new AbortController();
    void clock.sleep(graceMs + END_MS, ended.signal).then(
      () => process.lifecycle.fatal(`cell ${name} did not end in time`),
      () => undefined,
    );
    await cell.end(graceMs);
    this.#options.claims.ended(name);
    this.#clashes.delete(name);
    ended.abort(new Error('the cell has ended'));
    // One that is named is released by nobody but who restarts the process.
    if (namespaces.looked === undefined && namespaces.get(name) === undefined) {
      this.#options.claims.released(name);
      this.#reportRelease(cell.namespace);
      this.#options.released();
    }
    if (this.#known.get(name)?.running?.cell === cell) this.#known.delete(name);
    log.info({ cell: name }, 'stopped managing a cell');
  }

  #runs(name: string): boolean {
    return runs(this.#known.get(name));
  }

  #isRefused(name: string): boolean {
    return this.#known.get(name)?.refusal !== undefined;
  }

  #accept(name: string): void {
    const { refusal: _solved, isUnchecked: _checked, ...known } = this.#known.get(name) ?? {};
    if (known.running === undefined && known.notBegun === undefined) this.#known.delete(name);
    else this.#known.set(name, known);
  }

  #report(namespace: KubeObject, reason: CellEvent, message: string): void {
    this.#options.recorder.record({ subject: cellSubject(namespace), type: CELL_EVENTS[reason], reason, message });
  }

  /** Where the namespace itself cannot be read, nobody can be told of it there. */
  #refuse(
    name: string,
    namespace: KubeObject | undefined,
    reason: CellEvent,
    message: string,
    without = 'Machines are not managed',
  ): void {
    const known = this.#known.get(name) ?? {};
    if (known.refusal !== message) {
      const { process } = this.#options;
      const goesOn = runs(known) ? 'What was valid before stays in use' : without;
      if (namespace !== undefined) this.#report(namespace, reason, `${message} ${goesOn}.`);
      process.options.log.warn({ cell: name, err: message }, 'could not manage a cell');
    }
    this.#known.set(name, { ...known, refusal: message, isUnchecked: false });
  }

  /** Of a namespace that lost its label; of one that was removed nothing is left. */
  #reportRelease(namespace: KubeObject): void {
    const { shared, process, config } = this.#options;
    const { name } = namespace.metadata;
    const left = shared.machinesIn(name);
    if (left === 0) return;
    const message = `The labels of the namespace no longer match ${config.selector}: its ${left} Machines are not managed any more; their VMs keep running. Restore the label to manage them again.`;
    this.#report(namespace, 'CellReleased', message);
    process.options.log.warn({ cell: name, machines: left }, 'released a cell with Machines');
  }
}

/** Whether a cell runs; one that could not begin runs when it has begun. */
function runs(known: Known | undefined): known is Known & { readonly running: Running } {
  return known?.running !== undefined && known.notBegun === undefined;
}

/** The same result, and another pass after so long at the latest. */
function sooner(result: StepResult, afterMs: number, waitingFor: string): StepResult {
  return result.kind === 'requeue' && result.afterMs <= afterMs ? result : requeue(afterMs, waitingFor);
}
