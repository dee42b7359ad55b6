import { expect, test } from '@jest/globals';

import { runtimeClassFor } from './runtime-class.ts';

const machineClass = {
  metadata: { name: 'small', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  capabilities: { cpu: '3500m', memory: '1Ki' },
};
const EQUAL = { cpu: 4n, memory: 1024n };
const of = (name: string, resources: Readonly<Record<string, bigint>>) => ({ name, resources, quantity: 1 });

test.each([
  { what: 'that of its name with equal capabilities', classes: [of('a', EQUAL), of('small', EQUAL)], want: 'small' },
  { what: 'that of its name which says nothing of them', classes: [of('a', EQUAL), of('small', {})], want: 'small' },
  { what: 'the only one that has equal ones', classes: [of('a', EQUAL), of('small', { cpu: 4n })], want: 'a' },
  { what: 'none of several', classes: [of('a', EQUAL), of('b', EQUAL)], want: undefined },
  { what: 'none with more', classes: [of('a', { ...EQUAL, gpu: 1n })], want: undefined },
  { what: 'none with others', classes: [of('a', { ...EQUAL, cpu: 3n })], want: undefined },
  { what: 'none that says nothing and has another name', classes: [of('a', {})], want: undefined },
  { what: 'none where there is none', classes: [], want: undefined },
])('the class of a runtime is $what', ({ classes, want }) => {
  expect(runtimeClassFor(machineClass, classes)?.name).toBe(want);
});

test.each([{ classes: [of('small', EQUAL), of('other', {})] }, { classes: [] }])(
  'a class that is stored without capabilities has none of a runtime, and stops nobody: %#',
  ({ classes }) => {
    expect(runtimeClassFor({ metadata: machineClass.metadata }, classes)).toBeUndefined();
  },
);
