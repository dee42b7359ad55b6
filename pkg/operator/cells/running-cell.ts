import { Registry } from 'prom-client';

import type { KubeObject } from '../../apis/meta.ts';
import type { KubeMetrics } from '../../base/metrics/kube.ts';
import { heldWorkMetrics } from '../../base/metrics/held-work.ts';
import { HeldWork } from '../../health/held-work.ts';
import type { WorkInProgress } from '../../health/work-in-progress.ts';
import { reachPresent } from '../../kube/cache/reach-present.ts';
import type { Endpoint } from '../../kube/client/endpoint.ts';
import { machines, namespaces } from '../../kube/client/resource.ts';
import type { EventSubject } from '../../kube/events/correlator.ts';
import { subjectOf } from '../../kube/events/event-object.ts';
import { CONTROL } from '../../kube/gate/gate.ts';
import type { Outages } from '../../kube/gate/outages.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { cachingProcess, type Cell, targetsOf } from '../cell.ts';
import type { Config } from '../config/config.ts';
import { accessFor, showCredentialAge } from '../clusters.ts';
import { gateBehind } from '../election.ts';
import type { ManagerProcess } from '../manager-process.ts';
import { operatorMetrics } from '../metrics.ts';
import { Operator } from '../operator.ts';
import { probesOf } from '../probes.ts';
import { retryUntilDone } from '../retry-until-done.ts';
import type { LeaderWork } from '../process/leadership.ts';
import { CannotStartError } from '../process/lifecycle.ts';
import type { SharedTarget } from '../shared-target.ts';
import type { TargetCluster } from '../target-cluster.ts';
import type { TargetClusters } from '../target-clusters.ts';
import type { CellCaches, CellControl } from './cell-caches.ts';
import type { CommonTarget } from './common-target.ts';
import { openedNow } from './cell-fence.ts';
import type { CellsService } from './service.ts';
import type { SharedDrivers } from './shared-drivers.ts';
import type { HeldShard } from './shards.ts';
import { readClusterUID } from '../cluster-uid.ts';

/** What a cell is made of. */
export interface RunningCellOptions {
  readonly process: ManagerProcess;
  readonly shared: CellCaches;
  readonly drivers: SharedDrivers;
  /** The Namespace. */
  readonly namespace: KubeObject;
  /** For this namespace. */
  readonly config: Config;
  /** The target cluster of all cells; undefined: each has its own, or none. */
  readonly commonTarget: CommonTarget | undefined;
  /** Of its own target cluster; undefined: the cell has none. */
  readonly endpoint: Endpoint | undefined;
  readonly shard: HeldShard;
  /** See ClustersOptions. */
  readonly maxTargetBytes: number;
  readonly controllersOf: (operator: Operator) => readonly Controller[];
  /** What the process serves for all cells. */
  readonly service: CellsService | undefined;
  /**
   * Asked before anything is done with the target, whose Namespace kube-system has this UID: rejects while the cell must not have it. The text
   * is shown.
   */
  readonly claimTarget: (uid: string, signal: AbortSignal) => Promise<void>;
  /** The same of the target of all cells: rejects while it must not be that of this one, too. */
  readonly claimCommonTarget: (signal: AbortSignal) => Promise<void>;
  /** Asked by one that has no target: rejects while its Machines have Nodes in one. The text is shown. */
  readonly claimNoTarget: () => Promise<void>;
  /** The same of a workload cluster, to which the kubeconfig in this Secret leads. */
  readonly claimWorkload: (uid: string, secret: string, signal: AbortSignal) => Promise<void>;
  /** Told when it has read what it needs, and its work has begun. */
  readonly begun: () => void;
  /** Told when it cannot begin, and why; it is to be ended. */
  readonly cannotBegin: (why: string) => void;
  /** Told when it has ended; what it has counted can still be read. Never rejects. */
  readonly ended: (registry: Registry) => Promise<void>;
  /** Told when the control cluster was set back, and all of it has been read anew: who has which target may be forgotten. */
  readonly setBack: () => void;
  /** Told when its work has ended by an error that nobody expected; it is to be made anew. */
  readonly broke: () => void;
}

/** Name of the target within a cell, in metrics, logs and the gate. */
const TARGET = 'target';
const ROLE_FILE = 'deploy/rbac/target.yaml';
/**
 * With hundreds of targets, ending watches is most of what a process does while nothing happens. One that stalls is noticed within a minute and
 * a half, because it ends before, or because the bookmarks of each minute are missing; before anything is destroyed, the target is read again
 * anyway.
 */
