import { describe, expect, test } from '@jest/globals';

import { SECOND } from '../../../../test/durations.ts';
import { machine, machineClass, secret } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { DriverError } from '../../../driver/error.ts';
import type { MachineRequest } from '../../../driver/driver.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { contradicts } from './confirmation.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const NOT_FOUND = new DriverError('NotFound', 'no VM');

/** The VM of a machine, whose Node has a name of its own. */
const vmOf = (name: string) => ({ providerID: `sim:///vm-of-${name}`, nodeName: `ip-of-${name}`, addresses: [] });

type Answer = (asked: string) => ReturnType<typeof vmOf>;

/** m-1 and m-2 are both to be made; the driver makes the right VMs, and answers the first creation of each as `answer` says. */
function start(answer: Answer): FakeWorld {
  const world = new FakeWorld();
  const { driver } = world;
  driver.notFound = () => NOT_FOUND;
  driver.create = ({ machine: { metadata } }: MachineRequest) => {
    driver.calls.push(`create ${metadata.name}`);
    driver.vms.set(metadata.name, vmOf(metadata.name));
    return Promise.resolve({ ...answer(metadata.name), lastKnownState: undefined });
  };
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  world.secrets.put(secret((s) => void (s.data['userData'] = '')));
  for (const name of ['m-1', 'm-2']) world.machines.put(toBeMade(name));
  return world;
}

function toBeMade(name: string, deleted = false): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { name, labels: {}, finalizers: [FINALIZER] });
    if (deleted) Object.assign(m.metadata, { resourceVersion: '50', deletionTimestamp: '2026-01-01T00:00:00Z' });
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.status = {} as (typeof m)['status'];
  });
}

async function run(world: FakeWorld, name: string, steps = world.upkeep): Promise<void> {
  for (let i = 0; i < 12 && current(world, name) !== undefined; i++) {
    await world.pass(steps, `default/${name}`);
    await world.settle();
  }
}

const current = (world: FakeWorld, name: string): Machine | undefined => world.machines.get(`default/${name}`);
const recordOf = (world: FakeWorld, name: string): unknown => {
  const { spec, metadata } = current(world, name) ?? {};
  return [spec?.providerID, metadata?.labels?.['node']];
};
const own = (name: string): unknown => [vmOf(name).providerID, vmOf(name).nodeName];
const mixedUp: Answer = () => vmOf('m-2');

describe('a creation of m-1 that is answered with the VM of m-2, which is in creation too,', () => {
  test.each([
    { what: 'whole', answer: mixedUp },
    {
      what: 'its provider id',
      answer: (): ReturnType<Answer> => ({ ...vmOf('m-1'), providerID: vmOf('m-2').providerID }),
    },
    { what: 'its Node name', answer: (): ReturnType<Answer> => ({ ...vmOf('m-1'), nodeName: vmOf('m-2').nodeName }) },
  ])('($what) is refused and says so; each machine gets its own VM', async ({ answer }) => {
    const world = start((asked) => (asked === 'm-1' ? answer(asked) : vmOf(asked)));

    await run(world, 'm-1');
    expect(current(world, 'm-1')?.status).toMatchObject({
      currentStatus: { phase: 'CrashLoopBackOff' },
      lastOperation: {
        errorCode: 'Internal',
        description: expect.stringMatching(/returned .* from CreateMachine, but .* from GetMachineStatus/),
      },
    });
    expect(recordOf(world, 'm-1')).toEqual([undefined, undefined]);
    await run(world, 'm-2');
    world.clock.advance(5 * SECOND);
    await run(world, 'm-1');

    expect([recordOf(world, 'm-1'), recordOf(world, 'm-2')]).toEqual([own('m-1'), own('m-2')]);
    expect(world.driver.calls.filter((call) => call.startsWith('create'))).toEqual(['create m-1', 'create m-2']);
  });

  test('is refused when m-2 was recorded before it, without another question', async () => {
    const world = start(mixedUp);
    await run(world, 'm-2');
    world.machines.put(toBeMade('m-3'));
    world.driver.calls.length = 0;

    await run(world, 'm-1');
    expect(current(world, 'm-1')?.status?.lastOperation?.description).toContain('which is the VM of Machine m-2');
    expect(world.driver.calls).toEqual(['status', 'create m-1']);
    world.clock.advance(5 * SECOND);
    await run(world, 'm-1');

    expect([recordOf(world, 'm-1'), recordOf(world, 'm-2')]).toEqual([own('m-1'), own('m-2')]);
  });

  test('makes no second VM where creations are not idempotent', async () => {
    const world = start(mixedUp);
    world.driver.idempotentCreate = false;
    // The provider is slow to show the VM, after it has told of it once.
    world.driver.failures = { status: [NOT_FOUND, undefined, NOT_FOUND] };
    for (let i = 0; i < 3; i++) {
      await run(world, 'm-1');
      world.clock.advance(20 * SECOND);
    }

    expect(recordOf(world, 'm-1')).toEqual(own('m-1'));
    expect(world.driver.calls.filter((call) => call.startsWith('create'))).toEqual(['create m-1']);
  });

  test('costs m-2 nothing when m-1 is deleted before anything is recorded', async () => {
    const world = start(mixedUp);
    await world.reconcile('default/m-1');
    await world.settle();
    world.driver.vms.set('m-2', vmOf('m-2'));
    world.machines.put(toBeMade('m-1', true));

    await run(world, 'm-1', world.deletion);

    expect(current(world, 'm-1')).toBeUndefined();
    expect([...world.driver.vms.keys()]).toEqual(['m-2']);
  });
});

