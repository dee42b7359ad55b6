import { expect, test } from '@jest/globals';
import { withDevices } from './prepare.ts';

function devices(...given: readonly (string | undefined)[]): readonly (string | undefined)[] | undefined {
  const volumes = given.map((device, at) => ({ name: `v${at}`, ...(device !== undefined && { device }) }));
  return withDevices(volumes)?.map(({ device }) => device);
}

test.each([
  { what: 'the first volume', given: [undefined], want: ['oda'] },
  { what: 'each', given: [undefined, undefined, undefined], want: ['oda', 'odb', 'odc'] },
  { what: 'those between others', given: ['odb', undefined, 'odc', undefined], want: ['odb', 'oda', 'odc', 'odd'] },
  { what: 'one with an empty name', given: ['oda', ''], want: ['oda', 'odb'] },
])('$what has the first device that is free', ({ given, want }) => {
  expect(devices(...given)).toEqual(want);
});

test('nothing is to be stored when all have one', () => {
  expect(devices('oda', 'odz')).toBeUndefined();
  expect(devices()).toBeUndefined();
});

test('after one letter come two, and after 702 there is none', () => {
  const all = devices(...Array.from({ length: 703 }, () => undefined)) ?? [];

  expect([all[25], all[26], all[27], all[52], all[701], all[702]]).toEqual([
    'odz',
    'odaa',
    'odab',
    'odba',
    'odzz',
    undefined,
  ]);
  expect(new Set(all.slice(0, 702)).size).toBe(702);
});
