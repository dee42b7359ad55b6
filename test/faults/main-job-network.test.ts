import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { sampled } from '../expect/sampled.ts';
import { httpProxyFor } from '../integration/kube-session.ts';
import { FaultProxy, type NetworkState } from '../proxy/fault-proxy.ts';
import type { Fault } from '../proxy/http-fault-proxy.ts';

/*
 * A pool lives from its creation, through a roll, to its deletion, while its manager sees the API server only through something
 * that fails again and again. All rows live side by side. A sample has one row of a network and one of a server; simulated worlds have
 * all that is in them.
 */
const PATIENCE = { timeoutMs: 300_000 };
const MACHINES = 5;
const TEST_MS = 1_200_000;

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** What a network does: it works for a while, then it does not. */
interface NetworkRow {
  readonly what: string;
  readonly upMs: number;
  readonly state: NetworkState;
  readonly faultMs: number;
  /** Whether it is in no sample, because it takes minutes. */
  readonly takesMinutes?: true;
}

/** What a server does at every n-th mutation, Events aside. */
interface ServerRow {
  readonly what: string;
  readonly n: number;
  readonly fault: Omit<Fault, 'matches'>;
}

const NETWORKS: readonly NetworkRow[] = [
  { what: 'connections are cut every 400 ms', upMs: 400, state: 'refuse', faultMs: 0, takesMinutes: true },
  { what: 'connections are refused for a second', upMs: 1_500, state: 'refuse', faultMs: 1_000 },
  { what: 'connections stall for two seconds', upMs: 1_500, state: 'stall', faultMs: 2_000 },
  { what: 'all answers of a second are lost', upMs: 1_500, state: 'swallow-to-client', faultMs: 1_000 },
];

const SERVERS: readonly ServerRow[] = [
  { what: 'asks for patience', n: 3, fault: { status: 429, retryAfterSeconds: 1 } },
  { what: 'fails', n: 3, fault: { status: 500, reason: 'InternalError' } },
  { what: 'does it and says that it failed', n: 4, fault: { status: 500, afterwards: true } },
  { what: 'does it and says that it timed out', n: 4, fault: { status: 504, afterwards: true } },
];

/** What came of a life. */
interface Outcome {
  readonly what: string;
  readonly failure: string | undefined;
  readonly created: number;
  readonly doubled: readonly string[];
}

async function liveBehind(what: string, url: string): Promise<Outcome> {
  await using cloud = await SimulatedCloud.start({
    site,
    latencyMs: { ...QUICK, create: 300, delete: 200, join: 200 },
  });
  await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
  const kubeconfig = await site.kubeconfigThrough(url);
  await using _manager = await InProcessManager.start({ ...pool.access, kubeconfig });
  const work = async (): Promise<void> => {
    await pool.untilUp(MACHINES, PATIENCE);
    await pool.roll('2', { maxSurge: 2, maxUnavailable: 1 });
    await pool.untilUp(MACHINES, PATIENCE);
    await pool.delete();
    await pool.untilGone(PATIENCE);
  };
  const [ended] = await Promise.allSettled([work()]);
  const failure = ended.status === 'rejected' ? (ended.reason as Error).message : undefined;
  return { what, failure, created: cloud.created.length, doubled: [...cloud.doubled] };
}

async function withNetwork({ what, upMs, state, faultMs }: NetworkRow): Promise<Outcome> {
  await using proxy = await FaultProxy.start(site.plane.connection.url);
  const over = new AbortController();
  const disturbing = (async () => {
    while (!over.signal.aborted) {
      await sleep(upMs);
      proxy.set(state);
      await sleep(faultMs);
      if (state === 'swallow-to-client') proxy.cut();
      proxy.set('up');
    }
  })();
  const outcome = await liveBehind(what, proxy.url);
  over.abort();
  await disturbing;
  return outcome;
}

/** Events have no consequences, reviews are questions. */
const NO_MUTATIONS: ReadonlySet<string> = new Set(['events', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews']);

async function withServer({ what, n, fault }: ServerRow): Promise<Outcome> {
  await using proxy = await httpProxyFor(site.plane.connection);
  let count = 0;
  const isHit: Fault['matches'] = ({ verb, resource }) =>
    ['create', 'patch', 'delete'].includes(verb) && !NO_MUTATIONS.has(resource) && ++count % n === 0;
  proxy.inject({ matches: isHit, ...fault });
  return await liveBehind(what, proxy.url);
}

function rowsOf<T extends { readonly what: string; readonly takesMinutes?: true }>(
  name: string,
  rows: readonly T[],
): readonly T[] {
  return sampled({
    name,
    rows,
    nameOf: ({ what }) => what,
    kindsOf: () => [name],
    takesMinutes: ({ takesMinutes = false }) => takesMinutes,
  });
}

test(
  'each machine gets one VM and nothing is left at the end, although network or API server fail again and again',
  async () => {
    const [networks, servers] = [rowsOf('networks that fail', NETWORKS), rowsOf('servers that fail', SERVERS)];

    const outcomes = await Promise.all([...networks.map(withNetwork), ...servers.map(withServer)]);

    const wanted = [...networks, ...servers].map(({ what }) => ({
      what,
      failure: undefined,
      created: 2 * MACHINES,
      doubled: [],
    }));
    expect(outcomes).toEqual(wanted);
  },
  TEST_MS,
);
