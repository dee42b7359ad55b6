import { describe, expect, test } from '@jest/globals';

import { clusterAPIMachines } from '../../pkg/worlds/cluster-api/api/resources.ts';
import { ironCoreMachines } from '../../pkg/worlds/ironcore/api/resources.ts';
import { MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, objectName, ofWorld } from './kinds.ts';
import { parseReferences, requireNames } from './references.ts';

const IRONCORE_MACHINE = ofWorld('ironcore', ironCoreMachines);
const CLUSTER_API_MACHINE = ofWorld('cluster-api', clusterAPIMachines);
const KINDS = [MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, NODE, IRONCORE_MACHINE, CLUSTER_API_MACHINE] as const;
const SHORT = { mayOmitType: true };

test.each(KINDS)('$name is known by the name that kubectl prints for its objects', (kind) => {
  expect(parseReferences([objectName(kind, 'x')], KINDS)).toEqual({ named: [{ kind, name: 'x' }] });
});

describe('what is typed', () => {
  test.each([
    { words: ['mc', 'a', 'b'], kind: MACHINE, names: ['a', 'b'] },
    { words: ['Machines', 'a'], kind: MACHINE, names: ['a'] },
    { words: ['machines.v1alpha1.machine.sapcloud.io/a', 'mc/b'], kind: MACHINE, names: ['a', 'b'] },
    { words: ['mcs.machine.sapcloud.io', 'a'], kind: MACHINE_SET, names: ['a'] },
    { words: ['no/a'], kind: NODE, names: ['a'] },
    { words: ['node', 'a'], kind: NODE, names: ['a'] },
    { words: ['machine.compute.ironcore.dev/a'], kind: IRONCORE_MACHINE, names: ['a'] },
    { words: ['cluster-api-machines', 'a'], kind: CLUSTER_API_MACHINE, names: ['a'] },
  ])('$words names $names of $kind.name', ({ words, kind, names }) => {
    expect(parseReferences(words, KINDS)).toEqual({ named: names.map((name) => ({ kind, name })) });
  });

  test.each([
    { words: ['a', 'b'], names: ['a', 'b'] },
    { words: ['a', 'mc/b'], names: ['a', 'b'] },
  ])('$words names Machines where the type may be omitted', ({ words, names }) => {
    expect(parseReferences(words, KINDS, SHORT).named).toEqual(names.map((name) => ({ kind: MACHINE, name })));
  });

  test('a type alone means all of its objects, and nothing at all those of the type that may be omitted', () => {
    expect(parseReferences(['mcd'], KINDS)).toEqual({ named: [], allOf: MACHINE_DEPLOYMENT });
    expect(parseReferences([], KINDS, SHORT)).toEqual({ named: [], allOf: MACHINE });
    expect(parseReferences([], KINDS)).toEqual({ named: [] });
  });

  test.each([
    { words: ['pod', 'a'], says: 'unknown type "pod"; this command supports machine or mc, machineset or mcs' },
    { words: ['pod/a'], says: 'unknown type "pod"' },
    {
      words: ['machin/a'],
      says: 'cluster-api-machine; did you mean "machine" or "machineset" or "machinedeployment"?',
    },
    { words: ['machinez/a'], says: '; did you mean "machine" or "machineset"' },
    { words: ['machine.example.com/a'], says: 'unknown type "machine.example.com"' },
    { words: ['mc', 'mc/a'], says: '"mc" has no name; use either TYPE NAME... or TYPE/NAME...' },
    { words: ['mc/a/b'], says: 'expected TYPE/NAME instead of "mc/a/b"' },
    { words: ['/a'], says: 'expected TYPE/NAME instead of "/a"' },
    { words: ['mc', ''], says: 'a name cannot be empty' },
    { words: ['mc/'], says: 'expected TYPE/NAME instead of "mc/"' },
  ])('$words is refused: $says', ({ words, says }) => {
    expect(() => parseReferences(words, KINDS)).toThrow(says);
  });

  test('a type without a name is refused where a name is needed', () => {
    expect(() => requireNames(parseReferences(['mc'], KINDS), KINDS)).toThrow('expected a name, such as mc/NAME');
    expect(requireNames({ named: [{ kind: NODE, name: 'a' }] }, KINDS)).toHaveLength(1);
  });
});

test.each([
  { kind: NODE, printed: 'node/a' },
  { kind: MACHINE, printed: 'machine.machine.sapcloud.io/a' },
])('an object is printed as $printed, as kubectl does', ({ kind, printed }) => {
  expect(objectName(kind, 'a')).toBe(printed);
});
