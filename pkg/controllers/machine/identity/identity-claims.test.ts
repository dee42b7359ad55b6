import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { SECOND } from '../../../../test/durations.ts';
import { machine, machineClass, node, secret } from '../../../../test/builders.ts';
import { FakeWorld, type PassSeen } from '../../../../test/fakes/machine-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { DriverError } from '../../../driver/error.ts';
import type { MachineRequest } from '../../../driver/driver.ts';
import { Identities } from '../../../operator/identities.ts';
import { describeRival, IdentityClaims } from './identity-claims.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const NAME_LABEL = 'node.gardener.cloud/machine-name';
const KEY = 'default/m-1';
/** What the driver says at first. */
const THEIRS = { providerID: 'sim:///m-2', nodeName: 'm-2', addresses: [] };
const OWN = { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] };

type Change = (m: ReturnType<typeof machine>) => void;

/** Machine m-2 works, m-1 is as `change` makes it; the driver's first creation answers `answer`, and makes the right VM all the same. */
function start(change: Change, answer = THEIRS): FakeWorld {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.driver.create = () => {
    world.driver.calls.push('create');
    world.driver.vms.set('m-1', OWN);
    return Promise.resolve({ ...answer, lastKnownState: undefined });
  };
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  world.secrets.put(secret((s) => void (s.data['userData'] = '')));
  world.machines.put(
    machine((m) => {
      Object.assign(m.metadata, { name: 'm-2', labels: { node: 'm-2' } });
      m.spec.providerID = 'sim:///m-2';
    }),
  );
  world.nodes.cache.put(
    node((n) => {
      n.metadata.name = 'm-2';
      n.metadata.labels[NAME_LABEL] = 'm-2';
      n.spec = { providerID: 'sim:///m-2' };
    }),
  );
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      change(m);
    }),
  );
  return world;
}

const isNew: Change = (m) => {
  m.metadata.labels = {};
  m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
  m.status = {} as (typeof m)['status'];
};
const isDeleted: Change = (m) => {
  m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
};

async function run(world: FakeWorld, steps = world.upkeep): Promise<PassSeen> {
  let seen = await world.pass(steps, KEY);
  for (let i = 0; i < 10 && world.machines.get(KEY) !== undefined; i++) {
    await world.settle();
    seen = await world.pass(steps, KEY);
  }
  return seen;
}

test('a Machine that was created with the id of the VM of another names the field, and blames no driver', async () => {
  const world = start((m) => {
    isNew(m);
    m.spec.providerID = 'sim:///m-2';
  });

  const { machine: seen } = await run(world);

  expect(seen.status?.lastOperation).toMatchObject({
    errorCode: 'NotFound',
    description: expect.stringMatching(
      /VM sim:\/\/\/m-2 \(spec\.providerID\) belongs to Machine m-2: correct the field, or remove it/,
    ) as unknown,
  });
  expect(world.driver.calls).not.toContain('create');
  expect(world.machines.get('default/m-2')?.status).toEqual(machine().status);
});

