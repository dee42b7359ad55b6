import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { machine, machineClass } from '../../../../test/builders.ts';
import { ActivityRegistry } from '../../../work/activity/registry.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { TurnAbandonedError } from '../../../driver/turn-abandoned.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { orphanVMMetrics } from './metrics.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { Collector } from './collector.ts';

const VM: ListedMachine = { providerID: 'sim:///m-1', machineName: 'm-1', machineUID: undefined };
const SIGHT = { atMs: 0, wallMs: 0, vms: 1, machines: 0 };

async function collect({
  isDryRun = false,
  isOwned = false,
  isOwnedAfterTurn = isOwned,
  namesake,
  providerID = VM.providerID,
  failure,
  failures = [failure],
  isListed = true,
  isSeen = true,
}: {
  isDryRun?: boolean;
  isOwned?: boolean;
  /** After its deletion has waited for its turn. */
  isOwnedAfterTurn?: boolean;
  /** Provider id of the VM that the Machine of the VM's name has. */
  namesake?: string;
  providerID?: string;
  failure?: Error;
  /** Of as many deletions, one each minute. */
  failures?: readonly (Error | undefined)[];
  /** Between these. */
  isListed?: boolean;
  /** Whether its class can be listed then. */
  isSeen?: boolean;
}) {
  const driver = new FakeDriver();
  let isFoundOwned = isOwned;
  let begin: () => void = () => undefined;
  driver.nextTurn = new Promise((resolve) => {
    begin = resolve;
  });
  if (namesake !== undefined) driver.vms.set('m-1', { providerID: namesake, nodeName: 'm-1', addresses: [] });
  const told: string[] = [];
  const clock = new FakeClock();
  const activities = new ActivityRegistry({
    clock,
    log: silentLogger,
    metrics: { track: () => undefined, settled: () => undefined },
    limits: { create: 1, initialize: 1, status: 1, delete: 1, drain: 1 },
  });
  const collector = new Collector('orphan-vms', {
    activities,
    recorder: { event: ({ reason }) => void told.push(reason) },
    metrics: orphanVMMetrics(new Registry(), () => 0),
    clock,
    log: silentLogger,
    isDryRun,
    isOwned: () => isFoundOwned,
    namesakeOf: () => (namesake === undefined ? undefined : machine()),
    collected: () => void told.push('collected'),
    stays: () => void told.push('stays'),
  });
  const access = { key: 'default/class-1', machineClass: machineClass(), driver, secretData: {} };
  const lists = { isListed: () => true, accessOf: () => access };
  for (const one of failures) {
    driver.failures = one === undefined ? {} : { delete: [one] };
    collector.collect({
      vm: { ...VM, providerID },
      access,
      ...lists,
      proof: { first: SIGHT, sinceMs: SIGHT.atMs, second: SIGHT },
    });
    for (let i = 0; i < 30; i++) await Promise.resolve();
    isFoundOwned = isOwnedAfterTurn;
    begin();
    for (let i = 0; i < 30; i++) await Promise.resolve();
    collector.settle();
    collector.keep(new Set(isListed ? [providerID] : []), new Set(isSeen ? [] : [access.key]));
    clock.advance(MINUTE_MS);
  }
  return { calls: driver.calls, told };
}

test.each([
  { title: 'is deleted', options: {}, calls: ['delete'], told: ['OrphanVMDeleted', 'collected'] },
  { title: 'is left alone in a dry run', options: { isDryRun: true }, calls: [], told: ['OrphanVMFound'] },
  { title: 'is left alone without an ID', options: { providerID: '', namesake: 'sim:///other' }, calls: [], told: [] },
  { title: 'that has got a Machine is left alone', options: { isOwned: true }, calls: [], told: [] },
  {
    title: 'that gets a Machine while it waits for its turn is left alone',
    options: { isOwnedAfterTurn: true },
    calls: [],
    told: [],
  },
  {
    title: 'that its namesake has is left alone, which is told of',
    options: { namesake: VM.providerID },
    calls: ['status'],
    told: ['OrphanVMFound'],
  },
  {
    title: 'whose namesake has none as far as the provider says is left alone, which is told of',
    options: { namesake: '' },
    calls: ['status'],
    told: ['OrphanVMFound'],
  },
  {
    title: 'whose namesake has another VM is deleted',
    options: { namesake: 'sim:///other' },
    calls: ['status', 'delete'],
    told: ['OrphanVMDeleted', 'collected'],
  },
  {
    title: 'that is gone already counts as deleted',
    options: { failure: new DriverError('NotFound', 'gone') },
    calls: ['delete'],
    told: ['OrphanVMDeleted', 'collected'],
  },
  {
    title: 'that its driver does not find for long, although it is listed, was not deleted',
    options: { failures: Array.from({ length: 5 }, () => new DriverError('NotFound', 'gone')) },
    calls: Array.from({ length: 5 }, () => 'delete'),
    told: ['OrphanVMDeleted', 'collected', 'stays', 'OrphanVMDeletionFailed', 'stays', 'OrphanVMDeletionFailed'],
  },
  {
    title: 'that was deleted may be listed for a while',
    options: { failures: [undefined, ...Array.from({ length: 3 }, () => new DriverError('NotFound', 'gone'))] },
    calls: Array.from({ length: 4 }, () => 'delete'),
    told: ['OrphanVMDeleted', 'collected', 'stays', 'OrphanVMDeletionFailed'],
  },
  {
    title: 'that a slow provider deletes may be listed for minutes',
    options: { failures: Array.from({ length: 10 }, () => undefined) },
    calls: Array.from({ length: 10 }, () => 'delete'),
    told: ['OrphanVMDeleted', 'collected'],
  },
  {
    title: 'that is listed ten minutes after it was deleted was not, which is told every ten minutes',
    options: { failures: Array.from({ length: 30 }, () => undefined) },
    calls: Array.from({ length: 30 }, () => 'delete'),
    told: ['OrphanVMDeleted', 'collected', 'stays', 'OrphanVMDeletionFailed', 'stays', 'OrphanVMDeletionFailed'],
  },
  {
    title: 'that comes again with its ID may be gone already each time',
    options: { failures: Array.from({ length: 5 }, () => new DriverError('NotFound', 'gone')), isListed: false },
    calls: Array.from({ length: 5 }, () => 'delete'),
    told: Array.from({ length: 5 }, () => ['OrphanVMDeleted', 'collected']).flat(),
  },
  {
    title: 'that its driver does not find for long was not deleted although its class could not be listed in between',
    options: {
      failures: Array.from({ length: 4 }, () => new DriverError('NotFound', 'gone')),
      isListed: false,
      isSeen: false,
    },
    calls: Array.from({ length: 4 }, () => 'delete'),
    told: ['OrphanVMDeleted', 'collected', 'stays', 'OrphanVMDeletionFailed'],
  },
  {
    title: 'that could not be deleted is told of',
    options: { failure: new DriverError('Internal', 'no') },
    calls: ['delete'],
    told: ['OrphanVMDeletionFailed'],
  },
  {
    title: 'whose turn was given up is told of by the next process',
    options: { failure: new TurnAbandonedError('the process is stopping') },
    calls: ['delete'],
    told: [],
  },
])('a VM without a Machine $title', async ({ options, calls, told }) => {
  expect(await collect(options)).toEqual({ calls, told });
});
