import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { MemoryInformer } from '../../test/memory-informer.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { OWN_KINDS } from '../operator/cached/own.ts';
import { TARGET_KINDS } from '../operator/cached/target.ts';
import { configFrom } from '../operator/config/config.ts';
import { OWN_CONTROLLERS } from '../operator/config/controllers.ts';
import { controllersIn } from '../operator/config/flag-section.ts';
import { leasesOf } from '../operator/config/lease-groups.ts';
import { ConfiguredDrivers } from '../driver/drivers.ts';
import { silentLogger } from '../base/log/logger.ts';
import type { Operator } from '../operator/operator.ts';
import { secureRandom } from '../base/random/random.ts';
import { WORLDS } from '../worlds/served.ts';
import { controllers } from './index.ts';
import { WORLD_FLAGS } from '../worlds/index.ts';
import { singleTarget } from '../kube/targets/targets.ts';

const OF_OTHERS = WORLD_FLAGS.flatMap(controllersIn);
const CONTROLLERS = [...OWN_CONTROLLERS, ...OF_OTHERS];

/** What controllers take from an operator, as far as making them asks for it. */
function operatorWith(names: string, leaseNamespace?: string): Operator {
  const cache = new MemoryInformer([]);
  const kinds = [OWN_KINDS, TARGET_KINDS, ...WORLDS.map((world) => world.kinds)].flatMap(Object.keys);
  const leadership = {
    targets: singleTarget(undefined),
    drivers: new ConfiguredDrivers([]),
    keep: (opened: unknown) => opened,
  };
  const caches = Object.fromEntries(kinds.map((kind) => [kind, cache]));
  const operator = {
    showWork: () => undefined,
    config: configFrom(
      'machinist run',
      new Map([
        ['controllers', [names]],
        ['leader-elect', ['false']],
        ['leader-elect-resource-namespace', leaseNamespace === undefined ? [] : [leaseNamespace]],
        ['ironcore-pool', names.includes('ironcore.pools') ? ['p=unix:///p'] : []],
      ]),
      WORLD_FLAGS,
    ),
    clock: new FakeClock(),
    random: secureRandom,
    log: silentLogger,
    registry: new Registry(),
    metrics: { activity: { track: () => undefined, settled: () => undefined } },
    caches: { ...caches, of: () => caches },
    onSetBack: () => undefined,
    onOutage: () => undefined,
    recorder: () => ({ record: () => undefined }),
    under: () => leadership,
  };
  return operator as unknown as Operator;
}

describe('the controllers', () => {
  test('are those that the flag names, each under the Lease of its group and with a queue of its own', () => {
    const all = controllers(operatorWith(`*,${OF_OTHERS.join()}`, 'of-the-leases'), WORLDS);

    expect(all.map(({ name }) => name).toSorted()).toEqual(CONTROLLERS.toSorted());
    for (const { name, lease } of all) {
      expect([name, ...leasesOf(new Set([name]), WORLD_FLAGS)]).toEqual([name, lease]);
    }
    expect(new Set(all.map(({ queue }) => queue)).size).toBe(CONTROLLERS.length);
  });

  test.each([
    { names: 'machine-set', lease: 'machine-controller-manager', made: 3 },
    { names: 'machine', lease: 'machine-controller', made: 5 },
  ])('of a Lease that no configured one works under are not made: $names', ({ names, lease, made }) => {
    const all = controllers(operatorWith(names), WORLDS);

    expect(all.map((one) => one.lease)).toEqual(Array.from({ length: made }, () => lease));
  });

  test('keep the RoleBinding only where the Leases outlive the namespace of the Machines', () => {
    const isMade = (leaseNamespace?: string): boolean =>
      controllers(operatorWith('*', leaseNamespace), WORLDS).some(({ name }) => name === 'role-binding');

    expect([isMade(), isMade('of-the-leases')]).toEqual([false, true]);
  });

  test('look at a Machine that goes before the machine controller forgets it', () => {
    const names = controllers(operatorWith('*'), WORLDS).map(({ name }) => name);

    expect(names.indexOf('safety.orphan-vms')).toBeLessThan(names.indexOf('machine'));
  });
});