describe("a driver that answers a creation with another machine's identity", () => {
  test.each([
    { what: 'whole', answer: THEIRS, text: 'VM sim:///m-2, which is the VM of Machine m-2' },
    { what: 'provider id', answer: { ...OWN, providerID: 'sim:///m-2' }, text: 'VM sim:///m-2, which is the VM of' },
    { what: 'Node name', answer: { ...OWN, nodeName: 'm-2' }, text: 'Node name m-2, which is the Node name of' },
  ])('($what) is told so, and asked again', async ({ answer, text }) => {
    const world = start(isNew, answer);

    const refused = await run(world);

    expect(refused.machine.status).toMatchObject({
      currentStatus: { phase: 'CrashLoopBackOff' },
      lastOperation: { state: 'Failed', errorCode: 'Internal', description: expect.stringContaining(text) as unknown },
    });
    expect(refused.machine.spec.providerID ?? '').toBe('');
    expect(world.events.map(({ reason }) => reason)).toEqual(['CreateFailed']);
    world.clock.advance(5 * SECOND);
    const adopted = await run(world);
    expect(adopted.machine).toMatchObject({
      spec: { providerID: 'sim:///m-1' },
      metadata: { labels: { node: 'm-1' } },
    });
    expect(world.driver.calls).toEqual(['status', 'create', 'status']);
  });

  test('does not make a second VM where creations are not idempotent', async () => {
    const world = start(isNew);
    world.driver.idempotentCreate = false;
    const getStatus = world.driver.getStatus.bind(world.driver);
    world.driver.getStatus = () => Promise.reject(new DriverError('NotFound', 'slow to show'));
    await run(world);

    world.clock.advance(20 * SECOND);
    await run(world);
    world.driver.getStatus = getStatus;
    world.clock.advance(20 * SECOND);
    const adopted = await run(world);

    expect(adopted.machine.spec.providerID).toBe('sim:///m-1');
    expect(world.driver.calls.filter((call) => call === 'create')).toHaveLength(1);
  });

  test('is asked for another VM when none of its own has shown for 2 minutes', async () => {
    const world = start(isNew);
    world.driver.idempotentCreate = false;
    world.driver.getStatus = () => Promise.reject(new DriverError('NotFound', 'none'));
    await run(world);
    expect(world.driver.calls).toEqual(['create']);

    for (let i = 0; i < 10; i++) {
      world.clock.advance(20 * SECOND);
      await run(world);
    }

    expect(world.driver.calls.length).toBeGreaterThan(1);
  });

  test("is refused too when the other one has recorded that Node name, which is nobody's name", async () => {
    const world = start(isNew, { ...OWN, nodeName: 'node-9' });
    world.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name: 'm-2', labels: { node: 'node-9' }, resourceVersion: '2' });
        m.spec.providerID = 'sim:///m-2';
      }),
    );

    expect((await run(world)).machine.status?.lastOperation?.description).toContain('Node name of Machine m-2');
  });

  test('is refused too when the other one is recorded only on the Node', async () => {
    const world = start(isNew);
    world.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name: 'm-2', labels: {}, resourceVersion: '2' });
        m.spec = {};
      }),
    );

    expect((await run(world)).machine.status?.lastOperation?.description).toContain('VM of Machine m-2');
  });

  test('is refused too when the other one has recorded nothing yet, by its name', async () => {
    const world = start(isNew);
    world.nodes.cache.remove('m-2');
    world.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name: 'm-2', labels: {}, resourceVersion: '2' });
        m.spec = {};
      }),
    );

    expect((await run(world)).machine.status?.lastOperation?.description).toContain('Node name of Machine m-2');
  });

  test.each([
    { shows: 'the ID of its VM', providerID: 'sim:///m-2' },
    { shows: 'an ID of its kubelet', providerID: 'k3s://m-2' },
  ])('and says twice that the name of a Node which shows $shows is taken costs the VM', async ({ providerID }) => {
    const world = start(isNew, { ...OWN, nodeName: 'm-2' });
    // Two kubelets share it, whichever of them came first.
    world.nodes.cache.put(
      node((n) => {
        n.metadata.name = 'm-2';
        Object.assign(n.metadata, { resourceVersion: '2', creationTimestamp: '2026-01-01T00:00:09Z' });
        n.spec = { providerID };
      }),
    );
    await run(world);
    world.driver.vms.set('m-1', { ...OWN, nodeName: 'm-2' });
    world.clock.advance(5 * SECOND);

    const failed = await run(world);

    expect(failed.machine.status?.currentStatus?.phase).toBe('Failed');
    expect(failed.machine.spec.providerID).toBe('sim:///m-1');
    expect(failed.machine.metadata.labels?.['node'] ?? '').toBe('');
  });

  test('while the machine is deleted: only its own VM goes', async () => {
    const world = start(isNew);
    world.driver.vms.set('m-2', THEIRS);
    await world.reconcile(KEY);
    await world.settle();
    world.machines.put(
      machine((m) => {
        m.metadata.finalizers = [FINALIZER];
        m.metadata.resourceVersion = '9';
        isNew(m);
        isDeleted(m);
      }),
    );

    await run(world, world.deletion);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect([...world.driver.vms.keys()]).toEqual(['m-2']);
    expect(world.nodes.get('m-2')).toBeDefined();
  });
});

