import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { parseYaml } from '../../apis/yaml.ts';
import { describeUnknown, NEEDED_FIELDS, type NeededField, type Schema, unknownFields } from './known-fields.ts';

const ROOT = join(import.meta.dirname, '../../..');

interface Definition {
  readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] };
}

/** The schemas of a folder of definitions, by kind. */
function schemasIn(folder: string): (kind: NeededField['kind']) => Schema | undefined {
  const plurals = new Map(NEEDED_FIELDS.map(({ kind, plural }) => [kind, plural]));
  return (kind) => {
    const text = readFileSync(join(ROOT, folder, `machine.sapcloud.io_${plurals.get(kind)}.yaml`), 'utf8');
    return (parseYaml(text) as Definition).spec.versions[0]?.schema.openAPIV3Schema;
  };
}

describe('fields that may not be stored', () => {
  test('are all stored by the shipped definitions', () => {
    expect(unknownFields(schemasIn('crds'))).toEqual([]);
  });

  test('are told of the definitions that the original ships', () => {
    const unknown = unknownFields(schemasIn('test/crds-original'));

    expect(describeUnknown(unknown)).toBe(
      'the control cluster drops status.machineConditions of Machine (without it conditions of Machines are not stored); ' +
        'status.vmCapacity of Machine (without it the resources of VMs are not shown before their Nodes join): ' +
        'apply crds/machine.sapcloud.io_machines.yaml',
    );
  });

  test.each([
    { what: 'nothing is known of the kind', schema: undefined, unknown: 0 },
    { what: 'all is kept', schema: { 'x-kubernetes-preserve-unknown-fields': true }, unknown: 0 },
    {
      what: 'all below is kept',
      schema: { properties: { status: { 'x-kubernetes-preserve-unknown-fields': true } } },
      unknown: 1,
    },
    { what: 'nothing is kept', schema: { properties: {} }, unknown: 4 },
  ])('$what: $unknown of a Machine', ({ schema, unknown }) => {
    expect(unknownFields((kind) => (kind === 'Machine' ? schema : undefined))).toHaveLength(unknown);
  });
});
