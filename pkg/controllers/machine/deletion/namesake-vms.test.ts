import { describe, expect, test } from '@jest/globals';

import { runToEnd, worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { machine } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { DriverError } from '../../../driver/error.ts';
import type { LastOperation, Machine } from '../../../apis/machine/v1alpha1/machine.ts';

const KEY = 'default/m-1';
const AT_ONCE = '2026-01-01T00:01:00Z';
const LATER = '2026-01-01T00:01:01Z';
const EARLIER = '2025-12-31T23:58:59Z';

type Change = (m: ReturnType<typeof machine>) => void;

/** Of another namespace, with the same name. */
function namesake(providerID: string, change: Change = () => undefined): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { namespace: 'other', uid: 'other-m-1' });
    m.spec.providerID = providerID;
    change(m);
  });
}

const created =
  (at: string): Change =>
  (m) => {
    m.metadata.creationTimestamp = at;
  };

/** A Machine that is being deleted, has no Node, and shares a target cluster with these. */
function start(others: readonly Machine[], change: Change = () => undefined): FakeWorld {
  const world = worldInDeletion((m) => {
    m.spec.providerID = 'sim:///m-1';
    m.metadata.labels = { node: 'm-1' };
    change(m);
  });
  for (const one of others) world.machines.put(one);
  world.namesakes = () => Promise.resolve([...others, world.machines.get(KEY) as Machine]);
  world.nodes.live.set('m-1', undefined);
  world.restart();
  return world;
}

const WAITS = 'waiting until that Machine records its VM or is deleted';
const WAY_OUT =
  'With annotation machine.sapcloud.io/deletion-policy=forced, this Machine is removed without that, and a VM of its own may remain while the other Machine exists';
const operationOf = (world: FakeWorld): LastOperation | undefined => world.machines.get(KEY)?.status?.lastOperation;
const textsOf = (world: FakeWorld): readonly string[] =>
  world.events.filter(({ reason }) => reason === 'VMDeleted').map(({ message }) => message);

