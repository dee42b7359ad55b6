import { describe, expect, test } from '@jest/globals';

import { Faults, simulatedError, parseFaultRules } from './faults.ts';
import type { FaultRule } from './faults.ts';

const half: FaultRule = { method: 'CreateMachine', effect: 'fail', probability: 0.5 };
const names = Array.from({ length: 200 }, (_, i) => `m-${i}`);

/** Which of these machines' first creations go wrong, by number. */
function hit(seed: string, order: readonly string[]): Set<number> {
  const faults = new Faults(seed);
  faults.set([half]);
  return new Set([...order.keys()].filter((i) => faults.next('CreateMachine', order[i] ?? '') !== undefined));
}

describe('Faults', () => {
  test('hits the same calls with the same seed, whatever the machines are called', () => {
    const hits = hit('seed', names);

    expect(
      hit(
        'seed',
        names.map((name) => `other-${name}`),
      ),
    ).toEqual(hits);
    expect(hit('another seed', names)).not.toEqual(hits);
    expect(hits.size).toBeGreaterThan(70);
    expect(hits.size).toBeLessThan(130);
  });

  test('decides anew for each call of a machine', () => {
    const faults = new Faults('seed');
    faults.set([half]);

    const calls = names.map(() => faults.next('CreateMachine', 'm-1') !== undefined);

    expect(new Set(calls)).toEqual(new Set([true, false]));
  });

  test('takes the first rule that applies, as often as it may', () => {
    const faults = new Faults('seed');
    faults.set([
      { method: 'DeleteMachine', effect: 'hang' },
      { method: '*', effect: 'fail', machines: 'm-[12]', times: 2, code: 'Aborted' },
      { method: 'CreateMachine', effect: 'late' },
    ]);

    const effects = ['m-1', 'm-3', 'm-12', 'm-2', 'm-1'].map((name) => faults.next('CreateMachine', name)?.effect);

    expect(effects).toEqual(['fail', 'late', 'late', 'fail', 'late']);
    expect(faults.next('DeleteMachine', 'm-1')?.effect).toBe('hang');
    expect(faults.next('ListMachines', '')).toBeUndefined();
  });

  test('makes the failure that a rule describes', () => {
    const failure = simulatedError({
      method: '*',
      effect: 'fail',
      code: 'ResourceExhausted',
      message: 'zone is full',
      retryAfterMs: 5_000,
      lastKnownState: 's',
    });

    expect(failure).toMatchObject({
      code: 'ResourceExhausted',
      detail: 'zone is full',
      retryAfterMs: 5_000,
      lastKnownState: 's',
    });
    expect(simulatedError({ method: '*', effect: 'fail' }).code).toBe('Internal');
  });
});

describe('parseFaultRules', () => {
  test('takes a list of rules', () => {
    const rules = [{ method: '*', effect: 'fail', code: 'NotFound', probability: 0.1, times: 3, machines: 'm-.*' }];

    expect(parseFaultRules(rules)).toEqual(rules);
  });

  test.each([
    { rules: {}, why: 'must be a list' },
    { rules: ['fail'], why: 'faults[0]: must be an object' },
    { rules: [{ method: 'CreateMachine' }], why: 'requires method and effect' },
    { rules: [{ method: 'Create', effect: 'fail' }], why: 'faults[0].method' },
    { rules: [{ method: '*', effect: 'explode' }], why: 'faults[0].effect' },
    { rules: [{ method: '*', effect: 'fail', code: 'Teapot' }], why: 'faults[0].code' },
    { rules: [{ method: '*', effect: 'fail', probability: 2 }], why: 'faults[0].probability' },
    { rules: [{ method: '*', effect: 'fail', machines: '(' }], why: 'faults[0].machines' },
    { rules: [{ method: '*', effect: 'fail', when: 'now' }], why: 'faults[0].when: unknown field' },
  ])('refuses a mistake: $why', ({ rules, why }) => {
    expect(() => parseFaultRules(rules)).toThrow(why);
  });
});
