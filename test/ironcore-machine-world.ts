import { FakeClock } from './fakes/fake-clock.ts';
import { runtimeMachine } from './fakes/runtime-machine.ts';
import { MachineStore } from '../packages/providers/iri/store.ts';
import { MemoryClient } from './memory-client.ts';
import { MemoryInformer } from './memory-informer.ts';
import type { IronCoreMachine } from '../pkg/worlds/ironcore/api/machine.ts';
import { NO_DOWNWARD_API } from '../pkg/worlds/ironcore/api/downward-api.ts';
import type { IronCoreMachineClass } from '../pkg/worlds/ironcore/api/machine-class.ts';
import type { IronCoreMachinePool } from '../pkg/worlds/ironcore/api/machine-pool.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface } from '../pkg/worlds/ironcore/api/network-interface.ts';
import type { IronCoreVolume } from '../pkg/worlds/ironcore/api/volume.ts';
import {
  DELETION_SENT_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
} from '../pkg/apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../pkg/base/clock/clock.ts';
import {
  IRONCORE_NETWORK_INTERFACE_INDEXES,
  IRONCORE_VOLUME_INDEXES,
} from '../pkg/worlds/ironcore/controllers/indexes.ts';
import type { RuntimeError } from '../pkg/worlds/ironcore/runtime/error.ts';
import type { PoolRuntime } from '../pkg/worlds/ironcore/runtime/gated-runtime.ts';
import type { ObjectMetadata } from '../pkg/worlds/ironcore/runtime/gen/ironcore/meta/v1alpha1/meta.ts';
import type {
  DesiredRuntimeMachine,
  RuntimeChange,
  RuntimeFilter,
  RuntimeMachine,
} from '../pkg/worlds/ironcore/runtime/runtime.ts';
import { ironCoreMachines } from '../pkg/worlds/ironcore/api/resources.ts';
import { IRONCORE_MACHINE_FINALIZER } from '../pkg/worlds/ironcore/controllers/machine/keys.ts';
import { PoolClaims } from '../pkg/worlds/ironcore/controllers/pool-claims.ts';
import { KeptUses } from '../pkg/worlds/ironcore/controllers/machine/kept-uses.ts';
import { Rivals } from '../pkg/worlds/ironcore/controllers/machine/rivals.ts';
import { IronCoreMachineController } from '../pkg/worlds/ironcore/controllers/machine/machine-controller.ts';
import { Sightings } from '../pkg/worlds/ironcore/controllers/machine/sightings.ts';

const { signal } = new AbortController();

export const MINUTE_MS = 60_000;
/** Of the UID of its Machine at a machine. */
export const label = 'machinepoollet.ironcore.dev/machine-uid';
/** Metadata of an object. */
export const meta = (name: string) => ({
  name,
  namespace: 'ns',
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
});

export function machineOf(
  annotations: Record<string, string> = {},
  spec: Partial<IronCoreMachine['spec']> = {},
  metadata: object = {},
): IronCoreMachine {
  return {
    metadata: { ...meta('m'), finalizers: [IRONCORE_MACHINE_FINALIZER], annotations, ...metadata },
    spec: { machineClassRef: { name: 'c' }, machinePoolRef: { name: 'p' }, ...spec },
  };
}