describe('the VM of a machine that has copies in other namespaces', () => {
  test('is deleted with the machine, if the copies are more than a minute younger', async () => {
    const world = start([namesake('sim:///m-1', created(LATER))]);

    await runToEnd(world);

    expect(world.driver.calls).toEqual(['status', 'delete']);
    expect(world.driver.vms.size).toBe(0);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each([
    { what: 'is older', at: EARLIER },
    { what: 'may be the older', at: AT_ONCE },
  ])('stays for one that $what', async ({ at }) => {
    const world = start([namesake('sim:///m-1', created(at))]);

    await runToEnd(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(world.machines.get(KEY)).toBeUndefined();
    expect(textsOf(world)).toEqual([
      'No VM was deleted: VM sim:///m-1 is also that of a Machine in another namespace, and stays while that exists.',
    ]);
  });

  test('stays if the driver knows another one by that name', async () => {
    const other = namesake('sim:///m-2', created(LATER));
    const world = start([
      namesake('sim:///m-1', created(LATER)),
      { ...other, metadata: { ...other.metadata, uid: 'third', namespace: 'third' } },
    ]);
    world.driver.vms.set('m-1', { providerID: 'sim:///m-2', nodeName: 'm-1', addresses: [] });

    await runToEnd(world);

    expect(world.driver.calls).toEqual(['status']);
    expect(world.driver.vms.size).toBe(1);
  });
});

describe('the VM of a machine that has recorded none', () => {
  const unrecorded: Change = (m) => {
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.metadata.labels = {};
    m.status.conditions = [];
  };

  test('is in doubt while a namesake has only a label: waits, says for what, and is deleted when that is gone', async () => {
    const labelled = namesake('', (m) => {
      m.metadata.labels = { node: 'm-1' };
      m.status = {} as (typeof m)['status'];
    });
    const world = start([labelled], unrecorded);

    await runToEnd(world);
    expect(operationOf(world)).toMatchObject({ state: 'Processing', description: expect.stringContaining(WAITS) });
    world.clock.advance(2 * MINUTE);
    await runToEnd(world);

    expect(world.driver.calls).not.toContain('delete');
    expect(operationOf(world)).toMatchObject({ state: 'Failed', description: expect.stringContaining(WAITS) });
    expect(world.events.map(({ reason, message }) => [reason, message])).toContainEqual([
      'VMDeletionFailed',
      `The VM cannot be deleted: the VM that the driver returns (sim:///m-1) may be that of a Machine of the same name in another namespace, which has recorded no VM; ${WAITS}. ${WAY_OUT}.`,
    ]);

    world.namesakes = () => Promise.resolve([]);
    world.restart();
    await runToEnd(world);
    expect(world.driver.vms.size).toBe(0);
    expect(world.machines.get(KEY)).toBeUndefined();
  });

  test.each([{ code: 'OutOfRange' as const }, { code: 'Unimplemented' as const }])(
    'waits for the namesake if the driver answers with $code, and is deleted when that is gone',
    async ({ code }) => {
      const world = start([namesake('sim:///m-2')], unrecorded);
      world.driver.getStatus = () => Promise.reject(new DriverError(code, 'as the driver says'));

      await runToEnd(world);
      world.clock.advance(2 * MINUTE);
      await runToEnd(world);

      expect(world.driver.calls).not.toContain('delete');
      expect(operationOf(world)).toMatchObject({
        state: 'Failed',
        description: expect.stringContaining(
          `a Machine in another namespace has the same name, and the driver cannot distinguish their VMs (${code}: as the driver says); waiting until that Machine is deleted. ${WAY_OUT}.`,
        ),
      });
      world.namesakes = () => Promise.resolve([]);
      world.restart();
      world.clock.advance(5 * SECOND);
      await runToEnd(world);
      expect(world.driver.calls).toContain('delete');
      expect(world.machines.get(KEY)).toBeUndefined();
    },
  );

  test('is let go by policy forced, as the message says', async () => {
    const world = start([namesake('')], unrecorded);
    world.driver.methods = new Set(['ListMachines']);
    await runToEnd(world);

    world.annotate(world.machines.get(KEY)!, { 'machine.sapcloud.io/deletion-policy': 'forced' });
    await runToEnd(world);
    world.clock.advance(6 * MINUTE);
    await runToEnd(world);

    expect(world.machines.get(KEY)).toBeUndefined();
    expect(world.driver.calls).not.toContain('delete');
    expect(world.notedRemovals).toEqual(['class-1']);
  });

  describe('and whose namesake is being deleted, too,', () => {
    /** In a namespace that comes after that of the Machine, or before it. */
    const deleted =
      (namespace: string, stage = 'Initiate VM deletion', change: Change = () => undefined): Change =>
      (m) => {
        Object.assign(m.metadata, { namespace, deletionTimestamp: AT_ONCE });
        m.status.currentStatus.phase = 'Terminating';
        m.status.lastOperation = { type: 'Delete', state: 'Processing', description: stage };
        change(m);
      };
    const DRAINED = deleted('other');

    const answers: readonly { what: string; answer: (world: FakeWorld) => void }[] = [
      { what: 'returns a VM', answer: () => undefined },
      {
        what: 'finds several',
        answer: ({ driver }) => (driver.getStatus = () => Promise.reject(new DriverError('OutOfRange', 'two'))),
      },
      {
        what: 'returns a VM without an ID',
        answer: ({ driver }) => (driver.getStatus = () => Promise.reject(new DriverError('Uninitialized', 'new'))),
      },
    ];

    test.each(answers)(
      'is deleted if its key is the first and both Nodes were drained: the driver $what',
      async ({ answer }) => {
        const world = start([namesake('', DRAINED)], unrecorded);
        answer(world);

        await runToEnd(world);

        expect(world.driver.calls).toContain('delete');
        expect(world.machines.get(KEY)).toBeUndefined();
      },
    );

    test.each(
      [
        { why: 'its key is not the first', change: deleted('a') },
        { why: 'that one is being drained', change: deleted('other', 'Initiate node drain') },
        {
          why: 'that one only was at this stage',
          change: deleted('other', undefined, (m) => delete m.metadata.deletionTimestamp),
        },
        {
          why: 'a hook holds that one',
          change: deleted('other', undefined, (m) => {
            m.metadata.annotations = { 'pre-terminate.delete.hook.machine.cluster.x-k8s.io': '' };
          }),
        },
      ].flatMap((one) => answers.map((two) => ({ ...one, ...two }))),
    )('waits while $why: the driver $what', async ({ change, answer }) => {
      const world = start([namesake('', change)], unrecorded);
      answer(world);

      await runToEnd(world);
      world.clock.advance(2 * MINUTE);
      await runToEnd(world);

      expect(world.driver.calls).not.toContain('delete');
      expect(operationOf(world)?.state).toBe('Failed');
    });

    test('waits while a third one is not, which the driver could return', async () => {
      const third = namesake('', (m) => Object.assign(m.metadata, { namespace: 'third', uid: 'third' }));
      const world = start([namesake('', DRAINED), third], unrecorded);

      await runToEnd(world);

      expect(world.driver.calls).not.toContain('delete');
    });
  });
});
