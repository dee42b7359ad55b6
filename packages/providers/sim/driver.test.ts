import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { DriverCall, MachineRequest } from '../../../pkg/driver/driver.ts';
import type { Capabilities } from '../../../pkg/driver/driver.ts';
import { SimCloud } from './cloud.ts';
import { SimDriver } from './driver.ts';
import { Faults } from './faults.ts';
import type { FaultRule } from './faults.ts';
import { DEFAULT_SIM_SETTINGS } from './settings.ts';

const call: DriverCall = { signal: new AbortController().signal, timeoutMs: 0, fencingToken: 0n, cluster: 'c-1' };
const instant = { create: 0, initialize: 0, status: 0, delete: 0, list: 0, join: 0 };

function simulated(options: { rules?: FaultRule[]; quota?: number; capabilities?: Partial<Capabilities> } = {}) {
  const clock = new FakeClock();
  const cloud = new SimCloud({ clock, journal: undefined });
  const faults = new Faults('seed');
  faults.set(options.rules ?? []);
  const settings = { ...DEFAULT_SIM_SETTINGS, latencyMs: instant, quota: options.quota ?? Infinity };
  const { capabilities = {} } = options;
  return { clock, cloud, faults, driver: new SimDriver({ cloud, faults, clock, settings, capabilities }) };
}

function requestFor(name: string, options: { providerSpec?: unknown; className?: string } = {}): MachineRequest {
  const { providerSpec = {}, className = 'small' } = options;
  const meta = { namespace: 'shoot', resourceVersion: '1', creationTimestamp: '' };
  return {
    machine: { metadata: { ...meta, name, uid: `u-${name}` }, spec: {} },
    machineClass: { metadata: { ...meta, name: className, uid: 'u' }, providerSpec },
    secretData: { userData: new Uint8Array([1]) },
  };
}

