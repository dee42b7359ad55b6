import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import PQueue from 'p-queue';

import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { driverWith } from '../drivers/driver-with.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled } from '../expect/sampled.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';

/*
 * Machines that cannot be created, and many events that mean nothing: the provider is asked when back-off says so, never
 * because something happened. A sample has one of the codes. MACHINIST_RETRIES=full takes 500 machines and 10,000 events; without it there are 100 and 2,000.
 */
const IS_FULL = process.env['MACHINIST_RETRIES'] === 'full';
const MACHINES = IS_FULL ? 500 : 100;
const EVENTS = IS_FULL ? 10_000 : 2_000;
/** Requests at a time by which labels are changed. */
const WRITERS = 16;
/** A wait lies in the upper half of its back-off, and the clock of the test is not that of the manager. */
const TOLERANCE_MS = 50;
/** The shortest back-off. An attempt that a closed gate ends, where the API server is slow, waits as long: its look is repeated. */
const SHORTEST_MS = 5_000;

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** When each machine was asked for by calls of one kind. */
class CallTimes {
  readonly #times = new Map<string, number[]>();

  see(machine: string): void {
    this.#times.set(machine, [...(this.#times.get(machine) ?? []), performance.now()]);
  }

  /** Machines asked for at least once. */
  get machines(): number {
    return this.#times.size;
  }

  get count(): number {
    return [...this.#times.values()].flat().length;
  }

  /** Pauses before the second, third, … call, by machine. */
  get pauses(): number[][] {
    return [...this.#times.values()].map((times) => times.slice(1).map((at, i) => at - (times[i] ?? 0)));
  }
}

const ROWS = [
  { code: 'Internal', firstMs: 5_000, mostMs: 180_000 },
  { code: 'ResourceExhausted', firstMs: 15_000, mostMs: 600_000 },
] as const;

describe('while machines fail and unrelated events arrive, the provider is asked only after a back-off', () => {
  test.each(sampled({ name: 'back-offs', rows: ROWS, nameOf: ({ code }) => code, kindsOf: () => ['back-off'] }))(
    '$code',
    async ({ code, firstMs, mostMs }) => {
      await using cloud = await SimulatedCloud.start({
        site,
        latencyMs: { ...QUICK, create: 5 },
        faults: [{ method: 'CreateMachine', effect: 'fail', code }],
      });
      await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
      const [times, looks] = [new CallTimes(), new CallTimes()];
      const driver = await cloud.serveAnother((own) =>
        driverWith(own, {
          getMachineStatus: async (request, call) => {
            looks.see(request.machine.metadata.name);
            return await own.getMachineStatus(request, call);
          },
        }),
      );
      const interceptDriver: Interceptor = async ({ text }, send) => {
        if (text.startsWith('DRIVER create_machine')) times.see(text);
        return await send();
      };
      await using manager = await InProcessManager.start({ ...pool.access, driver, hooks: { interceptDriver } });
      // Of a class that is out of something not every machine is tried.
      await eventually(async () => times.machines > 0 && (await pool.machines()).length === MACHINES, {
        timeoutMs: 240_000,
      });
      const names = (await pool.machines()).map(({ metadata }) => metadata.name);
      expect(names).toHaveLength(MACHINES);
      const passesBefore = await manager.metric('machinist_reconcile_passes_total', 'controller="machine"');

      const writers = new PQueue({ concurrency: WRITERS });
      await writers.addAll(
        Array.from({ length: EVENTS }, (_, i) => () => pool.touch('machines', names[i % MACHINES] ?? '', String(i))),
      );
      // The second attempts fall between and after the events.
      await eventually(() => times.pauses.some((pauses) => pauses.length > 0), { timeoutMs: 240_000 });

      const passes = (await manager.metric('machinist_reconcile_passes_total', 'controller="machine"')) - passesBefore;
      expect(passes).toBeGreaterThan(MACHINES);
      const tooSoon = times.pauses.flatMap((pauses) =>
        pauses.filter((ms, i) => ms < Math.min(firstMs * 2 ** i, mostMs) / 2 - TOLERANCE_MS),
      );
      expect(tooSoon).toEqual([]);
      // Calls that have just been let through are still on their way.
      await eventually(() => expect(cloud.calls['CreateMachine']).toBe(times.count));
      // Each attempt asks for the VM first, and nothing else asks.
      expect(looks.count).toBeGreaterThanOrEqual(times.count);
      expect(looks.pauses.flat().filter((ms) => ms < SHORTEST_MS / 2 - TOLERANCE_MS)).toEqual([]);
      expect(cloud.created).toEqual([]);
    },
    600_000,
  );
});
