import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { applyManifests, parseManifests, readManifests } from '../control-plane/apply.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { freePort } from '../control-plane/ports.ts';
import { number, readOptions, text } from '../options.ts';
import { Meter, writesAmong } from './meter.ts';
import { type Launch, startProgram } from './programs.ts';
import { roll, scale, WORKLOAD } from './workload.ts';

/**
 * Measures the main job with the simulated cloud (create 0.2 s, join 0.5 s, delete 0.2 s): for each stage the API requests by
 * kind, passes, wall time, CPU and the peak memory of both processes.
 */
const options = readOptions('Measures the main job with the simulated cloud, stage by stage.', {
  machines: number('machines', 500),
  stages: text('what is measured', 'one,create,idle,roll,shrink,delete'),
  built: text('folder with compiled programs to run, as `npm run build` makes them; the sources otherwise'),
  managerFlags: text('flags for the Node of the manager, such as --max-semi-space-size=4', ''),
  driverFlags: text('flags for the Node of the driver', ''),
  logs: text('folder for logs; a new one otherwise'),
});
const { machines: many, built } = options;
const stages = new Set(options.stages.split(','));
const root = path.resolve(import.meta.dirname, '../..');
const logs = options.logs ?? mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));

function launchWith(flags: string): Launch {
  const nodeFlags = flags.split(' ').filter((flag) => flag !== '');
  if (built === undefined) return { root, extension: 'ts', nodeFlags, logs };
  return { root: path.resolve(built), extension: 'js', nodeFlags, logs };
}

await using plane = await startControlPlane({ controllerManager: false, log: (line) => console.error(line) });
const api = plane.connection.api();
await applyManifests(api, parseManifests(readFileSync(path.join(root, 'deploy/namespace.yaml'), 'utf8')));
await applyManifests(api, readManifests(path.join(root, 'crds')));
await applyManifests(api, readManifests(path.join(root, 'deploy/rbac')));
const sockets = mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));
const address = `unix://${path.join(sockets, 'driver.sock')}`;
const driver = startProgram(launchWith(options.driverFlags), 'sim-driver', [
  `--address=${address}`,
  `--kubeconfig=${await plane.connection.kubeconfigFor({ user: 'machinist-sim-driver' })}`,
]);
const own = await plane.connection.kubeconfigFor({ user: 'machinist' });
const port = await freePort();
const manager = startProgram(launchWith(options.managerFlags), 'machinist', [
  'run',
  '--namespace=machinist',
  `--control-kubeconfig=${own}`,
  `--target-kubeconfig=${own}`,
  `--driver=sim=${address}`,
  '--address=127.0.0.1',
  `--port=${port}`,
]);
try {
  await applyManifests(api, parseManifests(WORKLOAD));
  await scale(api, 1);
  await scale(api, 0);
  const { etcd, apiserver } = plane;
  const server = { 'kube-apiserver': apiserver.pid ?? 0, etcd: etcd.pid ?? 0 };
  const meter = new Meter({ api, port, pids: { manager: manager.pid, driver: driver.pid, ...server } });

  if (stages.has('one')) {
    await meter.measure('one machine created', 1, () => scale(api, 1));
    await meter.measure('one machine deleted', 1, () => scale(api, 0));
  }
  await meter.measure(`${many} created`, many, () => scale(api, many));
  if (stages.has('idle')) {
    await meter.quiet();
    const rows = await meter.measure(`idle for 15 s with ${many}`, many, () => sleep(15_000, 15));
    const writes = writesAmong(rows);
    console.log(writes.length === 0 ? '  no writes but Leases' : `  WRITES: ${writes.join('; ')}`);
  }
  if (stages.has('roll')) await meter.measure(`${many} rolled at 10%/10%`, many, () => roll(api, 'second', many));
  if (stages.has('shrink')) {
    const fewer = Math.round((many * 2) / 3);
    const rows = await meter.measure(`${many}→${fewer}`, many - fewer, () => scale(api, fewer));
    console.log(`  needless creations: ${new Map(rows).get('POST machines') ?? 0}`);
    await meter.measure(`${fewer} deleted`, fewer, () => scale(api, 0));
  } else {
    await meter.measure(`${many} deleted`, many, () => scale(api, 0));
  }
  meter.conclude();
} finally {
  await manager.stop();
  await driver.stop();
  rmSync(sockets, { recursive: true, force: true });
  await api.close();
}
console.log(`logs: ${logs}`);
