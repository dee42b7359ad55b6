import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { machine } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import { CREATION_SENT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { hasBegun, judgeName } from './name-verdict.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');

function bare(
  namespace: string,
  createdS = 0,
  change: (m: ReturnType<typeof machine>) => void = () => undefined,
): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { namespace, uid: namespace, labels: {}, annotations: {} });
    m.metadata.creationTimestamp = toTimestamp(NOW + createdS * 1_000);
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.status = {} as (typeof m)['status'];
    change(m);
  });
}

const told = (operation: object) => (m: ReturnType<typeof machine>) => {
  m.status = { lastOperation: operation } as (typeof m)['status'];
};

describe('whether a machine has begun', () => {
  test.each([
    { what: 'one without status', change: () => undefined, is: false },
    {
      what: 'one that waits for its class',
      change: told({ type: 'Create', state: 'Failed', errorCode: 'NeverAsked' }),
      is: false,
    },
    {
      what: 'one that waits for its name',
      change: told({ type: 'Create', state: 'Failed', errorCode: 'NameTaken' }),
      is: false,
    },
    {
      what: 'one that waits for it and may have begun before',
      change: told({ type: 'Create', state: 'Processing', errorCode: 'NameTaken' }),
      is: false,
    },
    {
      what: 'one that says that it begins',
      change: told({ type: 'Create', state: 'Processing', description: 'Creating machine on cloud provider' }),
      is: true,
    },
    {
      what: 'one whose creation failed',
      change: told({ type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted' }),
      is: true,
    },
    { what: 'one that is being deleted', change: told({ type: 'Delete', state: 'Processing' }), is: true },
    {
      what: 'one that is being deleted, and for which nobody was asked',
      change: told({ type: 'Delete', state: 'Processing', errorCode: 'NeverAsked' }),
      is: false,
    },
    {
      what: 'one with a provider ID',
      change: (m: ReturnType<typeof machine>) => void (m.spec.providerID = 'vm-1'),
      is: true,
    },
    {
      what: 'one for which CreateMachine was sent',
      change: (m: ReturnType<typeof machine>) => void (m.metadata.annotations = { [CREATION_SENT_ANNOTATION]: 'x' }),
      is: true,
    },
  ])('$what: $is', ({ change, is }) => {
    expect(hasBegun(bare('a', 0, change))).toBe(is);
  });
});

const begun = (m: ReturnType<typeof machine>): void => void (m.spec.providerID = 'vm-1');

describe('the name of a machine', () => {
  test.each([
    { what: 'alone', others: [], why: undefined },
    { what: 'with one that has begun, however young', others: [bare('b', 3_600, begun)], why: 'has-begun' },
    { what: 'with one that is older', others: [bare('b', -61)], why: 'is-older' },
    { what: 'with one that is not clearly older', others: [bare('b', -60)], why: 'is-as-old' },
    { what: 'with one that is not clearly younger', others: [bare('b', 60)], why: 'is-as-old' },
    { what: 'with one that is younger', others: [bare('b', 61)], why: undefined },
    {
      what: 'with several, of which one has begun',
      others: [bare('b', -61), bare('c', 0), bare('d', 99, begun)],
      why: 'has-begun',
    },
  ])('$what: $why', ({ others, why }) => {
    const verdict = judgeName(bare('a'), others);

    expect(verdict === 'free' ? undefined : verdict.why).toBe(why);
  });

  test('is free for one of several at most, whatever their clocks say within a minute', () => {
    const ages = fc.array(fc.integer({ min: -300, max: 300 }), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(ages, fc.boolean(), (created, hasOneBegun) => {
        const all = created.map((s, i) => bare(`n-${i}`, s, hasOneBegun && i === 0 ? begun : undefined));
        const free = all.filter(
          (one) =>
            hasBegun(one) ||
            judgeName(
              one,
              all.filter((other) => other !== one),
            ) === 'free',
        );

        expect(free.length).toBeLessThanOrEqual(1);
        expect(hasOneBegun ? free : [all[0]]).toEqual([all[0]]);
      }),
    );
  });
});
