import { expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { GateClosedError, type Gate } from '../../../kube/gate/gate.ts';
import { copyOf } from '../../machine-facts/status.ts';
import { type MachineContext, MachineNotes } from '../context.ts';
import { becomeFailed } from './fail.ts';

/** A pass over a machine with, or without, a target cluster; `admit` is the gate. */
function contextWith(admit: Gate['admit'], cluster: string | undefined) {
  const ctx = {
    machine: copyOf(machine()),
    nodes: cluster === undefined ? undefined : { cluster },
    pass: new MachineNotes(),
    signal: new AbortController().signal,
  } as unknown as MachineContext; // what becomes of a machine that fails needs no more of a pass
  const counted: string[] = [];
  const metrics = { failed: (reason: string) => void counted.push(reason) };
  return { ctx, counted, deps: { gate: { admit }, clock: new FakeClock(), metrics } };
}

test.each([
  { title: 'all its clusters', cluster: 'target', want: ['control', 'target'] },
  { title: 'the control cluster, without a target', cluster: undefined, want: ['control'] },
])(
  'a machine fails only after a proof of life of $title, and is counted once that is written',
  async ({ cluster, want }) => {
    const asked: unknown[] = [];
    const { ctx, counted, deps } = contextWith((intent, clusters) => {
      asked.push(intent, clusters, phaseOf(ctx.machine));
      return Promise.resolve({ remainingMs: 1, fencingToken: 1n });
    }, cluster);

    await becomeFailed(deps, ctx, 'health-timeout');

    expect(counted).toEqual([]);
    ctx.pass.complete(() => undefined);
    expect(counted).toEqual(['health-timeout']);
    expect(asked).toEqual(['destroy', want, 'Running']);
    expect(phaseOf(ctx.machine)).toBe('Failed');
    expect(ctx.pass.intent).toBe('destroy');
  },
);

test('a machine does not fail when the gate is closed', async () => {
  const closed = new GateClosedError('unproven', 'target', 'no sign of life');
  const { ctx, deps } = contextWith(() => Promise.reject(closed), 'target');

  await expect(becomeFailed(deps, ctx, 'health-timeout')).rejects.toBe(closed);

  expect(phaseOf(ctx.machine)).toBe('Running');
});