/** Lets everything run that waits for nothing but promises. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

describe('SimDriver', () => {
  test('fails without having done anything', async () => {
    const { driver, cloud } = simulated({ rules: [{ method: 'CreateMachine', effect: 'fail', code: 'Unavailable' }] });

    await expect(driver.createMachine(requestFor('m-1'), call)).rejects.toMatchObject({ code: 'Unavailable' });
    expect(cloud.size).toBe(0);
  });

  test('does what it says that it failed to do', async () => {
    const { driver, cloud } = simulated({ rules: [{ method: '*', effect: 'fail-after', code: 'Aborted', times: 1 }] });

    await expect(driver.createMachine(requestFor('m-1'), call)).rejects.toMatchObject({ code: 'Aborted' });
    expect(cloud.size).toBe(1);
    await expect(driver.createMachine(requestFor('m-1'), call)).resolves.toMatchObject({ nodeName: 'm-1' });
    expect(cloud.size).toBe(1);
  });

  test('tells nobody of an initialization that changes nothing', async () => {
    const { driver, cloud } = simulated();
    await driver.createMachine(requestFor('m-1'), call);
    const told: string[] = [];
    cloud.onEvent((_vm, event) => told.push(event));

    await expect(driver.initializeMachine(requestFor('m-1'), call)).resolves.toMatchObject({ nodeName: 'm-1' });

    expect(told).toEqual([]);
  });

  test('hangs until it is given up', async () => {
    const { driver, cloud } = simulated({ rules: [{ method: 'CreateMachine', effect: 'hang' }] });
    const caller = new AbortController();
    const outcome = driver
      .createMachine(requestFor('m-1'), { ...call, signal: caller.signal })
      .catch((err: unknown) => err);

    caller.abort(new Error('enough'));

    expect(await outcome).toEqual(new Error('enough'));
    expect(cloud.size).toBe(0);
  });

  test('answers late what it has done in time', async () => {
    const { driver, cloud, clock } = simulated({
      rules: [{ method: 'CreateMachine', effect: 'late', delayMs: 60_000 }],
    });
    let isAnswered = false;
    const outcome = driver.createMachine(requestFor('m-1'), call).finally(() => (isAnswered = true));
    await settled();

    clock.advance(59_999);
    await settled();
    expect({ size: cloud.size, isAnswered }).toEqual({ size: 1, isAnswered: false });
    clock.advance(1);

    await expect(outcome).resolves.toMatchObject({ nodeName: 'm-1' });
  });

  test('makes a VM late of a creation that was given up', async () => {
    const { driver, cloud, clock } = simulated({
      rules: [{ method: 'CreateMachine', effect: 'delayed', delayMs: 60_000, times: 1 }],
    });
    const caller = new AbortController();
    const outcome = driver
      .createMachine(requestFor('m-1'), { ...call, signal: caller.signal })
      .catch((err: unknown) => err);
    await settled();
    caller.abort(new Error('enough'));

    expect(await outcome).toEqual(new Error('enough'));
    clock.advance(59_999);
    expect(cloud.size).toBe(0);
    clock.advance(1);
    expect(cloud.all().map(({ machineName }) => machineName)).toEqual(['m-1']);
  });

  test('makes a second VM where creations find nothing', async () => {
    const { driver, cloud } = simulated();
    driver.settings = { ...driver.settings, createsBlindly: true };

    await driver.createMachine(requestFor('m-1'), call);
    await driver.createMachine(requestFor('m-1'), call);

    expect(cloud.size).toBe(2);
  });

  test('forgets a VM that it has just made', async () => {
    const { driver } = simulated({ rules: [{ method: 'CreateMachine', effect: 'forget', times: 1 }] });

    const { providerID } = await driver.createMachine(requestFor('m-1'), call);

    await expect(driver.getMachineStatus(requestFor('m-1'), call)).rejects.toMatchObject({ code: 'NotFound' });
    expect((await driver.createMachine(requestFor('m-1'), call)).providerID).not.toBe(providerID);
  });

  test('makes a second VM, says that there are several, and deletes both', async () => {
    const { driver, cloud } = simulated({ rules: [{ method: 'CreateMachine', effect: 'duplicate' }] });
    await driver.createMachine(requestFor('m-1'), call);
    await driver.createMachine(requestFor('m-1'), call);

    expect(cloud.size).toBe(2);
    await expect(driver.getMachineStatus(requestFor('m-1'), call)).rejects.toMatchObject({ code: 'OutOfRange' });
    await driver.deleteMachine(requestFor('m-1'), call);
    expect(cloud.size).toBe(0);
  });

  test("answers with another machine's VM, once that has joined", async () => {
    const { driver, cloud, clock } = simulated({ rules: [{ method: 'CreateMachine', effect: 'other' }] });
    const first = await driver.createMachine(requestFor('m-1'), call);
    clock.advance(1);

    const second = await driver.createMachine(requestFor('m-2'), call);

    expect(second).toEqual(first);
    expect(cloud.size).toBe(2);
    expect((await driver.getMachineStatus(requestFor('m-2'), call)).nodeName).toBe('m-2');
  });

  test('lists what was there a while ago', async () => {
    const { driver, faults, clock } = simulated();
    await driver.createMachine(requestFor('m-old'), call);
    clock.advance(10_000);
    await driver.deleteMachine(requestFor('m-old'), call);
    await driver.createMachine(requestFor('m-new'), call);
    clock.advance(1_000);
    faults.set([{ method: 'ListMachines', effect: 'stale', delayMs: 5_000, times: 1 }]);

    const stale = await driver.listMachines(requestFor('x'), call);
    const fresh = await driver.listMachines(requestFor('x'), call);

    expect(stale.map((vm) => vm.machineName)).toEqual(['m-old']);
    expect(fresh.map((vm) => vm.machineName)).toEqual(['m-new']);
  });

  test('names VMs by ids of another form, and knows them by both', async () => {
    const { driver, faults, cloud } = simulated();
    const { providerID } = await driver.createMachine(requestFor('m-1'), call);
    faults.set([{ method: '*', effect: 'other-id' }]);

    const other = await driver.getMachineStatus(requestFor('m-1'), call);
    const [listed] = await driver.listMachines(requestFor('m-1'), call);
    expect(other.providerID).not.toBe(providerID);
    expect(listed).toMatchObject({ providerID: other.providerID, machineName: 'm-1' });

    const stub = { metadata: { name: 'm-1', namespace: 'shoot' }, spec: { providerID: other.providerID } };
    await driver.deleteMachine({ ...requestFor('m-1'), machine: stub }, call);
    expect(cloud.size).toBe(0);
  });

  test('makes no more VMs than the quota allows', async () => {
    const { driver } = simulated({ quota: 1 });
    await driver.createMachine(requestFor('m-1'), call);

    await expect(driver.createMachine(requestFor('m-2'), call)).rejects.toMatchObject({ code: 'ResourceExhausted' });
    await driver.deleteMachine(requestFor('m-1'), call);
    await expect(driver.createMachine(requestFor('m-2'), call)).resolves.toMatchObject({ nodeName: 'm-2' });
  });

  test('is not done with a VM before it was initialized, where the class asks for it', async () => {
    const { driver } = simulated();
    const request = requestFor('m-1', { providerSpec: { initialize: true } });
    const uninitialized = {
      code: 'Uninitialized',
      result: { nodeName: 'm-1', providerID: expect.stringContaining('sim:///') as unknown },
    };

    await expect(driver.createMachine(request, call)).rejects.toMatchObject(uninitialized);
    await expect(driver.getMachineStatus(request, call)).rejects.toMatchObject(uninitialized);
    await driver.initializeMachine(request, call);

    await expect(driver.getMachineStatus(request, call)).resolves.toMatchObject({ nodeName: 'm-1' });
  });

  test('finds a VM that is switched off', async () => {
    const { driver, cloud } = simulated();
    const { providerID } = await driver.createMachine(requestFor('m-1'), call);

    cloud.change(providerID, { power: 'off' });

    await expect(driver.getMachineStatus(requestFor('m-1'), call)).resolves.toMatchObject({ providerID });
  });

  test.each([
    { listScope: 'class', listed: ['m-1'] },
    { listScope: 'cluster', listed: ['m-1', 'm-2'] },
  ] as const)('lists the VMs of the $listScope', async ({ listScope, listed }) => {
    const { driver } = simulated({ capabilities: { listScope } });
    await driver.createMachine(requestFor('m-1'), call);
    await driver.createMachine(requestFor('m-2', { className: 'large' }), call);

    const vms = await driver.listMachines(requestFor('x'), call);

    expect(vms.map((vm) => vm.machineName)).toEqual(listed);
  });

  test('refuses a creation without user data', async () => {
    const { driver } = simulated();

    await expect(driver.createMachine({ ...requestFor('m-1'), secretData: {} }, call)).rejects.toMatchObject({
      code: 'InvalidArgument',
      detail: 'secret: userData is missing or empty',
    });
  });

  test('deletes a VM although its class has become invalid', async () => {
    const { driver, cloud } = simulated();
    await driver.createMachine(requestFor('m-1'), call);

    await driver.deleteMachine(requestFor('m-1', { providerSpec: { size: 5 } }), call);

    expect(cloud.size).toBe(0);
  });

  test('counts calls by method', async () => {
    const { driver } = simulated();
    await driver.createMachine(requestFor('m-1'), call);
    await driver.createMachine(requestFor('m-1'), call);
    await driver.getMachineStatus(requestFor('m-1'), call);

    expect(driver.calls).toEqual({ CreateMachine: 2, GetMachineStatus: 1 });
  });
});
