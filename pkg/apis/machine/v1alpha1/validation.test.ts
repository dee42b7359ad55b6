import { describe, expect, test } from '@jest/globals';

import { BROKEN_OBJECTS, UNWISE_OBJECTS } from '../../../../test/broken-objects.ts';
import { machineClass, machineDeployment, machineSet } from '../../../../test/builders.ts';
import type { MachineClass } from './machine-class.ts';
import type { MachineDeployment } from './machine-deployment.ts';
import type { MachineSet } from './machine-set.ts';
import {
  describeFieldErrors,
  type FieldError,
  validateMachineClass,
  validateMachineDeployment,
  validateMachineSet,
} from './validation.ts';

/** A `switch` on the kind, as controllers know it by type. */
function validate(object: { kind?: string }): FieldError[] {
  switch (object.kind) {
    case 'MachineSet':
      return validateMachineSet(object as MachineSet);
    case 'MachineDeployment':
      return validateMachineDeployment(object as MachineDeployment);
    default:
      return validateMachineClass(object as MachineClass);
  }
}

describe('stored objects that cannot be obeyed', () => {
  test.each(BROKEN_OBJECTS.filter(({ object }) => object.kind !== 'Machine'))(
    '$object.kind: $what is found at $field',
    ({ object, field, message }) => {
      const errors = validate(object);

      expect(errors).toContainEqual({ field, message: expect.stringContaining(message) as unknown });
    },
  );
});

describe('stored objects that are only refused when they are made', () => {
  test.each(UNWISE_OBJECTS)('$object.kind: $what is obeyed', ({ object }) => {
    expect(validate(object)).toEqual([]);
  });
});

describe('sound objects', () => {
  test.each([
    { what: 'a MachineSet', object: machineSet() },
    { what: 'a MachineDeployment', object: machineDeployment() },
    { what: 'a MachineClass', object: machineClass() },
    {
      what: 'a class without node template',
      object: machineClass((c) => delete (c as Partial<MachineClass>).nodeTemplate),
    },
    {
      what: 'null where Go means absent',
      object: machineDeployment((d) => {
        Object.assign(d.spec, { minReadySeconds: null, rollbackTo: null, revisionHistoryLimit: null });
        Object.assign(d.spec.selector, { matchExpressions: null });
        Object.assign(d.spec.template.spec ?? {}, { drainTimeout: null, maxEvictRetries: null });
        Object.assign(d.spec.strategy, { inPlaceUpdate: null });
      }),
    },
    {
      what: 'a selector of expressions that the template satisfies',
      object: machineSet((s) => {
        s.spec.selector = {
          matchExpressions: [
            { key: 'pool', operator: 'In', values: ['a', 'b'] },
            { key: 'zone', operator: 'NotIn', values: ['a'] },
            { key: 'pool', operator: 'Exists' },
            { key: 'zone', operator: 'DoesNotExist' },
          ],
        };
      }),
    },
    { what: 'Recreate without limits', object: machineDeployment((d) => (d.spec.strategy = { type: 'Recreate' })) },
    {
      what: 'in-place updates by hand',
      object: machineDeployment((d) => {
        d.spec.strategy = {
          type: 'InPlaceUpdate',
          inPlaceUpdate: { maxSurge: '0%', maxUnavailable: '100%', orchestrationType: 'Manual' },
        };
      }),
    },
  ])('$what has no errors', ({ object }) => {
    expect(validate(object)).toEqual([]);
  });
});

test('a share of replicas that 32 bits do not count is refused', () => {
  const deployment = machineDeployment((d) => {
    d.spec.replicas = 1_000_000;
    d.spec.strategy.rollingUpdate = { maxSurge: '999999%', maxUnavailable: 0 };
  });

  expect(validateMachineDeployment(deployment).map(({ field }) => field)).toEqual([
    'spec.strategy.rollingUpdate.maxSurge',
  ]);
});

test('all errors of an object are found, and told in one line', () => {
  const errors = validateMachineSet(
    machineSet((s) => {
      s.spec.replicas = -1;
      s.spec.selector = {};
    }),
  );

  expect(describeFieldErrors(errors)).toMatch(
    /^spec\.replicas: should be a non-negative integer; spec\.selector: selector is/,
  );
});
