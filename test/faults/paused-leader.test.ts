import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { Audit } from '../cloud/audit.ts';
import { Chance } from '../cloud/chance.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * A leader is paused (SIGSTOP) somewhere in its work, for longer than its Lease; another one takes over and goes on; then the
 * first one is resumed. MACHINIST_PAUSED_LEADERS says at how many points (50, or 1,000, in the long form), MACHINIST_FAULT_SEED where.
 */
const LONG_FORM = process.env['MACHINIST_PAUSED_LEADERS'];
const POINTS = Number(LONG_FORM ?? 6);
const SEED = process.env['MACHINIST_FAULT_SEED'] ?? 'machinist';
/** Pools side by side, each with a leader and a standby: they mostly wait. */
const LANES = 6;
const PATIENCE = { timeoutMs: 240_000 };
const MOST_MACHINES = 4;
const LATENCIES = { create: 200, initialize: 5, status: 5, delete: 200, list: 5, join: 100 };
/** On a host that is busy with other things a Lease of 3 s is lost by itself; the short form leaves time for that. */
const [LEASE, RENEW] = LONG_FORM === undefined ? ['8s', '7s'] : ['3s', '2s'];
const SHORT_LEASE = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': LEASE,
  'leader-elect-renew-deadline': RENEW,
  'leader-elect-retry-period': '500ms',
};
/** From waking up to the end of the process, at most. */
const LONGEST_END_MS = LONG_FORM === undefined ? 20_000 : 1_000;
/** Within this time after a change something is under way. */
const WORK_MS = 900;

let audit: Audit;
let site: Site;

beforeAll(async () => {
  audit = new Audit();
  site = await Site.open({ extraArguments: { 'kube-apiserver': audit.arguments } });
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  audit[Symbol.dispose]();
});

/** One paused leader. */
interface Pause {
  readonly group: string;
  readonly what: string;
  readonly resumedMs: number;
  readonly endedAfterMs: number;
}

/** A manager that shows in audits. */
interface Manager {
  readonly group: string;
  readonly process: ManagerProcess;
}

/** A pool that changes again and again while its leaders are paused, one after the other. */
class Lane {
  readonly pauses: Pause[] = [];
  readonly #name: string;
  readonly #chance: Chance;
  readonly #cloud: SimulatedCloud;
  readonly #pool: Pool;
  readonly #managers: Manager[] = [];
  readonly #paused = new Set<Manager>();
  #size = 0;
  #created = 0;

  constructor(name: string, cloud: SimulatedCloud, pool: Pool) {
    this.#name = name;
    this.#chance = new Chance(`${SEED}/${name}`);
    this.#cloud = cloud;
    this.#pool = pool;
  }