const WATCH_S = { least: 70, spread: 16, bookmarked: { least: 280, spread: 40 } };
/** A target has few kinds to ask for, and hundreds of targets many connections; at rest, one is used. */
const PROBE_CONNECTIONS = 2;
/** With one request for each kind and probe, this would be most of what hundreds of targets are asked at rest. */
const HISTORY_FOR_MS = 290_000;
/** Work that needs no target, such as forced deletions, begins then at the latest. */
const LONGEST_WAIT_MS = 10_000;

/** The subject of Events about a cell: its Namespace, in that namespace. */
export function cellSubject(namespace: KubeObject): EventSubject {
  return { ...subjectOf(namespaces, namespace), namespace: namespace.metadata.name };
}

/** One namespace of Machines that is looked after, from when it is made until `end`. */
export class RunningCell {
  readonly registry = new Registry();
  readonly outages: Outages;
  readonly held: HeldWork;
  /** What would make it another cell. */
  readonly shard: HeldShard;
  readonly namespace: KubeObject;
  readonly #options: RunningCellOptions;
  readonly #targets: TargetClusters;
  readonly #control: CellControl;
  readonly #target: TargetCluster | undefined;
  readonly #operator: Operator;
  readonly #work: LeaderWork;
  readonly #ending = new AbortController();
  readonly #begun: Promise<void>;
  /** UID of Namespace kube-system of the target, once it was asked for. */
  #targetUID: string | undefined;

