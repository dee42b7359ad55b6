import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import type { IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { IronCoreVolume } from '../../pkg/worlds/ironcore/api/volume.ts';
import {
  DELETION_SENT_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
  POOL_UIDS_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { List } from '../../pkg/apis/meta.ts';
import type { Event, Lease } from '../../pkg/apis/wire.ts';
import { toMicroTimestamp, toTimestamp } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { MachineState } from '../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import type { RuntimeMachine } from '../../pkg/worlds/ironcore/runtime/runtime.ts';
import { IriRuntime } from '../../packages/providers/iri/runtime.ts';
import { privateApiServer, type TestServer } from '../env/api-server.ts';
import { namespace, type TestNamespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from '../integration/operator-session.ts';
import { grant } from '../integration/shipped-roles.ts';

/*
 * Runtimes that do not show machines which they have had: because they were told so, because they lost their state, or because they have
 * that of another time. Each test has a pool, a runtime and processes of its own. They run side by side, since they mostly wait for Leases.
 */

const ROOT = path.join(import.meta.dirname, '../..');
const COMPUTE = '/apis/compute.ironcore.dev/v1alpha1';
const PATIENCE = { timeoutMs: 180_000 };
const LONG_MS = 600_000;
const clock = new SystemClock();

let plane: TestServer;
let api: Api;
let ns: TestNamespace;

beforeAll(async () => {
  plane = await privateApiServer();
  api = plane.connection.api();
  await applyManifests(api, readManifests(path.join(ROOT, 'crds/ironcore')));
  ns = await namespace(plane.connection);
  for (const role of ['ironcore-pools', 'ironcore-machines'] as const) await grant(api, role, ns.name);
  await api.send('POST', `${COMPUTE}/machineclasses`, {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: 'small' },
    capabilities: { cpu: '1', memory: '1Gi' },
  });
});

afterAll(async () => {
  await api.close();
  await plane[Symbol.asyncDispose]();
});

/** A pool, its runtime, and Machines there with a Volume each, of the same name. */
class PoolUnderTest implements AsyncDisposable {
  readonly name: string;
  readonly runtime: IriRuntime;

  private constructor(name: string, runtime: IriRuntime) {
    this.name = name;
    this.runtime = runtime;
  }

  static async start(name: string): Promise<PoolUnderTest> {
    return new PoolUnderTest(name, await IriRuntime.start({ classes: { small: 20 } }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime[Symbol.asyncDispose]();
  }

  /** A process that serves it. */
  async serve(): Promise<OperatorSession> {
    return await OperatorSession.start({
      connection: plane.connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'ironcore.pools',
      flags: { 'leader-elect': 'false', 'ironcore-pool': `${this.name}=${this.runtime.address}` },
    });
  }

  /** Resolves when the Machine runs, with its machine. */
  async run(name: string): Promise<RuntimeMachine> {
    const apiVersion = 'storage.ironcore.dev/v1alpha1';
    await api.send('POST', volumes(), {
      apiVersion,
      kind: 'Volume',
      metadata: { name },
      spec: { resources: { storage: '1Gi' } },
    });
    const status = { state: 'Available', access: { driver: 'ceph', handle: `handle-${name}` } };
    await api.send('PATCH', `${volumes()}/${name}/status`, { status });
    await api.send('POST', machines(), {
      apiVersion: 'compute.ironcore.dev/v1alpha1',
      kind: 'Machine',
      metadata: { name },
      spec: {
        machineClassRef: { name: 'small' },
        machinePoolRef: { name: this.name },
        volumes: [{ name: 'root', volumeRef: { name } }],
      },
    });
    await runs(name);
    return this.runtime.store.named(name);
  }

  /** The runtime is another process now, with these machines; whatever was asked and not answered never is. */
  async restart(having = this.runtime.store.all()): Promise<void> {
    await this.runtime.kill();
    this.runtime.clearFaults();
    this.runtime.store.setBack(having);
    await this.runtime.listen();
  }

  async lease(): Promise<Lease> {
    return await api.send<Lease>('GET', this.#leasePath());
  }

  async editLease(spec: object): Promise<void> {
    await api.send('PATCH', this.#leasePath(), { spec });
  }

  #leasePath(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases/${this.name}`;
  }
}

const machines = (): string => `${COMPUTE}/namespaces/${ns.name}/machines`;
const volumes = (): string => `/apis/storage.ironcore.dev/v1alpha1/namespaces/${ns.name}/volumes`;

async function readMachine(name: string): Promise<IronCoreMachine | undefined> {
  return await api.find(`${machines()}/${name}`);
}

async function shows(name: string, look: (machine: IronCoreMachine) => void): Promise<void> {
  let seen: IronCoreMachine | undefined;
  await eventually(
    async () => {
      seen = await readMachine(name);
      if (seen === undefined) throw new Error('it is not there');
      look(seen);
    },
    { ...PATIENCE, describe: () => `${name}: ${JSON.stringify(seen)}` },
  );
}

async function runs(name: string): Promise<void> {
  await shows(name, ({ status }) => expect(status?.state).toBe('Running'));
}

/** Resolves when the Machine is held for want of its machine, and says why. */
async function isHeld(name: string, why: string): Promise<void> {
  await shows(name, ({ status }) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ reason: 'MachinesLost', message: expect.stringContaining(why) });
  });
}

async function remove(...names: readonly string[]): Promise<void> {
  for (const name of names) await api.send('DELETE', `${machines()}/${name}`);
}

async function areGone(...names: readonly string[]): Promise<void> {
  for (const name of names)
    await eventually(async () => expect(await readMachine(name)).toBeUndefined(), {
      ...PATIENCE,
      describe: `${name} to be gone`,
    });
}

/** Somebody takes its finalizer, and it goes. */
async function strip(name: string): Promise<void> {
  await api.send('PATCH', `${machines()}/${name}`, { metadata: { finalizers: null } });
  await areGone(name);
}

async function claimantOf(volume: string): Promise<string | undefined> {
  return (await api.send<IronCoreVolume>('GET', `${volumes()}/${volume}`)).spec?.claimRef?.name;
}

const giveUp = (): object => ({
  metadata: { annotations: { [GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION]: toTimestamp(clock.now() + 3_600_000) } },
});

// promise: machines-ironcore/runtime-started-state-machine
test.concurrent(
  'a runtime that was started without its state has nothing made anew, and is believed again when it has it back',
  async () => {
    await using pool = await PoolUnderTest.start('emptied');
    await using _session = await pool.serve();
    await pool.run('emptied');
    const before = structuredClone(pool.runtime.store.all());

    await pool.restart([]);

    await isHeld('emptied', 'its deletion was not observed');
    expect(pool.runtime.store.made).toBe(1);
    await pool.restart(before);
    await shows('emptied', ({ status }) =>
      expect(status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Ready', status: 'True', reason: 'Running' }),
      ),
    );
    expect(pool.runtime.store.made).toBe(1);
  },
  LONG_MS,
);

// promise: machines-ironcore/guest-ironcore-shuts-down
test.concurrent(
  'a guest that was shutting down is not taken for told to go, by a process that finds its machine missing and its Machine deleted',
  async () => {
    await using pool = await PoolUnderTest.start('guest');
    const { metadata } = await (async () => {
      await using _session = await pool.serve();
      const machine = await pool.run('guest');
      pool.runtime.store.setState(machine.metadata.id, MachineState.MACHINE_TERMINATING);
      await shows('guest', ({ status }) => expect(status?.state).toBe('Terminating'));
      return machine;
    })();
    const before = structuredClone(pool.runtime.store.all());
    await remove('guest');
    await pool.restart([]);

    await using _session = await pool.serve();

    await isHeld('guest', 'its deletion was not observed');
    expect(await claimantOf('guest')).toBe('guest');
    await pool.restart(before);
    await areGone('guest');
    expect(pool.runtime.asked('DeleteMachine')).toEqual([{ machineId: metadata.id }]);
    expect(await claimantOf('guest')).toBeUndefined();
  },
  LONG_MS,
);

// promise: machines-ironcore/held
test.concurrent(
  'a deletion that a runtime has not answered, and that is without its state since, is held until it is given up',
  async () => {
    await using pool = await PoolUnderTest.start('unanswered');
    await using _session = await pool.serve();
    await pool.run('unanswered');
    pool.runtime.fault('DeleteMachine', { kind: 'hang' });
    await remove('unanswered');
    await eventually(() => expect(pool.runtime.asked('DeleteMachine')).toHaveLength(1), PATIENCE);

    await pool.restart([]);

    await isHeld('unanswered', 'was asked to delete');
    const { metadata } = (await readMachine('unanswered')) ?? {};
    expect(metadata?.annotations?.[DELETION_SENT_ANNOTATION]).toBe(`unanswered ${metadata?.uid}`);
    expect(await claimantOf('unanswered')).toBe('unanswered');
    await api.send('PATCH', `${machines()}/unanswered`, giveUp());
    await areGone('unanswered');
    expect(await claimantOf('unanswered')).toBeUndefined();
  },
  LONG_MS,
);

// promise: machines-ironcore/deletion-answer-ends-runtime
test.concurrent(
  'deletions that a runtime has carried out without an answer end when it shows a younger machine after it was started again',
  async () => {
    await using pool = await PoolUnderTest.start('carried-out');
    await using _session = await pool.serve();
    const names = Array.from({ length: 6 }, (_, i) => `carried-out-${i}`);
    for (const name of names) await pool.run(name);
    await pool.run('younger');
    pool.runtime.fault('DeleteMachine', { kind: 'lose' });
    await remove(...names);
    await eventually(() => expect(pool.runtime.store.all()).toHaveLength(1), PATIENCE);

    await pool.restart();

    await areGone(...names);
    expect(pool.runtime.store.named('younger')).toBeDefined();
    for (const name of names) expect(await claimantOf(name)).toBeUndefined();
  },
  LONG_MS,
);

// promise: ironcore/machines/told-go-gone-whoever
test.concurrent(
  'a deletion that was accepted ends although the pool was served by somebody else when its machine went',
  async () => {
    await using pool = await PoolUnderTest.start('passed-on');
    await using session = await pool.serve();
    const serves = async (value: 0 | 1): Promise<void> => {
      const metrics = await (await fetch(`${session.url}/metrics`)).text();
      expect(metrics).toContain(`machinist_ironcore_pool_served{pool="passed-on"} ${value}\n`);
    };
    await pool.run('passed-on');
    pool.runtime.store.habits.deletesAtOnce = false;
    await remove('passed-on');
    await shows('passed-on', ({ metadata }) =>
      expect(metadata.annotations?.[DELETION_SENT_ANNOTATION]).toBe(`accepted ${metadata.uid}`),
    );

    await eventually(async () => {
      // Renewed until that is seen, however long a busy host takes.
      await pool.editLease({ holderIdentity: 'passed-on_poollet', renewTime: toMicroTimestamp(clock.now()) });
      await serves(0);
    }, PATIENCE);
    pool.runtime.store.settle();
    await eventually(() => serves(1), PATIENCE);

    await areGone('passed-on');
    expect(pool.runtime.asked('DeleteMachine')).toHaveLength(1);
    expect(await claimantOf('passed-on')).toBeUndefined();
  },
  LONG_MS,
);

// promise: machines-ironcore/held-machine-gone-named
test.concurrent(
  'what a Machine had claimed that went unseen is held, named with what gives it up, and free when that is done',
  async () => {
    await using pool = await PoolUnderTest.start('stripped');
    {
      await using _session = await pool.serve();
      await pool.run('stripped');
    }
    await pool.runtime.kill();
    await remove('stripped');
    await using session = await pool.serve();
    await strip('stripped');

    await pool.restart([]);

    let message = '';
    await eventually(async () => {
      const { status } = await api.send<IronCoreMachinePool>('GET', `${COMPUTE}/machinepools/stripped`);
      const held = status?.conditions?.find(({ type }) => type === 'ClaimsHeld');
      expect(held).toMatchObject({ status: 'True' });
      message = held?.message ?? '';
    }, PATIENCE);
    expect(message).toContain(`Volume ${ns.name}/stripped (of Machine stripped)`);
    expect(message).toContain(
      `kubectl -n ${ns.name} annotate --overwrite volumes.storage.ironcore.dev stripped safety.`,
    );
    const metrics = await (await fetch(`${session.url}/metrics`)).text();
    expect(metrics).toContain('machinist_ironcore_claims_held{pool="stripped"} 1\n');
    expect(await claimantOf('stripped')).toBe('stripped');
    await api.send('PATCH', `${volumes()}/stripped`, giveUp());
    await eventually(async () => expect(await claimantOf('stripped')).toBeUndefined(), PATIENCE);
  },
  LONG_MS,
);

// promise: ironcore/machines/machinepool-made-again-goes
test.concurrent(
  'machines of a MachinePool that was deleted and made again go when their Machines were deleted',
  async () => {
    await using pool = await PoolUnderTest.start('made-again');
    await using _session = await pool.serve();
    await pool.run('made-again');
    const at = `${COMPUTE}/machinepools/made-again`;
    const { metadata: first } = await api.send<IronCoreMachinePool>('GET', at);
    await api.send('DELETE', at);
    await api.send('POST', `${COMPUTE}/machinepools`, {
      apiVersion: 'compute.ironcore.dev/v1alpha1',
      kind: 'MachinePool',
      metadata: { name: 'made-again' },
      spec: {},
    });
    const { metadata: second } = await api.send<IronCoreMachinePool>('GET', at);
    await eventually(async () => {
      const { metadata } = await pool.lease();
      expect(metadata.annotations?.[POOL_UIDS_ANNOTATION]).toBe(`${metadata.uid} ${first.uid} ${second.uid}`);
    }, PATIENCE);
    await pool.runtime.kill();
    await remove('made-again');
    await strip('made-again');

    await pool.runtime.listen();

    await eventually(() => expect(pool.runtime.store.all()).toEqual([]), PATIENCE);
    await eventually(async () => expect(await claimantOf('made-again')).toBeUndefined(), PATIENCE);
  },
  LONG_MS,
);

test('none of these Machines was said to be lost that was told to go', async () => {
  const { items } = await api.send<List<Event>>('GET', `/api/v1/namespaces/${ns.name}/events`);
  const lost = items.filter(({ reason }) => reason === 'MachinesLost').map(({ involvedObject }) => involvedObject.name);

  expect(new Set(lost)).toEqual(new Set(['emptied', 'guest', 'unanswered']));
});