  async run(points: number): Promise<void> {
    const over = new AbortController();
    const kept = this.#keepTwo(over.signal);
    try {
      // A leader that loses its Lease because the host is busy, before it is paused, counts for nothing.
      for (let point = 0; this.pauses.length < points; point++) await this.#pause(point);
    } finally {
      over.abort();
      await kept;
      for (const { process } of this.#managers) await process.end('SIGKILL');
    }
  }

  async #pause(point: number): Promise<void> {
    const { leader, identity } = await this.#untilLed('');
    const what = await this.#change(point);
    await sleep(this.#chance.below(WORK_MS, point, 'pause'));
    const isLeading = !leader.process.hasEnded && (await this.#pool.leaders()).every((one) => one === identity);
    this.#paused.add(leader);
    leader.process.signal('SIGSTOP');
    await this.#untilLed(identity);
    await sleep(this.#chance.below(WORK_MS, point, 'resume'));
    const resumedMs = performance.timeOrigin + performance.now();
    leader.process.signal('SIGCONT');
    await leader.process.ended();
    const endedAfterMs = performance.timeOrigin + performance.now() - resumedMs;
    if (isLeading) this.pauses.push({ group: leader.group, what, resumedMs, endedAfterMs });

    await this.#pool.untilUp(this.#size, PATIENCE);
    const { created, deleted, doubled } = this.#cloud;
    const seen = { created: created.length, existing: created.length - deleted, doubled: [...doubled] };
    const wanted = { created: this.#created, existing: this.#size, doubled: [] };
    if (!isDeepStrictEqual(seen, wanted))
      throw new Error(`${what}: ${JSON.stringify(seen)}, ${JSON.stringify(wanted)}`);
  }

  /** Asks for something that takes about a second. */
  async #change(point: number): Promise<string> {
    const name = `${this.#name}, point ${point}`;
    if (this.#size > 0 && this.#chance.below(2, point, 'roll') === 1) {
      this.#created += this.#size;
      await this.#pool.roll(String(point), { maxSurge: 2, maxUnavailable: 1 });
      return `${name}: roll ${this.#size}`;
    }
    const others = Array.from({ length: MOST_MACHINES + 1 }, (_, n) => n).filter((n) => n !== this.#size);
    const size = this.#chance.pick(others, point, 'size');
    const what = `${name}: ${this.#size} to ${size}`;
    this.#created += Math.max(0, size - this.#size);
    this.#size = size;
    await this.#pool.scale(size);
    return what;
  }

  /** Two managers that are not paused, at any time. */
  async #keepTwo(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const working = this.#managers.filter((one) => !this.#paused.has(one) && !one.process.hasEnded);
      if (working.length < 2) await this.#start();
      else await sleep(100);
    }
  }

  async #start(): Promise<void> {
    const group = `${this.#pool.namespace}-${this.#managers.length}`;
    const kubeconfig = await site.kubeconfigIn(group);
    const process = await ManagerProcess.start({ ...this.#pool.access, kubeconfig, flags: SHORT_LEASE });
    this.#managers.push({ group, process });
  }

  /** Waits until one manager, and another than `before`, holds both Leases. */
  async #untilLed(before: string): Promise<{ leader: Manager; identity: string }> {
    const look = async (): Promise<{ leader: Manager; identity: string } | false> => {
      const [one = '', other] = await this.#pool.leaders();
      const leader = this.#managers.find(({ process }) => one !== '' && process.output.includes(one));
      return one === before || one !== other || leader === undefined ? false : { leader, identity: one };
    };
    const found = await eventually(look, { ...PATIENCE, intervalMs: 50, describe: `a leader of ${this.#name}` });
    if (found === false) throw new Error('waited for a leader and got none');
    return found;
  }
}

test(`a leader that is paused past its Lease changes nothing when it wakes up, and ends (${POINTS} points, seed ${SEED})`, async () => {
  const lanes = await Promise.allSettled(
    Array.from({ length: Math.min(LANES, POINTS) }, async (_, i) => {
      await using cloud = await SimulatedCloud.start({ site, latencyMs: LATENCIES });
      await using pool = await Pool.create({ site, cloud, replicas: 0, maxSurge: 2, maxUnavailable: 1 });
      const lane = new Lane(`lane ${i}`, cloud, pool);
      await lane.run(Math.ceil((POINTS - i) / LANES));
      return lane.pauses;
    }),
  );

  expect(lanes.flatMap((lane) => (lane.status === 'rejected' ? [lane.reason as unknown] : []))).toEqual([]);
  const pauses = lanes.flatMap((lane) => (lane.status === 'fulfilled' ? lane.value : []));
  expect(pauses).toHaveLength(POINTS);
  const resumedAt = new Map(pauses.map(({ group, resumedMs }) => [group, resumedMs]));
  const mutations = audit.mutations();
  const late = mutations.filter(
    ({ groups, receivedMs, code }) =>
      code < 300 && groups.some((group) => receivedMs > (resumedAt.get(group) ?? Infinity)),
  );
  expect(mutations.length).toBeGreaterThan(10 * POINTS);
  expect(late).toEqual([]);
  // It takes a tenth of a second; a busy host takes its time.
  expect(pauses.filter(({ endedAfterMs }) => endedAfterMs > LONGEST_END_MS)).toEqual([]);
}, 7_200_000);
