import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Gate } from '../../pkg/kube/gate/gate.ts';
import { HeldWork } from '../../pkg/health/held-work.ts';
import { type Logger, silentLogger } from '../../pkg/base/log/logger.ts';
import { driverMetrics } from '../../pkg/base/metrics/driver.ts';
import { createRegistry } from '../../pkg/base/metrics/registry.ts';
import type { ClusterIdentity } from '../../pkg/operator/cluster-identity.ts';
import { DriverGreetings } from '../../pkg/operator/driver-greetings.ts';
import { openDrivers } from '../../pkg/operator/drivers.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 90_000, intervalMs: 200 };

let directory: string;
let process: DriverProcess;

const start = async (): Promise<void> => {
  process = await DriverProcess.start('sim-driver', [
    `--address=unix://${directory}/driver.sock`,
    `--control=unix://${directory}/control.sock`,
    `--state-directory=${directory}/state`,
  ]);
};

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'greeted-'));
  await start();
});

afterEach(async () => {
  await process[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

test('a driver that is killed and comes back is told by metric, held work and one line each, although nothing is asked of it', async () => {
  const clock = new SystemClock();
  const metrics = driverMetrics(createRegistry());
  const held = new HeldWork({ clock });
  const lines: string[] = [];
  const note = (_fields: object, message: string): void => void lines.push(message);
  const log: Logger = { ...silentLogger, warn: note, info: note, child: () => log };
  const opened = openDrivers({
    addresses: [{ provider: 'sim', address: `unix://${directory}/driver.sock`, qps: 0 }],
    work: 'machine-controller',
    gate: {} as Gate, // nothing is changed
    elector: undefined,
    identity: {} as ClusterIdentity,
    target: undefined,
    held,
    clock,
    log,
    metrics,
    hooks: undefined,
  });
  const greetings = new DriverGreetings({ drivers: opened.drivers.all(), clock, log });
  const shown = async () => ({ up: (await metrics.up.get()).values.map(({ value }) => value), held: held.list() });

  await greetings.start();
  await eventually(async () => expect(await shown()).toEqual({ up: [1], held: [] }), PATIENCE);
  await process.end('SIGKILL');
  await eventually(async () => {
    expect(await shown()).toMatchObject({ up: [0], held: [{ waitsFor: 'driver', of: 'sim' }] });
  }, PATIENCE);
  await start();
  await eventually(async () => expect(await shown()).toEqual({ up: [1], held: [] }), PATIENCE);
  await greetings.stop();
  await opened.close();

  expect(lines).toEqual(['connected to driver', 'could not connect to driver, retrying', 'reconnected to driver']);
}, 200_000);
