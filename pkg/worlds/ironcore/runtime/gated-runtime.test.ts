import { describe, expect, test } from '@jest/globals';

import { runtimeMachine } from '../../../../test/fakes/runtime-machine.ts';
import { wireMessage } from '../../../../test/fakes/wire-message.ts';
import { CONTROL, GateClosedError, type Gate } from '../../../kube/gate/gate.ts';
import { NetworkInterface, Volume } from './gen/ironcore/machine/v1alpha1/machine.ts';
import { gatedRuntime, type PoolRuntime } from './gated-runtime.ts';
import type { IronCoreRuntime, RuntimeCall } from './runtime.ts';

const { signal } = new AbortController();

/** A gate that is open for so long, a runtime that does nothing, and what both were asked. */
function world(remainingMs: number, leftMs?: () => number) {
  const admitted: unknown[] = [];
  const calls: { readonly method: string; readonly timeoutMs: number }[] = [];
  const gate: Gate = {
    admit: async (intent, clusters) => {
      admitted.push([intent, clusters]);
      if (remainingMs === 0) throw new GateClosedError('fenced', undefined, 'closed');
      return { remainingMs, fencingToken: 1n, ...(leftMs !== undefined && { leftMs }) };
    },
  };
  const runtime = new Proxy({} as IronCoreRuntime, {
    get:
      (_target, method: string) =>
      async (...args: unknown[]): Promise<unknown> => {
        calls.push({ method, timeoutMs: (args.at(-1) as RuntimeCall).timeoutMs });
        return [];
      },
  });
  const sent: string[] = [];
  const gated = gatedRuntime({
    address: 'unix:///r.sock',
    runtime,
    gate,
    interceptor: async ({ text }, send) => {
      sent.push(text);
      return await send();
    },
  });
  return { gated, admitted, calls, sent };
}

const CHANGES: readonly { readonly method: string; readonly run: (runtime: PoolRuntime) => Promise<unknown> }[] = [
  { method: 'createMachine', run: (one) => one.create('ns/m', runtimeMachine({}), signal) },
  { method: 'deleteMachine', run: (one) => one.delete('ns/m', 'i', signal) },
  ...(
    [
      ['updateMachineAnnotations', { kind: 'annotate', annotations: {} }],
      ['updateMachinePower', { kind: 'power', power: 1 }],
      ['attachVolume', { kind: 'attachVolume', volume: wireMessage(Volume) }],
      ['updateVolume', { kind: 'updateVolume', volume: wireMessage(Volume) }],
      ['detachVolume', { kind: 'detachVolume', name: 'v' }],
      ['attachNetworkInterface', { kind: 'attachNetworkInterface', networkInterface: wireMessage(NetworkInterface) }],
      ['detachNetworkInterface', { kind: 'detachNetworkInterface', name: 'n' }],
    ] as const
  ).map(([method, change]) => ({ method, run: (one: PoolRuntime) => one.change('ns/m', 'i', change, signal) })),
];

describe('a runtime behind the gate', () => {
  test.each(CHANGES)('asks it before $method, as what destroys, and tells whom it is for', async ({ method, run }) => {
    const { gated, admitted, calls, sent } = world(Infinity);

    await run(gated);

    expect(admitted).toEqual([['destroy', [CONTROL]]]);
    expect(calls).toEqual([{ method, timeoutMs: 30_000 }]);
    expect(sent).toEqual([`IRI ${method.charAt(0).toUpperCase()}${method.slice(1)} ns/m`]);
  });

  // promise: machines-ironcore/change-sent-runtime-carried
  test.each(CHANGES)('gives $method no more time than leadership lasts for certain', async ({ method, run }) => {
    const { gated, calls } = world(2_500);

    await run(gated);

    expect(calls).toEqual([{ method, timeoutMs: 2_500 }]);
  });

  test.each(CHANGES)('gives $method no more time than is left when it is sent', async ({ method, run }) => {
    const { gated, calls } = world(2_500, () => 700);

    await run(gated);

    expect(calls).toEqual([{ method, timeoutMs: 700 }]);
  });

  test.each(CHANGES)('does not send $method when leadership has ended since it was asked', async ({ run }) => {
    const { gated, calls } = world(2_500, () => 0);

    await expect(run(gated)).rejects.toThrow(GateClosedError);
    expect(calls).toEqual([]);
  });

  test.each(CHANGES)('does not send $method when it is closed', async ({ run }) => {
    const { gated, calls, sent } = world(0);

    await expect(run(gated)).rejects.toThrow(GateClosedError);
    expect([calls, sent]).toEqual([[], []]);
  });

  // promise: ironcore/pools-classes/runtime-answers-within
  test('is looked at without asking', async () => {
    const { gated, admitted, calls } = world(0);

    await gated.version(signal);
    await gated.machines({}, signal);
    await gated.events(0, signal);
    await gated.classes(signal);

    expect(admitted).toEqual([]);
    expect(calls).toEqual([
      { method: 'version', timeoutMs: 10_000 },
      { method: 'machines', timeoutMs: 10_000 },
      { method: 'events', timeoutMs: 10_000 },
      { method: 'classes', timeoutMs: 5_000 },
    ]);
  });
});
