import { keyOf } from '../../../apis/meta.ts';
import { eventsAbout } from '../../../kube/events/event-sink.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import { ironCoreMachineClasses, ironCoreMachinePools, ironCoreMachines } from '../api/resources.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE } from './leases.ts';
import type { Operator } from '../../../operator/operator.ts';
import { IRONCORE_KINDS } from './kinds.ts';
import type { PoolRuntime } from '../runtime/gated-runtime.ts';
import type { Controller } from '../../../work/reconcile/controller.ts';
import { ClassLife } from './class-life.ts';
import { Eviction } from './eviction.ts';
import { IRONCORE_FLAGS } from './flags.ts';
import { type IronCoreMetrics, ironCoreMetrics } from './metrics.ts';
import { Departures } from './machine/departures.ts';
import { HeldClaims } from './machine/held-claims.ts';
import { KeptMachines } from './machine/kept-machines.ts';
import { KeptUses } from './machine/kept-uses.ts';
import { LeftClaims } from './machine/left-claims.ts';
import { IronCoreMachineController } from './machine/machine-controller.ts';
import { Relist } from './machine/relist.ts';
import { RuntimeEvents } from './machine/runtime-events.ts';
import { Sightings } from './machine/sightings.ts';
import { Rivals } from './machine/rivals.ts';
import { queuedObject, ironCoreQueueKeyOf, wakeIronCoreMachines } from './machine/wake.ts';
import { PoolClaims } from './pool-claims.ts';
import { IronCorePoolController } from './pool-controller.ts';
import { PoolHealth } from './pool-health.ts';
import { PoolLeases } from './pool-lease.ts';
import { PoolUIDs } from './pool-uids.ts';
import { ServedPools } from './served-pools.ts';
import { Scheduler } from './scheduler.ts';
import { wakeLifecycle, lifecycleObjectOf } from './wake-lifecycle.ts';
import { uuidOf } from '../../../base/random/random.ts';
import type { IronCoreCollaborators } from './collaborators.ts';

/** Writes at once, so that one that hangs holds up no other. Decisions are made one after the other all the same. */
const WRITES_AT_ONCE = 10;

export function ironCoreScheduler(operator: Operator): Controller {
  const { caches, clock } = operator;
  const { ironCoreMachines: machines, ironCorePools: pools } = caches.of(IRONCORE_KINDS);
  const scheduler = new Scheduler({
    machines,
    pools,
    writer: operator.under(IRONCORE_SCHEDULER_LEASE).writer,
    recorder: eventsAbout(ironCoreMachines, operator.recorder(IRONCORE_SCHEDULER_LEASE)),
    clock,
  });
  return {
    name: 'ironcore.scheduler',
    queue: 'ironcorescheduler',
    lease: IRONCORE_SCHEDULER_LEASE,
    concurrency: WRITES_AT_ONCE,
    reconcile: (key, signal) => scheduler.reconcile(key, signal),
    watches: [(queue) => scheduler.watch(queue)],
  };
}

const LIFECYCLE_EVENTS = 'ironcore-lifecycle';
const LIFECYCLE_PASSES = 10;

/** Looks after pools and classes of IronCore, and drives Machines out of pools. */
export function ironCoreLifecycle(operator: Operator): Controller {
  const { caches, clock, reader } = operator;
  const {
    ironCoreMachines: machines,
    ironCorePools: pools,
    ironCoreClasses: classes,
    poolLeases,
  } = caches.of(IRONCORE_KINDS);
  const { writer } = operator.under(IRONCORE_SCHEDULER_LEASE);
  const recorder = operator.recorder(LIFECYCLE_EVENTS);
  const health = new PoolHealth({ pools, poolLeases, reader, writer, clock });
  const ofMachines = eventsAbout(ironCoreMachines, recorder);
  const eviction = new Eviction({ machines, pools, reader, writer, recorder: ofMachines });
  const ofClasses = eventsAbout(ironCoreMachineClasses, recorder);
  const life = new ClassLife({ classes, machines, reader, writer, classRecorder: ofClasses });
  const reconcilers = { pool: health, machine: eviction, class: life };
  operator.onOutage(({ cluster, isOver }) => {
    if (cluster === CONTROL && isOver) health.forgive();
  });
  return {
    name: 'ironcore.lifecycle',
    queue: 'ironcorelifecycle',
    lease: IRONCORE_SCHEDULER_LEASE,
    concurrency: LIFECYCLE_PASSES,
    reconcile: (queueKey, signal) => {
      const { kind, key } = lifecycleObjectOf(queueKey);
      return reconcilers[kind].reconcile(key, signal);
    },
    watches: [(queue) => wakeLifecycle({ machines, pools, classes, poolLeases }, queue)],
  };
}

/** Opens the runtimes of the pools, by pool. */
type OpenRuntimes = (metrics: IronCoreMetrics) => ReadonlyMap<string, PoolRuntime>;

/** Serves pools of IronCore, each by its runtime, and makes the Machines in them real. */
export function ironCoreServing(operator: Operator, open: OpenRuntimes): Controller[] {
  const identity = uuidOf(operator.random);
  // Short: Leases note many, and machines have one each.
  const claims = new PoolClaims({ process: identity.slice(0, PROCESS_LENGTH) });
  const poolRecorder = eventsAbout(ironCoreMachinePools, operator.recorder(MACHINE_EVENTS));
  const metrics = ironCoreMetrics(operator.registry);
  const known = {
    metrics,
    runtimes: open(metrics),
    served: new ServedPools(),
    poolUIDs: new PoolUIDs(),
    identity,
    claims,
    rivals: new Rivals({ claims, poolRecorder }),
  };
  return [ironCorePoolsOf(operator, known), ironCoreMachinesOf(operator, known)];
}

