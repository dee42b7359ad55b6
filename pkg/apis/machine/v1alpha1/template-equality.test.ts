import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { MachineConfiguration, MachineTemplateSpec, NodeTemplateSpec } from './machine.ts';
import { CONFIGURATION_FIELDS, equalConfiguration, equalNodeTemplate, equalTemplate } from './template-equality.ts';

const TEMPLATE: MachineTemplateSpec = {
  metadata: { labels: { pool: 'a' } },
  spec: { class: { kind: 'MachineClass', name: 'class-1' } },
};

/** The same as `TEMPLATE` but for what `change` does to it. */
function changed(change: (template: Required<MachineTemplateSpec>) => void): MachineTemplateSpec {
  const copy = structuredClone(TEMPLATE) as Required<MachineTemplateSpec>;
  change(copy);
  return copy;
}

describe('templates that need no rollout', () => {
  test.each([
    {
      what: 'the hash label',
      other: changed((t) => (t.metadata.labels = { pool: 'a', 'machine-template-hash': '7' })),
    },
    { what: 'the kind of the class', other: changed((t) => (t.spec.class = { kind: 'Other', name: 'class-1' })) },
    { what: 'the node template', other: changed((t) => (t.spec.nodeTemplate = { metadata: { labels: { x: 'y' } } })) },
    {
      what: 'the configuration',
      other: changed((t) =>
        Object.assign(t.spec, { drainTimeout: '5m', maxEvictRetries: 3, disableHealthTimeout: true }),
      ),
    },
    {
      what: 'what Go writes for absent members',
      other: {
        metadata: { labels: { pool: 'a' }, annotations: null, creationTimestamp: null, finalizers: [] },
        spec: {
          class: { apiGroup: '', kind: 'MachineClass', name: 'class-1' },
          providerID: '',
          nodeTemplate: { metadata: { creationTimestamp: null }, spec: {} },
        },
      } as unknown as MachineTemplateSpec,
    },
  ])('differ in $what', ({ other }) => {
    expect(equalTemplate(TEMPLATE, other)).toBe(true);
    expect(equalTemplate(other, TEMPLATE)).toBe(true);
  });

  test.each([
    { what: 'an absent and an empty template', a: undefined, b: {} },
    { what: 'an empty template and empty members', a: {}, b: { metadata: { labels: {} }, spec: { class: {} } } },
  ])('are $what', ({ a, b }) => {
    expect(equalTemplate(a, b)).toBe(true);
  });
});

describe('templates that need a rollout', () => {
  test.each([
    { what: 'the value of a label', other: changed((t) => (t.metadata.labels = { pool: 'b' })) },
    { what: 'a label more', other: changed((t) => (t.metadata.labels = { pool: 'a', zone: 'z' })) },
    { what: 'a label with empty value', other: changed((t) => (t.metadata.labels = { pool: 'a', role: '' })) },
    { what: 'a label less', other: changed((t) => (t.metadata.labels = {})) },
    { what: 'an annotation', other: changed((t) => (t.metadata.annotations = { a: '' })) },
    { what: 'a finalizer', other: changed((t) => (t.metadata.finalizers = ['x/y'])) },
    { what: 'other metadata', other: changed((t) => (t.metadata['generateName'] = 'x-')) },
    { what: 'the class', other: changed((t) => (t.spec.class = { kind: 'MachineClass', name: 'class-2' })) },
    {
      what: 'the group of the class',
      other: changed((t) => (t.spec.class = { apiGroup: 'g', kind: 'MachineClass', name: 'class-1' })),
    },
    { what: 'the provider id', other: changed((t) => (t.spec.providerID = 'sim:///1')) },
  ])('differ in $what', ({ other }) => {
    expect(equalTemplate(TEMPLATE, other)).toBe(false);
    expect(equalTemplate(other, TEMPLATE)).toBe(false);
  });
});

