import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment } from '../../../test/builders.ts';
import * as keys from '../../apis/machine/v1alpha1/labels.ts';
import { ANNOTATION_RULES, invalidAnnotations, type AnnotatedKind } from './invalid-annotations.ts';

/** Annotations whose values nobody is asked for, and who tells of others. */
const WITHOUT_RULE = {
  'what controllers record': [
    keys.CREATION_SENT_ANNOTATION,
    keys.CREATION_SENT_TO_ANNOTATION,
    keys.DELETION_SENT_ANNOTATION,
    keys.POOL_UIDS_ANNOTATION,
    keys.CLAIMED_FOR_POOL_ANNOTATION,
    keys.NODE_SYNC_REFUSED_ANNOTATION,
    keys.LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
    keys.LAST_APPLIED_TEMPLATE_ANNOTATION,
    keys.LAST_APPLIED_CAPACITY_ANNOTATION,
    keys.LAST_APPLIED_CONFIGURATION_ANNOTATION,
    keys.MADE_MACHINE_ANNOTATION,
    keys.MACHINE_UID_ANNOTATION,
    keys.DRAIN_SINCE_ANNOTATION,
    keys.MAINTENANCE_SINCE_ANNOTATION,
    keys.MAINTENANCE_NODE_ANNOTATION,
    keys.CORDONED_BY_MAINTENANCE_ANNOTATION,
    keys.SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
    keys.DELETION_POLICY_IN_FORCE_ANNOTATION,
    keys.DELETION_PREPARATION_SINCE_ANNOTATION,
    keys.FORCED_DELETION_SINCE_ANNOTATION,
    keys.LEARNED_NODE_ANNOTATION,
    keys.REVISION_ANNOTATION,
    keys.REVISION_HISTORY_ANNOTATION,
    keys.DESIRED_REPLICAS_ANNOTATION,
    keys.MAX_REPLICAS_ANNOTATION,
    keys.FRONT_END_REPLICAS_ANNOTATION,
    keys.PAUSED_BY_FRONT_END_ANNOTATION,
  ],
  'what autoscalers write, and is put in order by who reads it': [
    keys.LAST_SCALER_CHANGE_ANNOTATION,
    keys.TRIGGER_DELETION_ANNOTATION,
    keys.SCALE_DOWN_DISABLED_ANNOTATION,
  ],
  'any value counts': [keys.UNFREEZE_ANNOTATION, keys.NOT_MANAGED_ANNOTATION, keys.UPDATE_FAILED_REASON_ANNOTATION],
  'who reads it tells of it in its own way': [
    keys.NODE_GROUP_MIN_ANNOTATION,
    keys.NODE_GROUP_MAX_ANNOTATION,
    keys.RESERVED_RESOURCES_ANNOTATION,
    keys.DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
    keys.FORMER_POOL_UIDS_ANNOTATION,
    keys.GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
  ],
};

