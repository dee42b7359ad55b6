import { expect, test } from '@jest/globals';

import type { RunResult } from './run.ts';
import type { ScriptLimits } from './script.ts';
import { kindOf, shrink } from './shrink.ts';

const result = (...findings: string[]): RunResult => ({
  seed: 1,
  findings,
  virtualMs: 0,
  requests: 0,
  vmsMade: 0,
  deaths: 0,
  digest: '',
  trace: [],
});

test('a seed is made simpler in each way that leaves what it shows', async () => {
  const needs = ({ phases = 3, steps = 20, replicas = 8, without = [] }: ScriptLimits): boolean =>
    phases >= 2 && steps >= 7 && replicas >= 1 && !without.includes('death') && !without.includes('answerLost');
  const runWith = (options: ScriptLimits): Promise<RunResult> =>
    Promise.resolve(needs(options) ? result(`${options.steps} s: Node pool-1-a is left`) : result());

  const { options } = await shrink(result('9 s: Node pool-2-b is left'), { runWith, mayGoOn: () => true });

  expect(options).toMatchObject({ phases: 2, steps: 7, replicas: 1 });
  expect(options.without).not.toContain('death');
  expect(options.without).not.toContain('answerLost');
  expect(options.without).toContain('mishap');
});

test('a seed that was run with limits is made simpler than these, and none of them is lost', async () => {
  const from: ScriptLimits = { phases: 2, replicas: 3, without: ['pause'] };
  const tried: ScriptLimits[] = [];
  const runWith = (options: ScriptLimits): Promise<RunResult> => {
    tried.push(options);
    return Promise.resolve(result());
  };

  const { options } = await shrink(result('5 writes'), { from, runWith, mayGoOn: () => true });

  expect(options).toEqual(from);
  expect(tried.filter(({ phases = 3, replicas = 8 }) => phases > 2 || replicas > 3)).toEqual([]);
  expect(tried.filter(({ without = [] }) => !without.includes('pause'))).toEqual([]);
  expect(
    tried.filter(({ phases, replicas, without }) => phases === 1 || replicas === 1 || without?.length === 2),
  ).not.toEqual([]);
});

test('what shows something else is not the same seed made simpler', async () => {
  const runWith = (): Promise<RunResult> => Promise.resolve(result('3 s: 5 writes'));

  const { options } = await shrink(result('9 s: Node pool-2-b is left'), { runWith, mayGoOn: () => true });

  expect(options).toEqual({});
});

test('names and numbers are no part of what was found', () => {
  expect(kindOf('12 s: Node pool-86df9-x belongs to no Machine')).toBe(
    kindOf('7 s: Node pool-abc-y belongs to no Machine'),
  );
});
