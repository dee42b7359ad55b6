import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { FULL_OBJECTS } from '../../../../test/full-objects.ts';
import { oddObjects } from '../../../../test/odd-objects.ts';
import type { Machine } from './machine.ts';
import type { NodeLabelPolicy } from './node-label-policy.ts';
import type { MachineClass } from './machine-class.ts';
import type { MachineDeployment } from './machine-deployment.ts';
import type { MachineSet } from './machine-set.ts';
import {
  normaliseMachine,
  normaliseMachineClass,
  normaliseMachineDeployment,
  normaliseMachineSet,
  normaliseNodeLabelPolicy,
} from './normalise.ts';
import { validateMachineDeployment, validateMachineSet } from './validation.ts';

const metadata = { name: 'x', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
/** What the server may have stored: no type describes it. */
const stored = (members: object): never => ({ metadata, ...members }) as never;

function normalise(kind: string, object: unknown): unknown {
  switch (kind) {
    case 'Machine':
      return normaliseMachine(object as Machine);
    case 'MachineSet':
      return normaliseMachineSet(object as MachineSet);
    case 'MachineDeployment':
      return normaliseMachineDeployment(object as MachineDeployment);
    case 'NodeLabelPolicy':
      return normaliseNodeLabelPolicy(object as NodeLabelPolicy);
    default:
      return normaliseMachineClass(object as MachineClass);
  }
}

describe('an object that enters', () => {
  test('is left as it is when it is sound', () => {
    for (const object of FULL_OBJECTS) {
      expect(normalise(object.kind, structuredClone(object))).toEqual(object);
    }
  });

  test.each([
    { kind: 'Machine', spec: {} },
    { kind: 'MachineSet', spec: {} },
    { kind: 'MachineDeployment', spec: { template: {} } },
    { kind: 'NodeLabelPolicy', spec: {} },
  ])('has a spec, also a $kind that is stored without one', ({ kind, spec }) => {
    for (const absent of [{}, { spec: null }]) {
      expect(normalise(kind, stored(absent))).toEqual({ metadata, spec });
    }
  });

  test('is told that it has no spec, if that is to be obeyed as a whole', () => {
    const errors = [
      ...validateMachineSet(normaliseMachineSet(stored({}))),
      ...validateMachineDeployment(normaliseMachineDeployment(stored({}))),
    ];
    expect(errors.map(({ field }) => field)).toEqual(['spec', 'spec']);
  });

  test.each([
    { what: null, want: undefined },
    { what: 'text', want: undefined },
    { what: [], want: undefined },
    { what: { labels: null, annotations: null, finalizers: null }, want: {} },
    { what: { labels: 'text', annotations: 7, finalizers: {} }, want: {} },
    { what: { labels: ['a'], annotations: [null], finalizers: [7] }, want: {} },
    {
      what: { labels: { a: 1, b: null, c: 'd', e: {} }, annotations: { f: 'g' }, name: 7, finalizers: ['h', null] },
      want: { labels: { c: 'd' }, annotations: { f: 'g' }, name: 7, finalizers: ['h'] },
    },
  ])('has templates whose metadata of $what counts as $want', ({ what, want }) => {
    const template = (of: unknown): object => (of === undefined ? {} : { metadata: of });
    const nested = (of: unknown): object => ({
      template: { ...template(of), spec: { nodeTemplate: template(of) } },
    });

    expect(normaliseMachine(stored({ spec: { nodeTemplate: { metadata: structuredClone(what) } } })).spec).toEqual({
      nodeTemplate: template(want),
    });
    for (const normaliseOwner of [normaliseMachineSet, normaliseMachineDeployment]) {
      // Both take the same template.
      const owner = normaliseOwner(stored({ spec: nested(structuredClone(what)) }));
      expect(owner.spec).toEqual(nested(want));
    }
  });

  test('keeps the provider spec of its class to the letter', () => {
    const providerSpec = { a: null, b: [null] };

    expect(normaliseMachineClass(stored({ providerSpec, nodeTemplate: null }))).toEqual({ metadata, providerSpec });
  });

  test('is the same when it enters again, whatever it is', () => {
    fc.assert(
      fc.property(fc.constantFrom(...oddObjects()), ({ kind, body }) => {
        const once = normalise(kind, structuredClone(body));
        expect(normalise(kind, structuredClone(once))).toEqual(once);
      }),
      { numRuns: 300 },
    );
  });
});
