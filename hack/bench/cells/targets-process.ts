import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import { silentLogger } from '../../../pkg/base/log/logger.ts';
import type { Driver } from '../../../pkg/driver/driver.ts';
import { FencingGuard } from '../../../pkg/driver/fencing.ts';
import { parseDriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { DriverServer } from '../../../pkg/driver/grpc/server.ts';
import { Simulation } from '../../../packages/providers/sim/simulation.ts';
import { CRD_FOLDERS } from '../../../test/env/crds.ts';
import { grant } from '../../../test/integration/shipped-roles.ts';
import { SimulatedControlPlane } from '../../../test/simulation/served/simulated-control-plane.ts';
import { Connection } from '../../control-plane/connection.ts';
import { AccountsDriver } from './accounts-driver.ts';
import { type Answer, type CreatedVM, type Order, type Target, TARGET_ROLES } from './targets.ts';

/*
 * The target clusters of cells, all in this process, and the one driver of them all with an account for each. Started by Targets. Its
 * arguments are the directory of a control plane, whose users the simulated ones take, and the socket of the driver.
 */
const [directory = '', socket = ''] = process.argv.slice(2);
const real = Connection.open(directory);
const clock = new SystemClock();
const folder = mkdtempSync(path.join(tmpdir(), 'machinist-bench-targets-'));
const accounts = new Map<string, Driver>();
const created = new Map<string, CreatedVM[]>();
const simulations = new Map<string, Simulation>();
const stack = new AsyncDisposableStack();
stack.defer(() => rmSync(folder, { recursive: true, force: true }));
stack.use(
  await DriverServer.start({
    driver: new AccountsDriver(accounts, (account, machine) => {
      created.get(account)?.push({ machine, atMs: clock.now() });
    }),
    fencing: await FencingGuard.open({ clock }),
    address: parseDriverAddress(`unix://${socket}`),
    clock,
    log: silentLogger,
  }),
);
const ended = new Promise<void>((resolve) => process.once('disconnect', resolve).once('SIGTERM', () => resolve()));
process.on('message', (order: Order) => void obey(order));
process.send?.({ id: 0 } satisfies Answer);
await ended;
await stack.disposeAsync();
if (process.connected) process.disconnect();

async function obey(order: Order): Promise<void> {
  try {
    process.send?.({ id: order.id, ...(await done(order)) } satisfies Answer);
  } catch (err) {
    process.send?.({ id: order.id, error: String(err) } satisfies Answer);
  }
}

async function done(order: Order): Promise<Omit<Answer, 'id'>> {
  switch (order.do) {
    case 'simulate': {
      return { target: await simulated(order.account) };
    }
    case 'adopt': {
      await open(order.account, order.kubeconfig);
      return {};
    }
    case 'vms': {
      return { vms: [...simulations.values()].reduce((sum, { cloud }) => sum + cloud.size, 0) };
    }
    case 'created': {
      return { created: created.get(order.account) ?? [] };
    }
    case 'calls': {
      return { calls: simulations.get(order.account)?.driver.calls ?? {} };
    }
  }
}

async function simulated(account: string): Promise<Target> {
  const plane = stack.use(await SimulatedControlPlane.start(real, CRD_FOLDERS.own));
  const { connection } = plane;
  const api = connection.api();
  for (const file of TARGET_ROLES) await grant(api, file, 'default');
  await api.close();
  await open(account, await connection.kubeconfigFor({ user: 'machinist-sim-driver' }));
  return { kubeconfig: await connection.kubeconfigFor({ user: 'machinist' }), url: connection.url };
}

async function open(account: string, kubeconfig: string): Promise<void> {
  const cluster = { kubeconfig, nodeLeases: false, podStopMs: 0 };
  const simulation = stack.use(await Simulation.start({ clock, log: silentLogger, seed: account, cluster }));
  simulations.set(account, simulation);
  created.set(account, []);
  accounts.set(account, simulation.driver);
}