describe("a record that was changed to another machine's", () => {
  /** Provider ids that the driver was told to delete. */
  function watchDeletions(world: FakeWorld): (string | undefined)[] {
    const told: (string | undefined)[] = [];
    world.driver.delete = ({ machine: { spec } }: MachineRequest) => {
      told.push(spec?.providerID);
      return Promise.resolve({ lastKnownState: undefined });
    };
    return told;
  }

  test('says so once, however often its deletion is tried', async () => {
    const world = start((m) => {
      isDeleted(m);
      m.spec.providerID = 'sim:///m-2';
      m.metadata.labels = { node: 'm-2' };
    });
    world.driver.delete = () => Promise.reject(new DriverError('Internal', 'no'));
    await run(world, world.deletion);
    world.clock.advance(600_000);
    await run(world, world.deletion);

    expect(world.events.filter(({ reason }) => reason === 'SharedProviderID')).toHaveLength(1);
  });

  test('deletes neither its VM nor its Node, and says so', async () => {
    const world = start((m) => {
      isDeleted(m);
      m.spec.providerID = 'sim:///m-2';
      m.metadata.labels = { node: 'm-2' };
    });
    const told = watchDeletions(world);

    await run(world, world.deletion);

    expect(told).toEqual([undefined]);
    expect(world.drains.requests).toEqual([]);
    expect(world.nodes.get('m-2')).toBeDefined();
    expect(world.events.map(({ reason }) => reason)).toEqual(['SharedProviderID', 'VMDeleted']);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each([
    { what: 'label', change: (m: ReturnType<typeof machine>) => void (m.metadata.labels = { node: 'm-2' }) },
    {
      what: 'label and provider id',
      change: (m: ReturnType<typeof machine>) => {
        m.metadata.labels = { node: 'm-2' };
        m.spec.providerID = 'sim:///m-2';
      },
    },
    { what: 'label, to a Node that does not exist', change: (m: Machine) => void (m.metadata.labels = { node: 'x' }) },
    { what: 'label, which is gone', change: (m: Machine) => void (m.metadata.labels = {}) },
    {
      what: 'label, where the Node has an id of another form',
      change: (m: Machine) => void (m.metadata.labels = { node: 'm-2' }),
      onNode: 'kubemark://m-1',
    },
    {
      what: 'label, which is gone, where the Node has an id of another form',
      change: (m: Machine) => void (m.metadata.labels = {}),
      onNode: 'kubemark://m-1',
    },
  ])('($what) is set right by the Node that shows the name of the machine', async ({ change, onNode = '' }) => {
    const world = start((m) => {
      m.status.conditions = [{ type: 'Ready', status: 'True' }];
      m.spec.providerID = 'local:///4711';
      change(m);
    });
    world.nodes.cache.put(
      node((n) => {
        n.metadata.labels[NAME_LABEL] = 'm-1';
        n.spec.providerID = onNode;
      }),
    );

    const { machine: seen } = await run(world);

    expect(seen.metadata.labels?.['node']).toBe('m-1');
    expect(seen.status?.currentStatus?.phase).toBe('Running');
    expect(world.events.map(({ reason }) => reason)).toEqual(['NodeLabelCorrected']);
  });

  test('does not make a machine run whose own VM has not joined', async () => {
    const world = start((m) => {
      m.metadata.labels = { node: 'm-2' };
      m.status.currentStatus.phase = 'Pending';
    });
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n.metadata, { name: 'm-2', resourceVersion: '2' });
        n.metadata.labels[NAME_LABEL] = 'm-2';
        n.spec = { providerID: 'sim:///m-2' };
        n.status.conditions = [{ type: 'Ready', status: 'True' }];
      }),
    );

    expect((await run(world)).machine.status?.currentStatus?.phase).toBe('Pending');
    expect(world.nodes.patches).toEqual([]);
  });
});

describe('claims', () => {
  const owner = (n: number): Machine => machine((m) => Object.assign(m.metadata, { name: `m-${n}`, uid: `u-${n}` }));
  const part = fc.integer({ min: 0, max: 3 });

  test('give each id and each name to one machine at a time, whatever the order', () => {
    const world = new FakeWorld();
    const act = fc.record({ who: part, vm: part, node: part, forget: fc.boolean() });
    fc.assert(
      fc.property(fc.array(act), (acts) => {
        const claims = new IdentityClaims(world);
        const holders = new Map<string, number>();
        for (const { who, vm, node: n, forget } of acts) {
          if (forget) {
            claims.forget(`u-${who}`);
            for (const [key, by] of holders) if (by === who) holders.delete(key);
            continue;
          }
          const keys = [`vm-${vm}`, `n-${n}`];
          const rival = keys.map((key) => holders.get(key)).find((by) => by !== undefined && by !== who);
          const got = claims.take({ providerID: `vm-${vm}`, nodeName: `n-${n}` }, owner(who));
          expect(got?.name).toBe(rival === undefined ? undefined : `m-${rival}`);
          if (got === undefined) for (const key of keys) holders.set(key, who);
        }
      }),
    );
  });
});

test('an answer without a provider id takes nothing that a second machine could be refused for', () => {
  const world = start(isNew);
  const claims = new IdentityClaims({ machines: world.machines });
  const untold = { providerID: '', nodeName: '' };
  const [one, two] = ['a', 'b'].map((name) => machine((m) => void Object.assign(m.metadata, { name, uid: name })));
  if (one === undefined || two === undefined) throw new Error('two machines were made');

  expect(claims.takenBy({ machine: one, nodes: world.nodes }, untold)).toBeUndefined();
  expect(claims.takenBy({ machine: two, nodes: world.nodes }, untold)).toBeUndefined();
});

test('two namespaces with one target are told of what the other one is about to record, until others work on that one', () => {
  const identities = new Identities();
  const none = { byIndex: () => [] };
  const [one, other] = ['a', 'b'].map(() => new IdentityClaims({ machines: none, identities }));
  const of = (namespace: string): Machine =>
    machine((m) => void Object.assign(m.metadata, { namespace, uid: `${namespace}-m-1` }));

  expect(one?.take(OWN, of('a'))).toBeUndefined();
  expect(other?.take(OWN, of('b'))).toEqual({ part: 'providerID', name: 'a/m-1' });
  expect(describeRival('a/m-1')).toBe('a Machine in another namespace');
  identities.forget('a');

  expect(other?.take(OWN, of('b'))).toBeUndefined();
});
