import { setTimeout as sleep } from 'node:timers/promises';

import { credentials } from '@grpc/grpc-js';

import { Autoscaler } from '../../hack/autoscaler/autoscaler.ts';
import { Cluster, pendingAmong } from '../../hack/autoscaler/cluster.ts';
import { GrpcProvider } from '../../hack/autoscaler/grpc-provider.ts';
import { runLoops } from '../../hack/autoscaler/loops.ts';
import { decodeNode } from '../../hack/autoscaler/node-bytes.ts';
import type { Api } from '../../hack/control-plane/api.ts';
import { podsOn, WEB } from './manifests.ts';
import { areUp, type MachineWatch } from './watch-machines.ts';

const SCAN_MS = 1_000;
const LOOK_MS = 300;
const DEPLOYMENT = `/apis/apps/v1/namespaces/default/deployments/${WEB.name}`;

/** Says one line to whoever watches the demo. */
type Print = (line: string) => void;

export interface PlayOptions {
  readonly api: Api;
  /** Where the manager serves autoscalers. */
  readonly address: string;
  readonly print: Print;
  /** Ends the wait for the manager. */
  readonly signal: AbortSignal;
}

/**
 * Plays a cluster-autoscaler and a scheduler, and says what they do. Resolves, when the manager serves it, with how to end it; rejects
 * with the signal's reason.
 */
export async function playAutoscaler({ api, address, print, signal }: PlayOptions): Promise<() => Promise<void>> {
  const stop = new AbortController();
  const tell = (line: string): void => print(`  autoscaler  ${line}`);
  const provider = new GrpcProvider({
    address,
    credentials: credentials.createInsecure(), // the socket is the owner's alone
    decodeNode: (bytes) => decodeNode(api, bytes),
  });
  await untilServed(provider, signal);
  const cluster = new Cluster(api);
  const autoscaler = new Autoscaler({ provider, cluster, say: tell });
  const onLost = (err: unknown): void => tell(`loop failed: ${err instanceof Error ? err.message : String(err)}`);
  const loops = runLoops({ autoscaler, cluster, scanMs: SCAN_MS, signal: stop.signal, onLost });
  return async () => {
    stop.abort();
    await loops;
    await provider[Symbol.asyncDispose]();
  };
}

async function untilServed(provider: GrpcProvider, signal: AbortSignal): Promise<void> {
  const isServed = (): Promise<boolean> =>
    provider.refresh().then(
      () => true,
      () => false,
    );
  while (!(await isServed())) {
    signal.throwIfAborted();
    await sleep(LOOK_MS);
  }
}

/** What is shown of it. */
export interface ShowOptions {
  readonly api: Api;
  readonly watch: MachineWatch;
  /** Most machines that the autoscaler may make. */
  readonly machines: number;
  readonly print: Print;
  readonly signal: AbortSignal;
}

/**
 * Lets pods wait until machines have come for them, then takes most of them away until the machines that nobody needs are gone. Rejects
 * with the signal's reason.
 */
export async function showAutoscaling({ api, watch, machines, print: say, signal }: ShowOptions): Promise<void> {
  const pods = podsOn(machines);
  const scale = (replicas: number): Promise<unknown> => api.send('PATCH', DEPLOYMENT, { spec: { replicas } });

  say(
    'a model of the cluster-autoscaler calls the manager over gRPC, as the program does; it removes idle machines sooner',
  );
  say(
    `there are no machines; MachineDeployment "workers" may have up to ${machines}, with room for ${WEB.podsPerMachine} pods each`,
  );
  say(`Deployment "${WEB.name}" now requests ${pods} pods of ${WEB.cpu} CPU each, and no machine has room for them:`);
  await scale(pods);
  await watch.until((now) => areUp(now, machines), signal);
  await untilBound(new Cluster(api), signal);
  say(`${machines} machine(s) are running, and ${pods} pods are bound to them`);

  say(`Deployment "${WEB.name}" now requests 1 pod; machines that are not needed are removed:`);
  await scale(1);
  await watch.until((now) => areUp(now, 1), signal);
  say('one machine remains, for the one pod');
}

async function untilBound(cluster: Cluster, signal: AbortSignal): Promise<void> {
  while (pendingAmong(await cluster.pods()).length > 0) {
    signal.throwIfAborted();
    await sleep(LOOK_MS);
  }
}