  constructor(options: RunningCellOptions) {
    const { process, shared, drivers, namespace, config, shard, controllersOf, service, maxTargetBytes } = options;
    const { clock, log: processLog } = process.options;
    const log = processLog.child({ cell: namespace.metadata.name });
    const metrics = operatorMetrics(this.registry);
    const { graceMs } = config.safety;
    this.#options = options;
    this.shard = shard;
    this.namespace = namespace;
    this.held = new HeldWork({ clock });
    const caching = cachingProcess(process, config);
    this.#control = shared.open({ config, caching, log, metrics, held: this.held });
    this.outages = this.#control.outages;
    heldWorkMetrics(this.registry, () => this.held.list());
    const own = {
      log,
      outages: this.outages,
      held: this.held,
      metrics: metrics.kube,
      maxBytes: maxTargetBytes,
      watchSeconds: WATCH_S,
      probeConnections: PROBE_CONNECTIONS,
      historyForMs: HISTORY_FOR_MS,
      claim: options.claimWorkload,
      servicesIn: namespace.metadata.name,
    };
    const targets = targetsOf(process, caching, own);
    this.#targets = targets;
    const { commonTarget } = options;
    this.#target = commonTarget?.for(caching) ?? this.#openTarget(targets, metrics.kube);
    if (commonTarget !== undefined && this.#target !== undefined) targets.share(this.#target);
    const fence = openedNow(shard.fence, clock.monotonicMs());
    const gate = gateBehind(fence, { clock, outages: this.outages, metrics: metrics.gate, graceMs });
    const cell: Cell = {
      config,
      log,
      registry: this.registry,
      metrics,
      outages: this.outages,
      held: this.held,
      control: accessFor(process.clusters.control, namespace.metadata.name),
      caches: this.#control.caches,
      ofControl: this.#control.ofControl,
      openCache: this.#control.openCache,
      targets,
      target: this.#target,
      elect: () => ({ gate, elector: shard.elector, fence }),
      firstRead: this.#firstRead(),
      sharedTarget: this.#sharedTarget(),
      subject: cellSubject(namespace),
      openDriver: (provider) => drivers.of(provider),
    };
    this.outages.onChange(({ cluster, isOver, isSetBack }) => {
      if (cluster === CONTROL && isOver && isSetBack === true) options.setBack();
    });
    this.#operator = new Operator(process, cell);
    const controllers = controllersOf(this.#operator);
    this.#work = this.#operator.work(controllers, service?.of(this.#operator) ?? []);
    this.#begun = this.#begin(this.#ending.signal).then(options.begun, (err: unknown) => {
      if (this.#ending.signal.aborted) return;
      if (err instanceof CannotStartError) return options.cannotBegin(err.message);
      log.error({ err }, 'could not begin the work of a cell');
      options.broke();
    });
  }

  /** Why workload clusters must not be used. */
  get claimProblems(): readonly string[] {
    return this.#targets.claimProblems;
  }

  /** Whether what it knows of the control cluster is of it alone, and so are the outages of that. */
  get hasOwnControl(): boolean {
    return this.#control.own !== undefined;
  }

  /** What is being done about its Machines; undefined: nothing ever is. */
  get workInProgress(): WorkInProgress | undefined {
    return this.#operator.workInProgress;
  }

  /** The next request to the target loads what its Secrets tell now. */
  kubeconfigChanged(): void {
    this.#options.endpoint?.outdated?.();
  }

  /** Makes sure that the target is its own, once that was read, and its workload clusters. Throws TargetRefusedError, and ApiError. */
  async claim(signal: AbortSignal): Promise<void> {
    const { commonTarget, endpoint, claimTarget, claimCommonTarget, claimNoTarget } = this.#options;
    if (commonTarget !== undefined) await claimCommonTarget(signal);
    else if (endpoint === undefined) {
      await this.#untilMachinesPresent(signal);
      await claimNoTarget();
    }
    if (this.#targetUID !== undefined) await claimTarget(this.#targetUID, signal);
    await this.#targets.claimAgain(signal);
  }

  /** Resolves when its last mutation has ended and nothing of it is left. Never rejects. */
  async end(graceMs: number): Promise<void> {
    const { shared, namespace, commonTarget } = this.#options;
    this.#ending.abort(new Error('the cell ends'));
    await this.#begun;
    await this.#work.end(graceMs);
    await this.#targets.stop();
    const own = commonTarget === undefined ? this.#target : undefined;
    await Promise.allSettled([this.outages.stop(), own?.caches.stop(), this.#control.own?.stop()]);
    await Promise.allSettled([own?.access.transport.close()]);
    commonTarget?.forget(namespace.metadata.name);
    shared.forget(namespace.metadata.name);
    await this.#options.ended(this.registry);
    this.registry.clear();
  }

  async #begin(signal: AbortSignal): Promise<void> {
    await this.#control.own?.start(signal);
    if (this.#options.endpoint === undefined) await this.#untilClaimed(signal);
    await this.#work.begin(signal);
  }

  /**
   * Its Machines may be from a time when each cell had a target cluster of its own, or all had another one, or any. Nothing is done before: the
   * Nodes that are cached would be taken for those of its Machines.
   */
  async #untilClaimed(signal: AbortSignal): Promise<void> {
    const { process, namespace } = this.#options;
    const { clock, log } = process.options;
    const hold = this.held.hold({ work: 'process', waitsFor: 'claim', of: TARGET });
    const how = { clock, log: log.child({ cell: namespace.metadata.name }), random: process.random, hold };
    await retryUntilDone(how, 'claiming the target cluster', (s) => this.claim(s), signal);
  }

  /** Whoever had its shard before may have written that they have Nodes. */
  async #untilMachinesPresent(signal: AbortSignal): Promise<void> {
    const { kinds } = this.#control.ofControl;
    await reachPresent(
      kinds.filter(({ resource }) => resource.plural === machines.plural),
      signal,
    );
  }

  #sharedTarget(): SharedTarget | undefined {
    const { everywhere } = this.#control;
    const { commonTarget, namespace } = this.#options;
    if (commonTarget === undefined || everywhere === undefined) return undefined;
    return {
      machines: everywhere,
      identities: commonTarget.identities,
      isJudgeOf: (nodeName) => commonTarget.isJudge(namespace.metadata.name, nodeName),
    };
  }

  #openTarget(targets: TargetClusters, metrics: KubeMetrics): TargetCluster | undefined {
    const { endpoint, process } = this.#options;
    if (endpoint === undefined) return undefined;
    showCredentialAge(TARGET, endpoint, { metrics, clock: process.options.clock });
    const target = targets.addEndpoint(TARGET, endpoint, ROLE_FILE, { isNeeded: true, refused: () => undefined });
    for (const probed of probesOf([target.access], [target.caches])) this.outages.add(probed);
    return target;
  }

  /** How the work waits for its target. */
  #firstRead(): Cell['firstRead'] {
    const target = this.#target;
    if (target === undefined) return undefined;
    const untilFilled = (signal: AbortSignal): Promise<void> => target.caches.untilFilled(signal);
    if (this.#options.commonTarget !== undefined) return { until: untilFilled };
    return {
      longestMs: LONGEST_WAIT_MS,
      until: async (signal) => {
        await untilFilled(signal);
        this.#targetUID = await readClusterUID(target.access.reader, signal);
        // Whoever has deleted the Lease of the target before has deleted that of a workload cluster, if both were one.
        await this.claim(signal);
      },
    };
  }
}
