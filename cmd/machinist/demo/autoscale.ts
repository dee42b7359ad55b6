import { credentials } from '@grpc/grpc-js';

import { Autoscaler } from '../../../hack/autoscaler/autoscaler.ts';
import { Cluster } from '../../../hack/autoscaler/cluster.ts';
import { GrpcProvider } from '../../../hack/autoscaler/grpc-provider.ts';
import { runLoops } from '../../../hack/autoscaler/loops.ts';
import { decodeNode } from '../../../hack/autoscaler/node-bytes.ts';
import type { Api } from '../../../hack/control-plane/api.ts';
import { WEB } from './manifests.ts';
import { areUp, type MachineWatch } from './watch-machines.ts';

const SCAN_MS = 1_000;
const DEPLOYMENT = `/apis/apps/v1/namespaces/default/deployments/${WEB.name}`;

/** Says one line to whoever watches the demo. */
type Say = (line: string) => void;

/** Plays a cluster-autoscaler and a scheduler, and says what they do. The manager listens for it at `address`. Returns how to end it. */
export function playAutoscaler({ api, address, say }: { api: Api; address: string; say: Say }): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const tell = (line: string): void => say(`  autoscaler  ${line}`);
  const provider = new GrpcProvider({
    address,
    credentials: credentials.createInsecure(), // the socket is the owner's alone
    decodeNode: (bytes) => decodeNode(api, bytes),
  });
  const cluster = new Cluster(api);
  const autoscaler = new Autoscaler({ provider, cluster, say: tell });
  const onLost = (err: unknown): void => {
    if (!signal.aborted) tell(err instanceof Error ? err.message : String(err));
  };
  const loops = runLoops({ autoscaler, cluster, scanMs: SCAN_MS, signal, onLost });
  return async () => {
    stop.abort();
    await loops;
    await provider[Symbol.asyncDispose]();
  };
}

/** What is shown of it. */
export interface ShowOptions {
  readonly api: Api;
  readonly watch: MachineWatch;
  /** Most machines that the autoscaler may make. */
  readonly machines: number;
  readonly say: Say;
  readonly signal: AbortSignal;
}

/**
 * Lets pods wait until machines have come for them, then takes most of them away until the machines that nobody needs are gone. Rejects
 * with the signal's reason.
 */
export async function showAutoscaling({ api, watch, machines, say, signal }: ShowOptions): Promise<void> {
  const pods = machines * WEB.podsPerMachine;
  const scale = (replicas: number): Promise<unknown> => api.send('PATCH', DEPLOYMENT, { spec: { replicas } });

  say(`there is no machine; the autoscaler may make up to ${machines}`);
  say(`Deployment "${WEB.name}" now asks for ${pods} pods of ${WEB.cpu} CPU each; no machine has room for them:`);
  await scale(pods);
  await watch.until((now) => areUp(now, machines), signal);
  say(`${machines} machine(s) are up, with room for ${pods} pods`);

  say(`Deployment "${WEB.name}" now asks for 1 pod; machines that are not needed leave:`);
  await scale(1);
  await watch.until((now) => areUp(now, 1), signal);
  say('one machine is left, for the one pod');
}
