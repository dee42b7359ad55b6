import { describe, expect, jest, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { MINUTE } from '../../test/durations.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { GateClosedError, type Admission, type Gate, type Intent } from '../kube/gate/gate.ts';
import { driverMetrics } from '../base/metrics/driver.ts';
import type { Driver, DriverCall, MachineRequest } from './driver.ts';
import { DriverError } from './error.ts';
import { gatedDriver } from './gated-driver.ts';
import type { Interceptor } from '../kube/gate/interceptor.ts';
import { Obedience } from './obedience.ts';

const request = {
  machine: { metadata: { name: 'm-1', namespace: 'shoot' }, spec: {} },
  machineClass: { providerSpec: {} },
  secretData: {},
} as unknown as MachineRequest;
const vm = { providerID: 'sim:///1', nodeName: 'm-1', addresses: [], lastKnownState: undefined };
const signal = new AbortController().signal;

/** A gate whose fence can be moved, and which remembers what it was asked. */
class TestGate implements Gate {
  readonly asked: { intent: Intent; clusters: readonly string[] }[] = [];
  remainingMs = Infinity;
  token = 7n;
  closed: GateClosedError | undefined;

  admit(intent: Intent, clusters: readonly string[]): Promise<Admission> {
    this.asked.push({ intent, clusters });
    if (this.closed !== undefined) return Promise.reject(this.closed);
    return Promise.resolve({ remainingMs: this.remainingMs, fencingToken: this.token });
  }
}

/** A gated driver whose provider answers with `answer`. */
function gated(
  answer: (call: DriverCall) => Promise<unknown>,
  interceptor?: Interceptor,
  obedience?: (gate: TestGate) => Obedience,
) {
  const gate = new TestGate();
  const clock = new FakeClock();
  const registry = new Registry();
  const sent = jest.fn<(call: DriverCall) => void>();
  const method = (_request: unknown, call: DriverCall): Promise<unknown> => {
    sent(call);
    return answer(call);
  };
  const names = [
    'createMachine',
    'initializeMachine',
    'getMachineStatus',
    'deleteMachine',
    'listMachines',
    'getVolumeIDs',
  ];
  const driver = gatedDriver({
    provider: 'sim',
    driver: Object.fromEntries(names.map((name) => [name, method])) as unknown as Driver,
    gate,
    obedience: obedience?.(gate),
    clustersOf: () => ['control', 'target'],
    clusterID: 'c-1',
    clock,
    metrics: driverMetrics(registry),
    ...(interceptor === undefined ? {} : { interceptor }),
  });
  return { driver, gate, clock, registry, sent };
}

/** A Lease of which the token is raised to these, one after the other. */
function obedienceOf(gate: TestGate, tokens: bigint[]): Obedience {
  return new Obedience({
    leadership: () => 'this one',
    raiseAbove() {
      const token = tokens.shift();
      gate.token = token ?? gate.token;
      return Promise.resolve(token === undefined ? 'not expected' : undefined);
    },
    reported: () => undefined,
  });
}

/** Lets everything run that waits for nothing but promises. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** An answer that never comes and does not heed the signal. */
const hang = (): Promise<never> => new Promise(() => undefined);

describe('gatedDriver', () => {
  test.each(['create', 'initialize', 'delete'] as const)(
    'asks the gate before %s and carries its token',
    async (name) => {
      const { driver, gate, sent } = gated(() => Promise.resolve(vm));

      await driver[name](request, signal, MINUTE);

      expect(gate.asked).toEqual([{ intent: 'destroy', clusters: ['control', 'target'] }]);
      expect(sent).toHaveBeenCalledWith(
        expect.objectContaining({ fencingToken: 7n, cluster: 'c-1', timeoutMs: MINUTE }),
      );
    },
  );

  test('sends nothing when the gate is closed', async () => {
    const { driver, gate, sent } = gated(() => Promise.resolve(vm));
    gate.closed = new GateClosedError('outage', 'target', 'closed');

    await expect(driver.create(request, signal, 10 * MINUTE)).rejects.toBe(gate.closed);
    expect(sent).not.toHaveBeenCalled();
  });

  test('reads without the gate, for at most 30 s', async () => {
    const { driver, gate, sent } = gated(() => Promise.resolve(vm));

    await driver.getStatus(request, signal);

    expect(gate.asked).toEqual([]);
    expect(sent).toHaveBeenCalledWith(expect.objectContaining({ timeoutMs: 30_000 }));
  });

  test('gives a creation the time that it is asked to', async () => {
    const { driver, sent } = gated(() => Promise.resolve(vm));

    await driver.create(request, signal, 20 * MINUTE);

    expect(sent).toHaveBeenCalledWith(expect.objectContaining({ timeoutMs: 20 * MINUTE }));
  });

  test('gives up a deletion that is not answered after a minute, so that it can be repeated', async () => {
    const { driver, clock } = gated(hang);
    const outcome = driver.delete(request, signal).catch((err: unknown) => err);
    await settled();

    clock.advance(MINUTE);

    expect(await outcome).toMatchObject({ code: 'Unavailable', unanswered: true });
  });

  test('ends a call that hangs, although the driver does not heed its signal', async () => {
    const { driver, clock } = gated(hang);
    const outcome = driver.create(request, signal, 10 * MINUTE).catch((err: unknown) => err);
    await settled();

    clock.advance(10 * MINUTE);

    expect(await outcome).toMatchObject({ code: 'Unavailable', unanswered: true, timedOut: true });
  });

  test('lets a mutation outlast the admission it began with, while the fence stays open', async () => {
    const answer = Promise.withResolvers<typeof vm>();
    const { driver, gate, clock } = gated(() => answer.promise);
    gate.remainingMs = 10_000;
    const outcome = driver.create(request, signal, 10 * MINUTE);
    await settled();
    for (let i = 0; i < 12; i++) {
      clock.advance(10_000);
      await settled();
    }

    answer.resolve(vm);

    await expect(outcome).resolves.toBe(vm);
    expect(gate.asked.slice(1).every(({ intent }) => intent === 'report')).toBe(true);
    expect(gate.asked.length).toBe(13);
  });

  test('abandons a mutation when the fence has closed', async () => {
    const { driver, gate, clock } = gated(hang);
    gate.remainingMs = 10_000;
    const outcome = driver.create(request, signal, 10 * MINUTE).catch((err: unknown) => err);
    await settled();

    gate.closed = new GateClosedError('fenced', undefined, 'leadership may have been lost');
    clock.advance(10_000);
    await settled();

    expect(await outcome).toMatchObject({ code: 'Canceled', unanswered: true, cause: gate.closed });
  });

  test('is Canceled when the caller gives up', async () => {
    const { driver } = gated(hang);
    const caller = new AbortController();
    const outcome = driver.delete(request, caller.signal).catch((err: unknown) => err);
    await settled();

    caller.abort(new Error('machine was changed'));

    expect(await outcome).toMatchObject({ code: 'Canceled', unanswered: true });
  });

  test('keeps what the driver answered, even if the caller gave up in the same moment', async () => {
    const caller = new AbortController();
    const { driver } = gated(() => {
      queueMicrotask(() => caller.abort());
      return Promise.reject(new DriverError('NotFound', 'gone'));
    });

    await expect(driver.delete(request, caller.signal)).rejects.toMatchObject({ code: 'NotFound', unanswered: false });
    expect(caller.signal.aborted).toBe(true);
  });

  test('leaves mutations to the interceptor, which may lose the answer', async () => {
    const seen: string[] = [];
    const { driver, sent } = gated(
      () => Promise.resolve(vm),
      async ({ text }, send) => {
        seen.push(text);
        await send();
        throw new DriverError('Unavailable', 'answer lost', { unanswered: true });
      },
    );

    await expect(driver.create(request, signal, 10 * MINUTE)).rejects.toMatchObject({ unanswered: true });
    await driver.getStatus(request, signal);

    expect(seen).toEqual(['DRIVER create_machine shoot/m-1']);
    expect(sent).toHaveBeenCalledTimes(2);
  });

  describe('refused for its fencing token', () => {
    /** A driver that has seen token 9. */
    const fenced = async ({ fencingToken }: DriverCall): Promise<typeof vm> => {
      await Promise.resolve();
      if (fencingToken < 9n) throw new DriverError('FailedPrecondition', 'older than 9', { highestToken: 9n });
      return vm;
    };
    const tokensOf = (sent: { mock: { calls: [DriverCall][] } }): bigint[] =>
      sent.mock.calls.map(([{ fencingToken }]) => fencingToken);

    test('repeats the call under a higher one', async () => {
      const { driver, sent } = gated(fenced, undefined, (gate) => obedienceOf(gate, [10n]));

      await expect(driver.create(request, signal, MINUTE)).resolves.toBe(vm);

      expect(tokensOf(sent)).toEqual([7n, 10n]);
    });

    test('repeats it under one that was raised meanwhile, without raising it again', async () => {
      const { driver, gate, sent } = gated(fenced, undefined, (g) => obedienceOf(g, []));
      const outcome = driver.delete(request, signal);
      gate.token = 9n;

      await expect(outcome).resolves.toBe(vm);

      expect(tokensOf(sent)).toEqual([7n, 9n]);
    });

    test('repeats it once only: it may be refused again', async () => {
      const { driver, sent } = gated(fenced, undefined, (gate) => obedienceOf(gate, [8n, 10n]));

      await expect(driver.create(request, signal, MINUTE)).rejects.toMatchObject({ code: 'FailedPrecondition' });

      expect(tokensOf(sent)).toEqual([7n, 8n]);
    });

    test('does not repeat it when leadership has ended', async () => {
      const { driver, gate, sent } = gated(fenced, undefined, (g) => obedienceOf(g, [10n]));
      const outcome = driver.create(request, signal, MINUTE);
      gate.closed = new GateClosedError('fenced', undefined, 'leadership may have been lost');

      await expect(outcome).rejects.toBe(gate.closed);

      expect(tokensOf(sent)).toEqual([7n]);
    });

    test('does not raise the token once the driver has obeyed', async () => {
      let highest = 0n;
      const answer = async (call: DriverCall): Promise<typeof vm> => {
        await Promise.resolve();
        if (call.fencingToken >= highest) return vm;
        throw new DriverError('FailedPrecondition', `older than ${highest}`, { highestToken: highest });
      };
      const { driver, sent } = gated(answer, undefined, (gate) => obedienceOf(gate, [10n]));
      await driver.create(request, signal, MINUTE);
      highest = 9n;

      await expect(driver.delete(request, signal)).rejects.toThrow(/another manager acts for the same cluster/);

      expect(tokensOf(sent)).toEqual([7n, 7n]);
    });

    test('tells what the driver said without leader election', async () => {
      const { driver, sent } = gated(fenced);

      await expect(driver.create(request, signal, MINUTE)).rejects.toMatchObject({ detail: 'older than 9' });

      expect(tokensOf(sent)).toEqual([7n]);
    });
  });

  test('counts durations and failures under the names of the original', async () => {
    let failing = false;
    const { driver, registry } = gated(() =>
      failing ? Promise.reject(new DriverError('ResourceExhausted', 'quota')) : Promise.resolve(vm),
    );
    await driver.create(request, signal, 10 * MINUTE);
    failing = true;
    await driver.create(request, signal, 10 * MINUTE).catch(() => undefined);

    const text = await registry.metrics();

    expect(text).toContain(
      'mcm_cloud_api_driver_request_duration_seconds_count{provider="sim",operation="create_machine"} 1',
    );
    expect(text).toContain(
      'mcm_cloud_api_driver_requests_failed_total{provider="sim",operation="create_machine",error_code="8"} 1',
    );
    expect(text).toContain('mcm_cloud_api_driver_requests_running{provider="sim",operation="create_machine"} 0');
  });

  test('counts that there is no VM as an answer, where that is asked', async () => {
    const { driver, registry } = gated(() => Promise.reject(new DriverError('NotFound', 'there is none')));

    await driver.getStatus(request, signal).catch(() => undefined);
    await driver.delete(request, signal).catch(() => undefined);
    await driver.create(request, signal, MINUTE).catch(() => undefined);

    const text = await registry.metrics();
    const failed = [...text.matchAll(/^mcm_cloud_api_driver_requests_failed_total\{.*operation="(\w+)"/gm)];
    expect(failed.map(([, operation]) => operation)).toEqual(['create_machine']);
    expect(text).toContain('duration_seconds_count{provider="sim",operation="get_machine_status"} 1');
    expect(text).toContain('duration_seconds_count{provider="sim",operation="delete_machine"} 1');
  });
});
