import { describe, expect, test } from '@jest/globals';

import {
  claimFrom,
  claimsNote,
  claimText,
  grantedClaims,
  isForgottenSoon,
  isRecordedClaim,
  recordedClaims,
  PoolClaims,
  withClaim,
  type RecordedClaims,
} from './pool-claims.ts';

const metadata = { name: 'p', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
const noting = (note: string) => ({
  metadata: { ...metadata, annotations: { 'machine.sapcloud.io/pool-claims': note } },
});
const giving = (text: string) => ({
  metadata: { ...metadata, annotations: { 'machine.sapcloud.io/take-over-claims': text } },
});

test.each([
  { text: 'a-1:7', claim: { process: 'a-1', renewals: 7 } },
  { text: '', claim: undefined },
  { text: 'a', claim: undefined },
  { text: 'a:0', claim: undefined },
  { text: 'a:07', claim: undefined },
  { text: 'a:7 ', claim: undefined },
  { text: ':7', claim: undefined },
  { text: 'a,b:7', claim: undefined },
  { text: `${'a'.repeat(65)}:7`, claim: undefined },
  { text: 'a:1234567890123456', claim: undefined },
])('"$text" is a claim only if it is one of a process and a renewal', ({ text, claim }) => {
  const found = claimFrom(text);

  expect(found).toEqual(claim);
  expect(found && claimText(found)).toBe(claim && text);
});

test.each([
  { claim: { process: 'a', renewals: 7 }, isKnown: true },
  { claim: { process: 'a', renewals: 1 }, isKnown: true },
  { claim: { process: 'a', renewals: 8 }, isKnown: false },
  { claim: { process: 'b', renewals: 1 }, isKnown: false },
])('a claim is known up to the renewal that is noted: $claim', ({ claim, isKnown }) => {
  expect(isRecordedClaim(new Map([['a', 7]]), claim)).toBe(isKnown);
});

describe('what a Lease notes', () => {
  test('is read as it was written', () => {
    const known: RecordedClaims = new Map([
      ['a', 3],
      ['b', 9],
    ]);

    expect(claimsNote({ metadata }, known)).toBe('u a:3 b:9');
    expect(recordedClaims(noting('u a:3 b:9'))).toEqual(known);
  });

  test.each(['', 'other a:3', 'u', 'u nonsense'])('is nothing if it says "%s"', (note) => {
    expect(recordedClaims(noting(note))).toEqual(new Map());
    expect(recordedClaims({ metadata })).toEqual(new Map());
  });
});

test('claims are given by a list with commas, and what is none is left out', () => {
  expect(grantedClaims(giving('a:3, b:4,nonsense'))).toEqual(
    new Map([
      ['a', 3],
      ['b', 4],
    ]),
  );
  expect(grantedClaims({ metadata })).toEqual(new Map());
});

test('the process that has renewed last is last, its count never falls, and two hundred are kept', () => {
  const known = [
    ['a', 3],
    ['b', 1],
    ['a', 2],
  ].reduce(
    (all, [process, renewals]) => withClaim(all, { process: String(process), renewals: Number(renewals) }),
    new Map() as RecordedClaims,
  );
  expect([...known]).toEqual([
    ['b', 1],
    ['a', 3],
  ]);

  const many = Array.from({ length: 210 }, (_, i) => `p-${i}`).reduce(
    (all, process) => withClaim(all, { process, renewals: 1 }),
    new Map() as RecordedClaims,
  );
  expect([...many.keys()]).toEqual(Array.from({ length: 200 }, (_, i) => `p-${i + 10}`));
});

test('what is not of the last hundred processes, or of none that is known, is forgotten soon', () => {
  const known: RecordedClaims = new Map(Array.from({ length: 101 }, (_, i) => [`p-${i}`, 1]));

  expect(isForgottenSoon(known, { process: 'p-0', renewals: 1 })).toBe(true);
  expect(isForgottenSoon(known, { process: 'p-1', renewals: 1 })).toBe(false);
  expect(isForgottenSoon(known, { process: 'another', renewals: 1 })).toBe(true);
});

test('what this process knows and what the Lease says are put together, with one renewal more', () => {
  const claims = new PoolClaims({ process: 'me' });
  expect([claims.of('p'), claims.ownOf('p')]).toEqual([undefined, undefined]);

  const first = claims.next('p', new Map([['you', 4]]));
  expect([...first]).toEqual([
    ['you', 4],
    ['me', 1],
  ]);
  claims.noted('p', first);
  expect(claims.ownOf('p')).toEqual({ process: 'me', renewals: 1 });

  // The Lease was set back, and somebody else has renewed it.
  const second = claims.next('p', new Map([['he', 2]]));
  expect(new Map(second)).toEqual(
    new Map([
      ['he', 2],
      ['you', 4],
      ['me', 2],
    ]),
  );
  expect(claims.of('p')).toBe(first);
});