/** A process that has just started, with Machine `ns/m`, whose pool is served by a runtime of which nothing is known yet. */
export function world(
  machine: IronCoreMachine,
  volumes: readonly IronCoreVolume[] = [],
  pool: IronCoreMachinePool = { metadata: { ...meta('p'), namespace: '' } },
  {
    downwardAPI = NO_DOWNWARD_API,
    watchFilter = '',
    otherRuntimes = [] as readonly (readonly [string, PoolRuntime])[],
    nics = [] as readonly IronCoreNetworkInterface[],
    networks = [] as readonly IronCoreNetwork[],
  } = {},
) {
  const clock = new FakeClock();
  const store = new MachineStore();
  store.quantities.set('c', 100n);
  const client = new MemoryClient();
  client.put(ironCoreMachines, machine);
  const machines = new MemoryInformer([machine], { pool: () => ['p'] });
  const isServed = { now: true };
  const it = { connection: 0 };
  const sightings = new Sightings();
  const keptUses = new KeptUses();
  keptUses.saw('p', []);
  const claims = new PoolClaims({ process: 'me' });
  claims.noted('p', new Map([['me', 1]]));
  const rivals = new Rivals({ claims, poolRecorder: { event: () => undefined } });
  rivals.saw('p', pool, []);
  const refusals: Error[] = [];
  const deletions: Error[] = [];
  const attachments: Error[] = [];
  const troubles: RuntimeError[] = [];
  /** Besides those in the store. */
  const shown: RuntimeMachine[] = [];
  let lists = 0;
  const asked = { classes: 0, lists: 0 };
  const classes = [{ name: 'c', resources: {}, quantity: 100 }];
  const events: string[] = [];
  const poolEvents: string[] = [];
  const log: string[] = [];
  const runtime = {
    address: 'unix:///p.sock',
    version: async () => ({ name: 'iri', version: '1', connection: it.connection }),
    classes: async () => {
      asked.classes += 1;
      const [failure] = troubles;
      if (failure?.message.startsWith('Status: ') === true) throw failure;
      return classes;
    },
    machines: async ({ id = '', labels = {} }: RuntimeFilter) => {
      asked.lists += 1;
      const [trouble] = troubles;
      if (trouble?.isMutation === false) throw trouble;
      if (id === '' && Object.keys(labels).length === 0) lists += 1;
      const others = id === '' && Object.keys(labels).length === 0 ? shown : [];
      return structuredClone([...store.list({ id, labelSelector: { ...labels } }), ...others]);
    },
    change: async (_of: string, id: string, change: RuntimeChange) => {
      if (change.kind === 'annotate') store.annotate(id, { ...change.annotations });
      if (change.kind === 'detachVolume') store.detachVolume(id, change.name);
      if (change.kind === 'attachVolume') {
        const refusal = attachments.shift();
        if (refusal !== undefined) throw refusal;
        store.attachVolume(id, change.volume);
      }
      if (change.kind === 'detachNetworkInterface') store.detachNetworkInterface(id, change.name);
      if (change.kind === 'attachNetworkInterface') store.attachNetworkInterface(id, change.networkInterface);
      if (change.kind === 'power') {
        const [trouble] = troubles;
        if (trouble?.isMutation === true) throw trouble;
        store.setPower(id, change.power);
      }
    },
    delete: async (_of: string, id: string) => {
      log.push(...client.writes.map(({ what }) => what));
      const refusal = deletions.shift();
      if (refusal !== undefined) {
        // The cache learns what was written.
        machines.put(await client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
        throw refusal;
      }
      store.delete(id);
    },
    create: async (_of: string, { metadata, spec }: DesiredRuntimeMachine) => {
      log.push(...client.writes.map(({ what }) => what));
      const refusal = refusals.shift();
      if (refusal !== undefined) {
        machines.put(await client.get(ironCoreMachines, { namespace: 'ns', name: 'm' }));
        throw refusal;
      }
      return store.create(structuredClone(runtimeMachine(metadata, spec))).metadata.id;
    },
  } as unknown as PoolRuntime;
  const machineClass: IronCoreMachineClass = { metadata: meta('c'), capabilities: { cpu: 1 } };
  const pools = new MemoryInformer([pool]);
  const networkInterfaces = new MemoryInformer(nics, IRONCORE_NETWORK_INTERFACE_INDEXES);
  const controller = new IronCoreMachineController({
    machines,
    pools,
    classes: { get: () => machineClass } as unknown as MemoryInformer<IronCoreMachineClass>,
    volumes: new MemoryInformer<IronCoreVolume>(volumes, IRONCORE_VOLUME_INDEXES),
    networkInterfaces,
    networks: new MemoryInformer(networks),
    reader: client,
    writer: client,
    runtimes: new Map([['p', runtime], ...otherRuntimes]),
    served: { has: () => isServed.now },
    claims,
    rivals,
    keptUses,
    downwardAPI,
    watchFilter,
    sightings,
    recorder: { event: ({ reason, message }) => void events.push(`${reason}: ${message}`) },
    poolRecorder: { event: ({ reason, message }) => void poolEvents.push(`${reason}: ${message}`) },
    clock,
    hurry: () => undefined,
  });
  /** Resolves with the time until the next one, if it is told. */
  const pass = async (name = 'm'): Promise<number | undefined> => {
    const result = await controller.reconcile(`ns/${name}`, signal).catch(() => undefined);
    return result?.kind === 'requeue' ? result.afterMs : undefined;
  };
  return {
    it,
    lists: () => lists,
    asked,
    classes,
    sightings,
    clock,
    store,
    client,
    machines,
    pools,
    networkInterfaces,
    pass,
    isServed,
    keptUses,
    rivals,
    refusals,
    deletions,
    attachments,
    troubles,
    shown,
    events,
    poolEvents,
    log,
  };
}

/** Of a Machine that is being deleted. */
export const deletion = { deletionTimestamp: '2026-01-01T00:00:00Z' };
/** Whether nobody took the finalizer off. */
export const hasFinalizer = ({ client }: ReturnType<typeof world>, name = 'm'): boolean =>
  !client.writes.some(
    ({ what, body }) => what === `machines/${name}` && JSON.stringify(body).includes('"finalizers":[]'),
  );
/** By which a missing machine is given up. */
export const giveUp = (clock: FakeClock): Record<string, string> => ({
  [GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION]: toTimestamp(clock.now() + 10 * MINUTE_MS),
});

/** A machine at the runtime. */
export const shownAs = (id: string, metadata: Partial<ObjectMetadata> = {}): RuntimeMachine =>
  runtimeMachine({ id, ...metadata });

/** What is noted of the deletion of its machine. */
export const noted = (note: string, uid = 'uid-m'): Record<string, string> => ({
  [DELETION_SENT_ANNOTATION]: `${note} ${uid}`,
});
