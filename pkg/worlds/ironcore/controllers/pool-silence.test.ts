import { expect, test } from '@jest/globals';
import { listenTo, type PoolSigns } from './pool-health.ts';

const before = { uid: 'u', renewTime: 't1', ready: { status: 'True', observedGeneration: 1 }, sinceMs: 10 } as const;

test.each<{ what: string; uid?: string; signs: Partial<PoolSigns>; isSign: boolean }>([
  { what: 'nothing new', signs: {}, isSign: false },
  { what: 'a renewed Lease', signs: { renewTime: 't2' }, isSign: true },
  { what: 'a Lease that is gone', signs: { renewTime: undefined }, isSign: true },
  { what: 'another status', signs: { ready: { status: 'False', observedGeneration: 1 } }, isSign: true },
  {
    what: 'the status of another generation',
    signs: { ready: { status: 'True', observedGeneration: 2 } },
    isSign: true,
  },
  {
    what: 'that nothing is known, which was said for the lack of signs',
    signs: { ready: { status: 'Unknown' } },
    isSign: false,
  },
  { what: 'another pool of that name', uid: 'v', signs: {}, isSign: true },
])('$what is a sign of life: $isSign', ({ uid = 'u', signs, isSign }) => {
  const now = listenTo(before, uid, { ...before, ...signs }, 99);

  expect(now.sinceMs).toBe(isSign ? 99 : 10);
});

test('a pool that was said to be unknown shows that it is back by any other status', () => {
  const unknown = listenTo(before, 'u', { ...before, ready: { status: 'Unknown' } }, 60);

  expect(listenTo(unknown, 'u', before, 99).sinceMs).toBe(99);
  expect(listenTo(undefined, 'u', before, 99).sinceMs).toBe(99);
});
