import { expect, test } from '@jest/globals';

import { runtimeMachine } from '../../../../../test/fakes/runtime-machine.ts';
import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { PoolClaims } from '../pool-claims.ts';
import { Rivals } from './rivals.ts';

const pool = (given?: string): IronCoreMachinePool => ({
  metadata: {
    name: 'p',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    ...(given !== undefined && { annotations: { 'machine.sapcloud.io/take-over-claims': given } }),
  },
});
const claimed = (claim?: string): RuntimeMachine =>
  runtimeMachine({ id: 'i', annotations: claim === undefined ? {} : { 'machine.sapcloud.io/claim': claim } });

function world() {
  const claims = new PoolClaims({ process: 'me' });
  claims.noted('p', new Map([['me', 3]]));
  const events: string[] = [];
  const rivals = new Rivals({
    claims,
    poolRecorder: { event: ({ type, reason, message }) => void events.push(`${type} ${reason}: ${message}`) },
  });
  return { claims, rivals, events };
}

test.each([
  { what: 'none', claim: undefined, given: undefined, isForeign: false },
  { what: 'nonsense', claim: 'nonsense', given: undefined, isForeign: false },
  { what: 'our own', claim: 'me:3', given: undefined, isForeign: false },
  { what: 'one that is younger than what our Lease knows', claim: 'me:4', given: undefined, isForeign: true },
  { what: 'one of an unknown process', claim: 'you:1', given: undefined, isForeign: true },
  { what: 'one that somebody has given to us', claim: 'you:5', given: 'you:5', isForeign: false },
  { what: 'one that went on after it was given to us', claim: 'you:6', given: 'you:5', isForeign: true },
])('a machine with $what as claim is contested: $isForeign', ({ claim, given, isForeign }) => {
  const { rivals, events } = world();

  expect(rivals.has('p')).toBe(false);
  expect(rivals.saw('p', pool(given), [claimed(), claimed(claim)])).toBe(isForeign);

  expect(rivals.has('p')).toBe(true);
  expect(rivals.whyNot('p') !== undefined).toBe(isForeign);
  expect(events).toHaveLength(isForeign ? 1 : 0);
});

test('it is told once, names the claims with the command that takes them over, and ends when nobody claims anything', () => {
  const { rivals, events } = world();
  rivals.saw('p', pool(), [claimed('you:1'), claimed('he:2'), claimed('you:3'), claimed('you:2')]);
  rivals.saw('p', pool(), [claimed('you:4')]);

  expect(events).toHaveLength(1);
  expect(events[0]).toMatch(/^Warning ClaimedByAnother: .*\(he:2,you:3\)/);
  expect(rivals.whyNot('p')).toContain(
    'kubectl annotate --overwrite machinepools.compute.ironcore.dev p machine.sapcloud.io/take-over-claims=you:4',
  );

  rivals.saw('p', pool(), []);
  expect(rivals.whyNot('p')).toBeUndefined();
  rivals.saw('p', pool(), [claimed('you:5')]);
  expect(events).toHaveLength(2);
});

test('what one machine says right now counts beside what all said', () => {
  const { rivals } = world();
  rivals.saw('p', pool(), [claimed('you:1')]);

  expect(rivals.whyNot('p', pool(), [claimed('he:1')])).toContain('(you:1,he:1)');
  expect(rivals.whyNot('q')).toBeUndefined();
  rivals.saw('p', pool(), []);
  expect(rivals.whyNot('p', pool(), [claimed('he:1')])).toContain('(he:1)');
  expect(rivals.whyNot('p', pool('he:1'), [claimed('he:1')])).toBeUndefined();
});

test('a pool that is gone, and one that is served elsewhere, say nothing', () => {
  const { rivals, events } = world();

  expect(rivals.saw('p', undefined, [claimed('you:1')])).toBe(true);
  expect(events).toEqual([]);
  rivals.forget('p');

  expect([rivals.has('p'), rivals.whyNot('p')]).toEqual([false, undefined]);
});
