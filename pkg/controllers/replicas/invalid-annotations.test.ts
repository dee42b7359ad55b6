import { describe, expect, test } from '@jest/globals';

import { KEYS } from '../../../hack/generate/annotations-reference.ts';
import { machine, machineDeployment } from '../../../test/builders.ts';
import * as keys from '../../apis/machine/v1alpha1/labels.ts';
import { ANNOTATION_RULES, invalidAnnotations, type AnnotatedKind } from './invalid-annotations.ts';

/** Annotations whose values nobody is asked for, and who tells of others. */
const WITHOUT_RULE = {
  'what autoscalers write, and is put in order by who reads it': [
    keys.LAST_SCALER_CHANGE_ANNOTATION,
    keys.TRIGGER_DELETION_ANNOTATION,
    keys.SCALE_DOWN_DISABLED_ANNOTATION,
  ],
  'any value counts': [
    keys.RETRY_ANNOTATION,
    keys.UNFREEZE_ANNOTATION,
    keys.NOT_MANAGED_ANNOTATION,
    keys.UPDATE_FAILED_REASON_ANNOTATION,
    keys.PREFER_NO_SCHEDULE_KEY,
    keys.PRE_DRAIN_DELETE_HOOK_PREFIX,
    keys.PRE_DRAIN_HOOK_PREFIX,
    keys.PRE_TERMINATE_HOOK_PREFIX,
  ],
  'who reads it tells of it in its own way': [
    keys.NODE_GROUP_MIN_ANNOTATION,
    keys.NODE_GROUP_MAX_ANNOTATION,
    keys.RESERVED_RESOURCES_ANNOTATION,
    keys.DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
    keys.FORMER_POOL_UIDS_ANNOTATION,
    keys.TAKE_OVER_CLAIMS_ANNOTATION,
    keys.CELL_SETTING_PREFIX,
    keys.CELL_MOVES_TO_ANNOTATION,
    keys.GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
  ],
};

describe('annotations without effect', () => {
  test.each<{ kind: AnnotatedKind; key: string; right: readonly string[]; wrong: readonly string[]; until: string }>([
    {
      kind: 'Machine',
      key: keys.DELETION_POLICY_ANNOTATION,
      right: ['graceful', 'unsafe', 'forced'],
      wrong: ['Graceful', ''],
      until: 'must be one of graceful, unsafe, forced: graceful is used.',
    },
    {
      kind: 'Machine',
      key: keys.PREPARE_DELETION_ANNOTATION,
      right: ['true', 'false', ''],
      wrong: ['True', 'yes'],
      until: 'must be true, or false to abort: false is used.',
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
      until: 'must be one of now, when-failed, false: it is ignored.',
    },
    {
      kind: 'Node',
      key: keys.PRESERVE_ANNOTATION,
      right: ['now'],
      wrong: ['forever'],
      until: 'it is ignored.',
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
      right: ['3', '0', '-1', '+1', '9223372036854775807', '-9223372036854775808'],
      wrong: ['low', '1.5', '', '9223372036854775808', '-9223372036854775809'],
      until: 'must be an integer of at most 64 bits: 3 is used.',
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
      until: 'must be a duration such as 20m: spec.creationTimeout is used, or flag --machine-creation-timeout.',
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
      until: 'graceful is used.',
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
      until: 'must be a number or a percentage such as 20%: 1 is used.',
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

// promise: annotations-mean-nothing/told-stand-counts-corrected
test('every annotation that people set has a rule, or is known to need none', () => {
  const known = [
    ...Object.values(ANNOTATION_RULES).flatMap((rules) => rules.map(({ key }) => key)),
    ...Object.values(WITHOUT_RULE).flat(),
  ];
  const set = KEYS.filter(({ heading }) => heading.endsWith('annotations that users and tools set'));

  expect([...new Set(known)].toSorted()).toEqual(set.map(({ key }) => key).toSorted());
});