describe('the answer to a creation', () => {
  test('is believed without another question when every other machine has its VM', async () => {
    const world = start(vmOf);
    await run(world, 'm-2');
    world.driver.calls.length = 0;

    await run(world, 'm-1');

    expect(recordOf(world, 'm-1')).toEqual(own('m-1'));
    expect(world.driver.calls).toEqual(['status', 'create m-1']);
  });

  test.each([
    { what: 'does not show the VM yet', second: NOT_FOUND },
    { what: 'fails', second: new DriverError('Unavailable', 'busy') },
    { what: 'is not known to the driver', second: new DriverError('Unimplemented', 'no such method') },
    {
      what: 'says that the VM is not initialized',
      second: new DriverError('Uninitialized', 'x', { result: vmOf('m-1') }),
    },
  ])('is believed when GetMachineStatus $what', async ({ second }) => {
    const world = start(vmOf);
    world.driver.failures = { status: [NOT_FOUND, second] };

    await run(world, 'm-1');

    expect(recordOf(world, 'm-1')).toEqual(own('m-1'));
  });

  test('is not believed when an uninitialized VM is another one', async () => {
    const world = start(mixedUp);
    world.driver.failures = { status: [NOT_FOUND, new DriverError('Uninitialized', 'x', { result: vmOf('m-1') })] };

    await run(world, 'm-1');

    expect(recordOf(world, 'm-1')).toEqual([undefined, undefined]);
  });
});

test.each([
  { told: ['aws:///eu-west-1/i-1', 'ip-1'], seen: ['aws:///eu-west-1/i-1', 'ip-1'], is: false },
  { told: ['aws:///eu-west-1/i-1', 'ip-1'], seen: ['aws:///eu-west-1a/i-1', 'ip-1'], is: false },
  { told: ['aws:///eu-west-1/i-1', 'ip-1'], seen: ['aws:///eu-west-1/i-2', 'ip-1'], is: true },
  { told: ['aws:///eu-west-1/i-1', 'ip-1'], seen: ['aws:///eu-west-1/i-1', 'ip-2'], is: true },
  { told: ['aws:///eu-west-1/i-1', ''], seen: ['aws:///eu-west-1/i-1', 'ip-2'], is: false },
  { told: ['aws:///eu-west-1/i-1', 'ip-1'], seen: ['aws:///eu-west-1/i-1', ''], is: false },
  { told: ['aws:///eu-west-1/i-1', 'ip-1'], seen: ['', ''], is: false },
  { told: ['', 'ip-1'], seen: ['aws:///eu-west-1/i-1', 'ip-1'], is: false },
])('$seen contradicts $told: $is', ({ told, seen, is }) => {
  const identity = ([providerID = '', nodeName = '']: readonly string[]) => ({ providerID, nodeName });

  expect(contradicts(identity(told), identity(seen))).toBe(is);
});
