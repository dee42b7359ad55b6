import { expect, test } from '@jest/globals';

import { EFFECTIVE_CREATION_TIMEOUT_ANNOTATION, MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { machineSet, type BuiltMachineSet } from '../../../test/builders.ts';
import { machineName, newMachine, randomSuffix } from './new-machine.ts';
import { secureRandom } from '../../base/random/random.ts';

const set = (change?: (s: BuiltMachineSet) => void): BuiltMachineSet => machineSet(change);

test('a machine is what its template says, owned by its set, with the finalizer from the start', () => {
  const owner = set((s) => {
    s.spec.template.metadata = { labels: { pool: 'a' }, annotations: { note: 'x' }, finalizers: ['example.com/keep'] };
  });

  expect(newMachine(owner, 'set-1-abcde')).toEqual({
    metadata: {
      name: 'set-1-abcde',
      generateName: 'set-1-',
      namespace: 'default',
      labels: { pool: 'a' },
      annotations: { note: 'x' },
      finalizers: ['example.com/keep', MACHINE_FINALIZER],
      ownerReferences: [
        {
          apiVersion: 'machine.sapcloud.io/v1alpha1',
          kind: 'MachineSet',
          name: 'set-1',
          uid: owner.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: { class: { kind: 'MachineClass', name: 'class-1' } },
  });
});

test('what is asked of one machine, or recorded of one, does not come from a template', () => {
  const prefix = 'machine.sapcloud.io/';
  const ofOne = [
    'prepare-deletion',
    'deletion-preparation-since',
    'deletion-policy-in-force',
    'forced-deletion-since',
    'drain-since',
    'maintenance',
    'maintenance-since',
    'maintenance-node',
    'marked-for-deletion-time',
    'creation-sent-at',
    'vm-class',
  ];
  const owner = set((s) => {
    const annotations = Object.fromEntries(ofOne.map((name) => [`${prefix}${name}`, 'true']));
    s.spec.template.metadata = { annotations: { ...annotations, [`${prefix}deletion-policy`]: 'graceful' } };
  });

  expect(newMachine(owner, 'm').metadata.annotations).toEqual({ [`${prefix}deletion-policy`]: 'graceful' });
});

test.each([
  { annotation: '30m', want: '30m' },
  { annotation: 'half an hour', want: '20m' },
  { annotation: undefined, want: '20m' },
])('creation timeout with annotation $annotation is $want', ({ annotation, want }) => {
  const owner = set((s) => {
    s.spec.template.spec = { ...s.spec.template.spec, creationTimeout: '20m' };
    if (annotation !== undefined) s.metadata.annotations[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION] = annotation;
  });

  const got = newMachine(owner, 'm');

  expect(got.spec.creationTimeout).toBe(want);
  expect(got.metadata.annotations?.[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]).toBe(annotation);
});

test('names end in five characters that the API server would choose, and are DNS labels for long sets too', () => {
  const long = set((s) => {
    s.metadata.name = 'a'.repeat(80);
  });

  expect(randomSuffix(secureRandom)).toMatch(/^[bcdfghjklmnpqrstvwxz2-9]{5}$/);
  expect(machineName(set(), 'abcde')).toBe('set-1-abcde');
  expect(machineName(long, 'abcde')).toBe(`${'a'.repeat(58)}abcde`);
});