describe('configurations', () => {
  test.each<{ a: MachineConfiguration | undefined; b: MachineConfiguration | undefined; want: boolean }>([
    { a: undefined, b: {}, want: true },
    { a: {}, b: { drainTimeout: null } as unknown as MachineConfiguration, want: true },
    { a: { drainTimeout: '10m' }, b: { drainTimeout: '10m0s' }, want: true },
    { a: { drainTimeout: '90s' }, b: { drainTimeout: '1m30s' }, want: true },
    { a: { drainTimeout: '0s' }, b: {}, want: false },
    { a: { drainTimeout: '10m' }, b: { drainTimeout: '11m' }, want: false },
    { a: { drainTimeout: 'soon' }, b: { drainTimeout: 'soon' }, want: true },
    { a: { drainTimeout: 'soon' }, b: { drainTimeout: 'later' }, want: false },
    { a: { drainTimeout: '10m' }, b: { healthTimeout: '10m' }, want: false },
    { a: { maxEvictRetries: 0 }, b: {}, want: false },
    { a: { maxEvictRetries: 3 }, b: { maxEvictRetries: 3 }, want: true },
    { a: { disableHealthTimeout: false }, b: {}, want: false },
    { a: { nodeConditions: '' }, b: {}, want: false },
    { a: { nodeConditions: 'A,B' }, b: { nodeConditions: 'A,B' }, want: true },
  ])('$a and $b equal: $want', ({ a, b, want }) => {
    expect(equalConfiguration(a, b)).toBe(want);
    expect(equalConfiguration(b, a)).toBe(want);
  });

  test('each field of it is compared', () => {
    const full: Required<MachineConfiguration> = {
      drainTimeout: '1m',
      healthTimeout: '2m',
      creationTimeout: '3m',
      inPlaceUpdateTimeout: '4m',
      machinePreserveTimeout: '5m',
      disableHealthTimeout: true,
      maxEvictRetries: 1,
      nodeConditions: 'A',
    };

    expect(CONFIGURATION_FIELDS.toSorted()).toEqual(Object.keys(full).toSorted());
    for (const field of CONFIGURATION_FIELDS) {
      const { [field]: _removed, ...rest } = full;
      expect(equalConfiguration(full, rest)).toBe(false);
    }
  });
});

describe('node templates', () => {
  test.each<{ a: NodeTemplateSpec | undefined; b: unknown; want: boolean }>([
    { a: undefined, b: { metadata: { creationTimestamp: null }, spec: {} }, want: true },
    { a: { spec: { taints: [] } }, b: {}, want: true },
    { a: { metadata: { labels: { role: '' } } }, b: {}, want: false },
    { a: { metadata: { labels: { role: '' } } }, b: { metadata: { labels: { role: '' } } }, want: true },
    { a: { metadata: { annotations: { a: '1' } } }, b: { metadata: { annotations: { a: '2' } } }, want: false },
    {
      a: { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } },
      b: { spec: { taints: [{ key: 'k', value: '', effect: 'NoSchedule', timeAdded: null }], unschedulable: false } },
      want: true,
    },
    {
      a: { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } },
      b: { spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } },
      want: false,
    },
    {
      a: { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } },
      b: { spec: { taints: [] } },
      want: false,
    },
  ])('$a and $b equal: $want', ({ a, b, want }) => {
    expect(equalNodeTemplate(a, b as NodeTemplateSpec)).toBe(want);
    expect(equalNodeTemplate(b as NodeTemplateSpec, a)).toBe(want);
  });
});

test('a template equals itself with any absent member written as a zero value', () => {
  const zero = fc.constantFrom<unknown[]>(null, {}, [], '', 0, false);
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), zero), zero, (members, spec) => {
      const { labels: _l, annotations: _a, ...rest } = members;
      const written = { metadata: { ...rest, ...TEMPLATE.metadata }, spec: { ...TEMPLATE.spec, other: spec } };

      expect(equalTemplate(TEMPLATE, written as MachineTemplateSpec)).toBe(true);
    }),
  );
});