/** Of the identity of a process, what machines at runtimes say of it: 48 bits. */
const PROCESS_LENGTH = 13;

/** What those who serve pools know of them from each other. */
interface PoolSources extends Pick<IronCoreCollaborators, 'metrics' | 'runtimes' | 'poolUIDs' | 'claims' | 'rivals'> {
  readonly served: ServedPools;
  /** Of this start of the process. */
  readonly identity: string;
}

const POOL_EVENTS = 'ironcore-pools';

function ironCorePoolsOf(operator: Operator, known: PoolSources): Controller {
  const { served, poolUIDs, identity, claims, rivals, metrics, runtimes } = known;
  const { caches, clock, config, reader } = operator;
  const { writer } = operator.under(IRONCORE_POOLS_LEASE);
  const cached = caches.of(IRONCORE_KINDS);
  const pools = new IronCorePoolController({
    runtimes,
    providerIDs: new Map(
      config
        .of(IRONCORE_FLAGS)
        .pools.flatMap(({ pool, providerID }) => (providerID === undefined ? [] : [[pool, providerID]])),
    ),
    pools: cached.ironCorePools,
    classes: cached.ironCoreClasses,
    machines: cached.ironCoreMachines,
    leases: new PoolLeases({
      reader,
      writer,
      clock,
      poolUIDs,
      // Of which one leads at a time: the Lease of each is in that namespace.
      family: `machinist-${config.clusters.namespace}`,
      identity,
      claims,
    }),
    served,
    rivals,
    poolRecorder: eventsAbout(ironCoreMachinePools, operator.recorder(POOL_EVENTS)),
    metrics,
    writer,
    clock,
  });
  return {
    name: 'ironcore.pools',
    queue: 'ironcorepools',
    lease: IRONCORE_POOLS_LEASE,
    // A runtime that hangs holds up no other pool.
    concurrency: Math.max(1, runtimes.size),
    reconcile: (name, signal) => pools.reconcile(name, signal),
    watches: [(queue) => pools.watch(queue)],
  };
}

const MACHINE_EVENTS = 'ironcore-machines';
/** For each pool: a pass waits for the answers of its runtime. */
const MACHINE_PASSES = 20;

function ironCoreMachinesOf(operator: Operator, known: PoolSources): Controller {
  const { served, poolUIDs, claims, rivals, metrics, runtimes } = known;
  const { caches, clock, log, reader } = operator;
  const departures = new Departures();
  const { writer } = operator.under(IRONCORE_POOLS_LEASE);
  const cached = caches.of(IRONCORE_KINDS);
  const { downwardAPI, watchFilter } = operator.config.of(IRONCORE_FLAGS);
  const recorder = operator.recorder(MACHINE_EVENTS);
  const shared = {
    machines: cached.ironCoreMachines,
    pools: cached.ironCorePools,
    classes: cached.ironCoreClasses,
    volumes: cached.ironCoreVolumes,
    networkInterfaces: cached.ironCoreNetworkInterfaces,
    networks: cached.ironCoreNetworks,
    downwardAPI,
    watchFilter,
    secrets: cached.ironCoreSecrets,
    prefixes: cached.ironCorePrefixes,
    recorder: eventsAbout(ironCoreMachines, recorder),
    poolRecorder: eventsAbout(ironCoreMachinePools, recorder),
    runtimes,
    served,
    poolUIDs,
    claims,
    rivals,
    departures,
    metrics,
    keptUses: new KeptUses(),
    sightings: new Sightings(),
    reader,
    writer,
    clock,
    log,
  };
  for (const machine of shared.machines.list()) departures.saw(machine);
  shared.machines.onChange((old, current) => departures.saw(current ?? old));
  operator.onSetBack(() => departures.clear());
  let wake: (queueKey: string) => void = () => undefined;
  const hurry = (pool: string): void => wake(ironCoreQueueKeyOf('pool', pool));
  const machines = new IronCoreMachineController({ ...shared, hurry });
  const relist = new Relist({
    ...shared,
    kept: new KeptMachines(shared),
    leftClaims: new LeftClaims({ ...shared, held: new HeldClaims(shared) }),
    events: new RuntimeEvents(shared),
    wake: (key) => wake(ironCoreQueueKeyOf('machine', key)),
  });
  const reconcilers = { machine: machines, pool: relist };
  return {
    name: 'ironcore.machines',
    queue: 'ironcoremachines',
    lease: IRONCORE_POOLS_LEASE,
    concurrency: MACHINE_PASSES * Math.max(1, runtimes.size),
    // A runtime that hangs holds up no other pool.
    mostOfGroup: MACHINE_PASSES,
    groupOf: (queueKey) => {
      const { kind, key } = queuedObject(queueKey);
      return kind === 'pool' ? key : (shared.machines.get(key)?.spec.machinePoolRef?.name ?? '');
    },
    reconcile: (queueKey, signal) => {
      const { kind, key } = queuedObject(queueKey);
      return reconcilers[kind].reconcile(key, signal);
    },
    watches: [
      (queue) => {
        wake = (queueKey) => queue.add(queueKey);
        wakeIronCoreMachines(shared, new Set(runtimes.keys()), queue);
        served.onBegin((pool) => {
          queue.add(ironCoreQueueKeyOf('pool', pool));
          for (const machine of shared.machines.byIndex('pool', pool))
            queue.add(ironCoreQueueKeyOf('machine', keyOf(machine)));
        });
      },
    ],
  };
}