describe('annotations that mean nothing', () => {
  test.each<{ kind: AnnotatedKind; key: string; right: readonly string[]; wrong: readonly string[]; until: string }>([
    {
      kind: 'Machine',
      key: keys.DELETION_POLICY_ANNOTATION,
      right: ['graceful', 'unsafe', 'forced'],
      wrong: ['Graceful', ''],
      until: 'must be one of graceful, unsafe, forced: it counts as graceful.',
    },
    {
      kind: 'Machine',
      key: keys.PREPARE_DELETION_ANNOTATION,
      right: ['true', 'false', ''],
      wrong: ['True', 'yes'],
      until: 'must be true, or false to abort: it counts as false.',
    },
    {
      kind: 'Machine',
      key: keys.MAINTENANCE_ANNOTATION,
      right: ['true', 'false'],
      wrong: ['', 'now'],
      until: 'must be true or false: it has no effect.',
    },
    {
      kind: 'Node',
      key: keys.MAINTENANCE_ANNOTATION,
      right: ['true', 'false'],
      wrong: ['TRUE'],
      until: 'must be true or false: it has no effect.',
    },
    {
      kind: 'Machine',
      key: keys.PRESERVE_ANNOTATION,
      right: ['now', 'when-failed', 'auto-preserved', 'false'],
      wrong: ['', 'true'],
      until: 'must be one of now, when-failed, false: it begins no preservation and ends none.',
    },
    {
      kind: 'Node',
      key: keys.PRESERVE_ANNOTATION,
      right: ['now'],
      wrong: ['forever'],
      until: 'it begins no preservation and ends none.',
    },
    {
      kind: 'Machine',
      key: keys.UPGRADE_INDEX_ANNOTATION,
      right: ['1', '999999999'],
      wrong: ['0', '-1', '1.5', 'first', '', '1000000000'],
      until: 'must be an integer from 1 to 999999999: it has no effect.',
    },
    {
      kind: 'Machine',
      key: keys.PRIORITY_ANNOTATION,
      right: ['3', '0', '-1', '+1'],
      wrong: ['low', '1.5', ''],
      until: 'must be an integer: it counts as 3.',
    },
    {
      kind: 'Machine',
      key: keys.MARKED_FOR_DELETION_TIME_ANNOTATION,
      right: ['2026-01-02T15:04:05Z'],
      wrong: ['today'],
      until: 'it has no effect.',
    },
    ...(['Machine', 'MachineSet', 'MachineDeployment'] as const).map((kind) => ({
      kind,
      key: keys.EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
      right: ['20m', '1h30m'],
      wrong: ['20', 'soon'],
      until: 'must be a duration such as 20m: spec.creationTimeout counts, or else flag --machine-creation-timeout.',
    })),
    ...[keys.MAINTENANCE_ANNOTATION, keys.PREPARE_DELETION_ANNOTATION].map((key) => ({
      kind: 'MachineDeployment' as const,
      key,
      right: [],
      wrong: ['true', 'false'],
      until: 'must be removed here and set on Machines: it has no effect.',
    })),
    {
      kind: 'MachineDeployment',
      key: keys.DELETION_POLICY_ANNOTATION,
      right: ['graceful', 'unsafe', 'forced'],
      wrong: ['soft'],
      until: 'it counts as graceful.',
    },
    {
      kind: 'MachineDeployment',
      key: keys.UPDATE_ORDER_ANNOTATION,
      right: ['pool/1', 'pool/1/first', ''],
      wrong: ['1', 'pool/one'],
      until: 'must be <group>/<index> or <group>/<index>/first, such as pool/1: it has no effect.',
    },
    {
      kind: 'MachineDeployment',
      key: keys.MAX_REPLACEMENTS_ANNOTATION,
      right: ['0', '2', '20%', ' 3 '],
      wrong: ['-1', 'many', '%', ''],
      until: 'must be a number or a percentage such as 20%: it counts as 1.',
    },
  ])('$key of a $kind', ({ kind, key, right, wrong, until }) => {
    const told = (value: string): string | undefined =>
      invalidAnnotations(kind, { metadata: { ...machine().metadata, annotations: { [key]: value } } });

    expect(right.map(told)).toEqual(right.map(() => undefined));
    for (const value of wrong) {
      expect(told(value)).toContain(`Annotation ${key} of the ${kind} is ${JSON.stringify(value)}, but must be `);
      expect(told(value)).toContain(until);
    }
  });

  test('are all told, each with so much of its value as anybody reads', () => {
    const annotations = { [keys.UPDATE_ORDER_ANNOTATION]: 'x'.repeat(10_000), [keys.MAX_REPLACEMENTS_ANNOTATION]: 'y' };
    const both = invalidAnnotations(
      'MachineDeployment',
      machineDeployment((d) => void (d.metadata.annotations = annotations)),
    );

    expect(both).toMatch(/update-order of the MachineDeployment .*max-replacements of the MachineDeployment is "y"/);
    expect(both?.length).toBeLessThan(600);
  });

  test('are none without annotations', () => {
    expect(invalidAnnotations('Machine', { metadata: machine().metadata })).toBeUndefined();
  });
});

test('every annotation that is read has a rule, or is known to need none', () => {
  const known = [
    ...Object.values(ANNOTATION_RULES).flatMap((rules) => rules.map(({ key }) => key)),
    ...Object.values(WITHOUT_RULE).flat(),
  ];
  const all = Object.entries(keys).flatMap(([name, key]) => (name.endsWith('_ANNOTATION') ? [key] : []));

  expect([...new Set(known)].toSorted()).toEqual(all.toSorted());
});

test('the documentation has what may stand in each, and what counts until then', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/reference/compatibility.md'), 'utf8');
  const section = page.split('\n## Annotations that mean nothing\n')[1]?.split('\n## ')[0] ?? '';
  const cells = section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const documented = cells.flatMap(([, key = '', kinds = '', ...rest]) =>
    kinds.split(', ').map((kind) => [kind, key.replaceAll('`', ''), ...rest.slice(0, 2)]),
  );

  const rules = Object.entries(ANNOTATION_RULES).flatMap(([kind, ofKind]) =>
    ofKind.map(({ key, allowed, until }) => [kind, key, allowed, until]),
  );
  const inOrder = (rows: readonly string[][]): string[] => rows.map((row) => row.join(' | ')).toSorted();
  expect(inOrder(documented)).toEqual(inOrder(rules));
});
