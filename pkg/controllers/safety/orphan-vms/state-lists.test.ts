import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { MADE_FOR_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { ListedMachine, MachineRequest } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { VMStates } from '../../machine-facts/vm-states.ts';
import { StateLists } from './state-lists.ts';

const { signal } = new AbortController();
const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: 'u', state: 'ACTIVE' };

class Provider extends FakeDriver {
  listed: readonly ListedMachine[] | Error = [VM];
  readonly asked: string[] = [];
  override methods = new Set<'ListMachines'>(['ListMachines']);

  override list(request?: Omit<MachineRequest, 'machine'>): Promise<readonly never[]> {
    this.asked.push(request?.machineClass.metadata.name ?? '');
    return this.listed instanceof Error
      ? Promise.reject(this.listed)
      : Promise.resolve(this.listed as readonly never[]);
  }
}

/** Classes of a front end and of its user, by name; those that end with -unused have no Machine. */
function worldOf(...names: readonly string[]) {
  const clock = new FakeClock();
  const provider = new Provider();
  const vmStates = new VMStates();
  const classes = names.map((name) =>
    machineClass((one) => {
      one.metadata.name = name;
      if (name.startsWith('made')) one.metadata.labels[MADE_FOR_LABEL] = 'mirantis';
    }),
  );
  const used = names.filter((name) => !name.endsWith('-unused'));
  const machines = used.map((name) =>
    machine((one) => {
      one.metadata.name = name;
      one.spec.class = { kind: 'MachineClass', name };
    }),
  );
  const looks = new StateLists({
    classes: new MemoryInformer<MachineClass>(classes, {}),
    machines: new MemoryInformer<Machine>(machines, { [CLASS_INDEX]: classIndex }),
    drivers: { resolve: () => provider, all: () => [provider] },
    secrets: { of: () => Promise.resolve({ data: {}, missing: [], fingerprint: '' }) },
    vmStates,
    clock,
    log: silentLogger,
  });
  return { clock, provider, vmStates, looks };
}

// promise: openstack/cloud/state-front-end-minute
test('states of VMs of a front end are looked at each minute, those of others and of classes without Machines are not', async () => {
  const { clock, provider, vmStates, looks } = worldOf('made', 'made-unused', 'plain');

  expect(await looks.list(signal)).toBe(60_000);
  expect(provider.asked).toEqual(['made']);
  expect(vmStates.get(VM.providerID)?.state).toBe('ACTIVE');

  provider.listed = [{ ...VM, state: 'SHUTOFF' }];
  clock.advance(59_999);
  expect(await looks.list(signal)).toBe(1);
  expect(vmStates.get(VM.providerID)?.state).toBe('ACTIVE');
  clock.advance(1);
  await looks.list(signal);
  expect(vmStates.get(VM.providerID)?.state).toBe('SHUTOFF');
  expect(provider.asked).toEqual(['made', 'made']);
});

test('what has just been seen is not looked at, and what a list does not show is kept', async () => {
  const { clock, provider, vmStates, looks } = worldOf('made');
  vmStates.saw([{ ...VM, providerID: 'sim:///other' }], true);
  looks.seen();

  expect(await looks.list(signal)).toBe(60_000);
  expect(provider.asked).toEqual([]);
  clock.advance(60_000);
  await looks.list(signal);

  expect(vmStates.get('sim:///other')?.state).toBe('ACTIVE');
});

test('a class that cannot be listed keeps others from nothing, and is looked at again a minute later', async () => {
  const { clock, provider, looks } = worldOf('made', 'made-too');
  provider.listed = new DriverError('Unavailable', 'no answer');

  expect(await looks.list(signal)).toBe(60_000);
  expect(provider.asked).toEqual(['made', 'made-too']);
  clock.advance(60_000);
  await looks.list(signal);
  expect(provider.asked).toHaveLength(4);
  clock.advance(60_000);
  await expect(looks.list(AbortSignal.abort(new Error('over')))).rejects.toThrow('over');
});

test('a driver that cannot list is not asked to', async () => {
  const { provider, looks } = worldOf('made');
  provider.methods = new Set();

  await looks.list(signal);

  expect(provider.asked).toEqual([]);
});
