import { describe, expect, test } from '@jest/globals';

import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import { ConfiguredDrivers } from './drivers.ts';
import type { MachineDriver } from './gated-driver.ts';

const driverFor = (provider: string): MachineDriver => ({ provider }) as MachineDriver;
const classOf = (provider?: string): MachineClass => ({ provider, providerSpec: {} }) as MachineClass;

describe('ConfiguredDrivers', () => {
  const aws = driverFor('aws');
  const sim = driverFor('sim');

  test.each([
    { drivers: [aws, sim], provider: 'sim', found: sim },
    { drivers: [aws, sim], provider: 'gcp', found: undefined },
    { drivers: [aws, sim], provider: undefined, found: undefined },
    { drivers: [sim], provider: undefined, found: sim },
    { drivers: [sim], provider: '', found: sim },
    { drivers: [sim], provider: 'aws', found: undefined },
    { drivers: [], provider: '', found: undefined },
  ])('finds the driver of provider "$provider" among $drivers.length', ({ drivers, provider, found }) => {
    expect(new ConfiguredDrivers(drivers).resolve(classOf(provider))).toBe(found);
  });
});
