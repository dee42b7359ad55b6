import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';

import { HTTPSFront } from '../../test/simulation/served/https-front.ts';
import { bearsToken } from '../../test/simulation/served/users.ts';
import { MachinesWorld, NAMESPACE, POOL } from '../../test/simulation/world/machines-world.ts';
import { writeKubeconfig } from '../control-plane/kubeconfig.ts';
import { ADMIN, createPki, readCredential, readToken } from '../control-plane/pki.ts';
import { number, readOptions, text } from '../options.ts';
import { startHousekeeping } from './housekeeping.ts';
import { tellOfMachines } from './machine-lines.ts';
import { keepPace } from './pace.ts';

/** The provider of the playground, so that something happens soon. */
const LATENCY_MS = { create: 3_000, initialize: 200, status: 100, delete: 2_000, list: 200, join: 4_000 };
const LIVES_EVERY_MS = 500;

const options = readOptions(
  'Runs Machinist in a simulation that kubectl can reach: API server, cloud and Nodes exist in this process only.',
  {
    machines: number('initial number of machines of the MachineDeployment', 3),
    pace: number('speed of its time, relative to the host; at least 1', 1),
    port: number('port of the API server on loopback; 0: a free one', 0),
    seed: number('determines names and the order of simultaneous events', 1),
    directory: text('folder of the kubeconfig, created at the start and removed at the end', '.playground'),
  },
);

process.exitCode = await play();

/** Returns an exit code. */
async function play(): Promise<number> {
  const { machines, pace, port, seed, directory } = options;
  if (pace < 1) return refuse('--pace: must be at least 1');
  if (port > 65_535) return refuse('--port: must be at most 65535');
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => ended.abort());
  const startedMs = performance.now();
  const folder = path.resolve(directory);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const files = await createPki(path.join(folder, 'pki'), ['127.0.0.1', 'localhost']);
    const token = readToken(files, ADMIN) ?? '';
    await using world = await MachinesWorld.create({
      seed,
      epochMs: Date.now(),
      replicas: machines,
      pods: { replicas: machines, maxUnavailable: 1, volumes: 0 },
      latencyMs: LATENCY_MS,
    });
    const { control } = world.servers;
    startHousekeeping(control, world.time);
    restartWhenEnded(world);
    const credential = readCredential(files.server, files.serverKey);
    await using front = await HTTPSFront.open({
      credential,
      authenticate: (request) => (bearsToken(request, token) ? ADMIN : undefined),
      handle: (request) => control.handle(request),
      port,
    });
    const kubeconfig = path.join(folder, 'kubeconfig');
    const { certificate: ca } = readCredential(files.ca, files.caKey);
    writeKubeconfig(kubeconfig, { url: front.url, ca, identity: { token }, namespace: NAMESPACE });
    console.log(introduction(path.relative(process.cwd(), kubeconfig), machines));
    tellOfMachines(control, (line) => {
      console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
    });
    await keepPace(world.time, pace, ended.signal);
    return 0;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw err;
    return refuse(`--port: ${port} is in use; choose another one, or 0 for a free one`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function refuse(why: string): number {
  console.error(why);
  return 2;
}

/** A manager that has ended, such as one whose Lease somebody took, is started again, as a Deployment does it. */
function restartWhenEnded(world: MachinesWorld): void {
  const each = (): void => {
    if (world.processes.running.length === 0) void world.processes.start();
    world.time.schedule(LIVES_EVERY_MS, each);
  };
  world.time.schedule(LIVES_EVERY_MS, each);
}

function introduction(kubeconfig: string, machines: number): string {
  return `This is a simulation: the API server, the cloud and the Nodes exist in this process only. The manager is the real one.
With a real kube-apiserver, etcd and kubelets: npm run demo

In another terminal, in the same folder:

  export KUBECONFIG=$PWD/${kubeconfig}
  kubectl get mcd,mcs,mc,nodes
  kubectl describe machine
  kubectl scale mcd ${POOL} --replicas=${machines + 2}
  kubectl delete machine NAME             drains, deletes and replaces it
  kubectl get events --watch
  kubectl patch mcd ${POOL} --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"try":"2"}}}}}'
                                          replaces all machines, one at a time
  npm run -s machinist -- rollout status ${POOL}

Ctrl-C ends the simulation and removes everything.
`;
}
