import type { Registry } from 'prom-client';

import { hadNode } from '../../apis/machine/v1alpha1/defaults.ts';
import {
  CELL_MOVES_TO_ANNOTATION,
  CELL_REPLICA_LABEL,
  CELL_TARGET_LABEL,
  CELL_WORKLOAD_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import type { CachingProcess } from '../cached/kind.ts';
import type { Lease } from '../../apis/wire.ts';
import { withDeadline } from '../../base/clock/deadline.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { EventRecorder } from '../../kube/events/recorder.ts';
import { AccessReviewer } from '../../kube/client/access-review.ts';
import { leases, machines, namespaces } from '../../kube/client/resource.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { cachingProcess } from '../cell.ts';
import { writerTo } from '../clusters.ts';
import type { CellsConfig } from '../config/cells.ts';
import { DriverGreetings } from '../driver-greetings.ts';
import { leaseClientOf, reportingGate } from '../election.ts';
import { ManagerProcess, type OperatorOptions } from '../manager-process.ts';
import { connectionsMember, healthMember, probesMember, readinessOf, recorderMember } from '../members.ts';
import type { Operator } from '../operator.ts';
import { cellPermissions, type Permission, permissionsOf } from '../preflight/permissions.ts';
import { workloadOf } from '../preflight/workload.ts';
import type { Member } from '../process/lifecycle.ts';
import { StartCheck } from '../start-check.ts';
import { shardOf } from './assignment.ts';
import { CellClaims } from './cell-claims.ts';
import { CellClients } from './cell-clients.ts';
import { ClaimNeeds } from './claim-needs.ts';
import { selectedNamespaces } from './cell-namespaces.ts';
import { Cells } from './cells.ts';
import { reachPresent } from '../../kube/cache/reach-present.ts';
import { ClaimLeases } from './claim-leases.ts';
import { CommonTarget } from './common-target.ts';
import { cellsWork } from './cells-work.ts';
import { cellChecks } from './checks.ts';
import { CELL_EVENT_SOURCE } from './events.ts';
import { shardLeaseName } from './lease-names.ts';
import { type CellCounts, cellMetrics } from './metrics.ts';
import { MergedMetrics } from './merged-metrics.ts';
import type { CellsService, ServeCells } from './service.ts';
import { NamedCaches } from './named-caches.ts';
import { NamedNamespaces } from './named-namespaces.ts';
import { OtherManagers } from './other-managers.ts';
import { SharedCaches } from './shared-caches.ts';
import { SharedDrivers } from './shared-drivers.ts';
import { Shards } from './shards.ts';
import { TargetClaims } from './target-claims.ts';
import { WorkloadClaims } from './workload-claims.ts';

/** Namespaces that are named have no autoscalers. */
const NEVER_CHANGED = { onChange: () => undefined };
/** For what nobody aborts. */
const NEVER = new AbortController().signal;
/** Longest time for deleting claims that nobody needs. */
const TIDY_MS = 60_000;

/**
 * A process that looks after many namespaces, each with its target cluster, as if each had a process of its own. They share the way to
 * the control cluster, its caches, the connections to drivers, and the thread of the Leases; everything else is each one's own (Cell).
 */
export class CellsProcess {
  readonly cells: Cells;
  readonly shards: Shards;
  readonly #process: ManagerProcess;
  readonly #config: CellsConfig;
  readonly #drivers: SharedDrivers;
  /** Undefined: each cell has a target cluster of its own, or none. */
  readonly #commonTarget: CommonTarget | undefined;
  readonly #claims: TargetClaims;
  readonly #metrics = new MergedMetrics();
  #isTidying = false;
  #hasToTidyAgain = false;
  /** Namespaces with Machines that are no cells. */
  readonly #others: () => readonly string[];
  readonly #workloadClaims: WorkloadClaims;
  readonly #recorder: EventRecorder;
  readonly #service: CellsService | undefined;

  private constructor(
    process: ManagerProcess,
    config: CellsConfig,
    controllersOf: (operator: Operator) => readonly Controller[],
    serve: ServeCells,
  ) {
    const { ofControl, clusters, random, metrics, outages } = process;
    const { clock, log, hooks } = process.options;
    const { leader, safety } = process.options.config;
    this.#process = process;
    this.#config = config;
    this.#drivers = new SharedDrivers(process);
    const gate = reportingGate({ clock, outages, metrics: metrics.gate, graceMs: safety.graceMs });
    const writer = writerTo(clusters.control, { gate, observer: ofControl.ownWrites, intercept: hooks?.intercept });
    this.#recorder = new EventRecorder({
      source: { component: CELL_EVENT_SOURCE },
      writer,
      clock,
      random,
      log,
      metrics: metrics.event,
    });
    const watched = config.names === undefined ? this.#selected() : undefined;
    const selected = watched === undefined ? this.#named(config.names ?? []) : selectedNamespaces(watched);
    const replicas = ofControl.add(leases, { namespace: leader.namespace, labelSelector: CELL_REPLICA_LABEL });
    const shared = config.names === undefined ? this.#sharedCaches() : new NamedCaches(process);
    this.#commonTarget = this.#openTarget(() => selected.names());
    const shards = (): Shards => this.shards;
    const needs = new ClaimNeeds({
      config,
      reader: clusters.control.reader,
      shared,
      selected,
      areSettled: () => this.shards.areSettled,
      claims: () => this.#claimsOf(CELL_TARGET_LABEL, undefined, NEVER),
    });
    const claimLeases = new ClaimLeases({
      leases: leaseClientOf(process),
      isNeeded: (lease) => needs.isNeeded(lease),
    });
    this.#claims = new TargetClaims({
      leases: claimLeases,
      list: (name, signal) => this.#claimsOf(CELL_TARGET_LABEL, name, signal),
      hasMachines: (name) => shared.machinesIn(name) > 0,
      withMachines: () => shared.withMachines(),
      hasNodes: (name) => shared.ownMachinesIn(name).some(hadNode),
      common: {
        cells: () => selected.names(),
        nodesOf: (name) => this.#commonTarget?.whereNodesAre(shared.ownMachinesIn(name)) ?? 'none',
        untilPresent: (signal) => this.#commonTarget?.untilPresent(signal) ?? Promise.resolve(),
        mayMoveTo: (uid, name) => selected.get(name)?.metadata.annotations?.[CELL_MOVES_TO_ANNOTATION] === uid,
      },
      findMachines: (name, signal) => this.#findMachines(name, signal),
      replicas: {
        get haveOneTarget() {
          return shards().haveOneTarget;
        },
        get areSettled() {
          return shards().areSettled;
        },
      },
    });
    this.#workloadClaims = new WorkloadClaims({
      leases: claimLeases,
      list: (name, signal) => this.#claimsOf(CELL_WORKLOAD_LABEL, name, signal),
    });
    const clients = new CellClients({ namespaces: watched ?? NEVER_CHANGED, namesIn: config.clientNamesIn });
    this.#service = serve(process, {
      clients,
      isOurs: (cell) => this.shards.holding(shardOf(cell, config.shards)) !== undefined,
      leaseOf: (cell) => `${leader.namespace}/${shardLeaseName(shardOf(cell, config.shards))}`,
      whyRefused: (cell) => this.cells.refused.get(cell),
    });
    this.cells = new Cells({
      process,
      config,
      namespaces: selected,
      shared,
      drivers: this.#drivers,
      commonTarget: this.#commonTarget,
      claims: new CellClaims({
        targets: this.#claims,
        workloads: this.#workloadClaims,
        common: clusters.target && {
          reader: clusters.target.reader,
          untilPresent: (signal) => reachPresent(ofControl.kinds, signal),
        },
        outages,
        recorder: this.#recorder,
        clock,
        log,
      }),
      others: new OtherManagers({ reader: clusters.control.reader, leases: process.options.config.leases, clock }),
      released: () => void this.#tidyClaims(),
      ended: (name, registry) => this.#metrics.ended(name, registry),
      recorder: this.#recorder,
      holding: (shard) => this.shards.holding(shard),
      controllersOf,
      service: this.#service,
      clients,
    });
    this.shards = new Shards({
      process,
      count: config.shards,
      leases: replicas,
      recorder: this.#recorder,
      gained: (shard) => {
        this.cells.gained(shard);
        if (shard.index === 0) void this.#tidyClaims();
      },
      leave: (shard, graceMs) => this.cells.leave(shard, graceMs),
    });
    cellMetrics(process.registry, () => this.#counts());
    this.#others = () => shared.withMachines().filter((name) => selected.get(name) === undefined);
  }

  #counts(): CellCounts {
    const { running, refused, taken } = this.cells;
    const { held, replicas } = this.shards;
    return {
      running: running.size - taken.size,
      refused: [...refused.keys(), ...taken.keys()],
      refusedWorkloads: new Map(
        [...running].flatMap(([name, { claimProblems }]) =>
          claimProblems.length === 0 ? [] : [[name, claimProblems.length]],
        ),
      ),
      unselected: this.#others().length,
      shards: held.length,
      configuredShards: this.#config.shards,
      replicas,
    };
  }

  /** Opens the control cluster and declares the metrics; nothing is sent yet. Throws ConfigError, DriverAddressError. */
  static async open(
    options: OperatorOptions,
    config: CellsConfig,
    controllersOf: (operator: Operator) => readonly Controller[],
    serve: ServeCells = () => undefined,
  ): Promise<CellsProcess> {
    return new CellsProcess(await ManagerProcess.open(options), config, controllersOf, serve);
  }

  /** Runs the process to its end and resolves with the exit code. */
  run(): Promise<number> {
    const { clusters, identity, lifecycle, ofControl, outages, random, registry, options } = this.#process;
    const { config, clock, log, hooks } = options;
    const caches = [ofControl, ...(this.#commonTarget === undefined ? [] : [this.#commonTarget.cluster.caches])];
    lifecycle.add(connectionsMember(this.#process, []));
    if (hooks?.health !== 'none') {
      const checks = readinessOf(this.#process, caches);
      checks.add(...cellChecks(this.cells, this.shards));
      lifecycle.add(
        healthMember(this.#process, {
          checks,
          work: () => cellsWork(this.cells, this.shards, this.#config, this.#others()),
          scraped: (failures) =>
            this.#metrics.text({
              process: registry,
              cells: this.#registries(),
              failures,
              breathe: () => clock.sleep(0, NEVER),
            }),
        }),
      );
    }
    lifecycle.add(probesMember(clusters, caches, outages));
    lifecycle.add(this.#startCheck());
    lifecycle.add(...caches, ...(config.drivers.length > 0 ? [identity] : []));
    lifecycle.add(recorderMember(CELL_EVENT_SOURCE, this.#recorder), this.#drivers);
    lifecycle.add(new DriverGreetings({ drivers: this.#drivers.greeted, clock, random, log }));
    if (this.#service !== undefined) lifecycle.add(this.#service);
    lifecycle.add(this.#cellsMember());
    lifecycle.add(this.shards);
    return lifecycle.run();
  }

  /** Those whose labels the selector selects. */
  #selected(): Informer<KubeObject> {
    const { ofControl } = this.#process;
    const { selector } = this.#config;
    return ofControl.add<KubeObject>(namespaces, { labelSelector: selector, metadataOnly: true });
  }

  #sharedCaches(): SharedCaches {
    const { worlds } = this.#process.options;
    const { hasOneTarget } = this.#config;
    return new SharedCaches(this.#process, { caching: this.#cachingCell, worlds, hasOneTarget, failed: this.#failed });
  }

  #openTarget(cells: () => readonly string[]): CommonTarget | undefined {
    const { target: access } = this.#process.clusters;
    if (access === undefined) return undefined;
    return new CommonTarget(this.#process, { access, cells, caching: this.#cachingCell, failed: this.#failed });
  }

  /** As a cell's: of no namespace, so that nothing is cached that only the one of the Leases needs. */
  get #cachingCell(): CachingProcess {
    return cachingProcess(this.#process, this.#config.of('', {}));
  }

  get #failed(): (resource: Resource<KubeObject>, err: unknown) => void {
    const { metrics, options } = this.#process;
    return ({ kind }, err) => {
      metrics.kube.handlerErrors.inc({ kind });
      options.log.error({ kind, err }, 'cache handler failed');
    };
  }

  #named(names: readonly string[]): NamedNamespaces {
    const { reader, transport } = this.#process.clusters.control;
    const { clock, log, worlds } = this.#process.options;
    const permissionsIn = (name: string): readonly Permission[] => cellPermissions(this.#config.of(name, {}), worlds);
    return new NamedNamespaces({ names, reader, reviewer: new AccessReviewer(transport), permissionsIn, clock, log });
  }

  /** Whether any namespace, or this one, has Machines, by live reads. Throws ApiError. */
  async #findMachines(namespace: string | undefined, signal: AbortSignal): Promise<boolean> {
    const how = { ...(namespace !== undefined && { namespace }), limit: 1, metadataOnly: true, signal } as const;
    const { items } = await this.#process.clusters.control.reader.list(machines, how);
    return items.length > 0;
  }

  /** Throws ApiError. */
  async #claimsOf(label: string, namespace: string | undefined, signal: AbortSignal): Promise<readonly Lease[]> {
    const { clusters, options } = this.#process;
    const labelSelector = namespace === undefined ? label : `${label}=${namespace}`;
    const how = { namespace: options.config.leader.namespace, labelSelector, signal };
    return (await clusters.control.reader.list(leases, how)).items;
  }

  /** Claims of namespaces that are gone. Never rejects: one that is left is taken over when its cluster is claimed. */
  async #tidyClaims(): Promise<void> {
    const { options } = this.#process;
    this.#hasToTidyAgain = this.#isTidying;
    if (this.#isTidying) return;
    this.#isTidying = true;
    try {
      await withDeadline(options.clock, TIDY_MS, 'deleting claims of target clusters', async (signal) => {
        await this.#claims.tidy(signal);
        await this.#workloadClaims.tidy(signal);
      });
    } catch (err) {
      options.log.debug({ err }, 'could not delete claims of target clusters');
    } finally {
      this.#isTidying = false;
      // For who has been released meanwhile.
      if (this.#hasToTidyAgain) void this.#tidyClaims();
    }
  }

  #registries(): ReadonlyMap<string, Registry> {
    return new Map([...this.cells.running].map(([name, { registry }]) => [name, registry]));
  }

  /** Begun before the shards are applied for, and ended after they were left. */
  #cellsMember(): Member {
    return {
      name: 'cells',
      start: () => {
        this.cells.watch();
        return Promise.resolve();
      },
      stop: (graceMs) => this.cells.end(graceMs),
    };
  }

  #startCheck(): StartCheck {
    const { clusters, outages, held, random, options } = this.#process;
    const { config, clock, log, worlds } = options;
    const workload = workloadOf(config, {
      hasTarget: clusters.target !== undefined,
      callsDrivers: config.drivers.length > 0,
    });
    const permissions = permissionsOf(workload, worlds);
    return new StartCheck({ clusters, permissions, clock, random, log, outages, held });
  }
}
