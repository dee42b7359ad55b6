import { expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import type { Pod } from '../../../apis/wire.ts';
import type { PodRule } from '../../../drain/drain.ts';
import type { DrainedMachine } from '../../machine-facts/pod-rules.ts';
import type { MachineSettings } from '../../machine-facts/settings.ts';
import type { MachineContext } from '../context.ts';
import type { DrainPlan } from './plan.ts';
import { requestOf } from './request.ts';

const STAYS: PodRule = { behavior: 'stays' };
const settings = { drainTimeoutMs: 1, maxEvictRetries: 1, pvDetachTimeoutMs: 1, pvReattachTimeoutMs: 1 };
const never = new AbortController().signal;

test('the drain of a machine obeys the rules for its labels, where there are rules', async () => {
  const asked: DrainedMachine[] = [];
  const target = { cluster: 'target' };
  const of = (whose: DrainedMachine, where: unknown): Promise<(pod: Pod) => PodRule> => {
    asked.push(whose);
    return where === target ? Promise.resolve(() => STAYS) : Promise.reject(new Error('another cluster'));
  };
  const it = machine((m) => void (m.metadata.labels = { os: 'linux' }));
  const ctx = { machine: it, observed: it, signal: never } as unknown as MachineContext;
  const plan = {
    nodes: { target },
    node: node(),
    barrier: 'cordon',
    startMs: 0,
    forceRule: 'usual',
  } as unknown as DrainPlan;
  const deps = {
    clock: new FakeClock(),
    settings: settings as MachineSettings,
    resolveClass: () => Promise.reject(new Error('none')),
  };

  const ruled = requestOf({ ...deps, rules: { of } }, ctx, plan, undefined);
  const plain = requestOf(deps, ctx, plan, undefined);

  expect((await ruled.rules?.(never))?.({} as Pod)).toEqual(STAYS);
  expect(asked).toEqual([{ namespace: 'default', labels: { os: 'linux' }, clusterLabels: undefined }]);
  expect(plain.rules).toBeUndefined();
});
