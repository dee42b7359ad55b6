import { parseDuration } from '../../apis/duration.ts';
import {
  DEFAULT_PRIORITY,
  DELETION_POLICY_ANNOTATION,
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';
import { problemWith, type AnnotationRule } from '../machine-facts/annotation-rule.ts';
import { DELETION_POLICIES, isDeletionPolicy } from '../machine-facts/deletion-policy.ts';
import { MAINTENANCE_RULE } from '../machine-facts/maintenance.ts';
import { isPreparationValue } from '../machine-facts/prepared-deletion.ts';
import { isUnderstood as isPreserveValue } from '../machine-facts/preserve-value.ts';
import { isReplacementLimit } from '../machine-facts/replacement.ts';
import { isUpdateOrder } from './update-order-value.ts';
import { isUpgradeIndex } from './upgrade-index.ts';
import { isPriority } from './victim-order.ts';

/** Type of the condition of an object that has annotations whose values mean nothing, and reason of the Event that tells of it. */
export const INVALID_ANNOTATION = 'InvalidAnnotation';

const DELETION_POLICY: AnnotationRule = {
  key: DELETION_POLICY_ANNOTATION,
  isUnderstood: isDeletionPolicy,
  allowed: `one of ${DELETION_POLICIES.join(', ')}`,
  until: 'graceful is used',
};
const PRESERVE: AnnotationRule = {
  key: PRESERVE_ANNOTATION,
  isUnderstood: isPreserveValue,
  allowed: 'one of now, when-failed, false',
  until: 'it is ignored',
};
const CREATION_TIMEOUT: AnnotationRule = {
  key: EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  isUnderstood: (value) => parseDuration(value) !== undefined,
  allowed: 'a duration such as 20m',
  until: 'spec.creationTimeout is used, or flag --machine-creation-timeout',
};

const ASKED_OF_MACHINES: readonly AnnotationRule[] = [MAINTENANCE_ANNOTATION, PREPARE_DELETION_ANNOTATION].map(
  (key) => ({
    key,
    isUnderstood: () => false,
    allowed: 'removed here and set on Machines',
    until: 'it has no effect',
  }),
);

/** The annotations whose values people and their tools choose, by the kinds on which they are read. */
export const ANNOTATION_RULES = {
  Machine: [
    DELETION_POLICY,
    {
      key: PREPARE_DELETION_ANNOTATION,
      isUnderstood: isPreparationValue,
      allowed: 'true, or false to abort',
      until: 'false is used',
    },
    MAINTENANCE_RULE,
    PRESERVE,
    {
      key: UPGRADE_INDEX_ANNOTATION,
      isUnderstood: isUpgradeIndex,
      allowed: 'an integer from 1 to 999999999',
      until: 'it has no effect',
    },
    {
      key: PRIORITY_ANNOTATION,
      isUnderstood: isPriority,
      allowed: 'an integer of at most 64 bits',
      until: `${DEFAULT_PRIORITY} is used`,
    },
    {
      key: MARKED_FOR_DELETION_TIME_ANNOTATION,
      isUnderstood: (value) => fromTimestamp(value) !== undefined,
      allowed: 'a time such as 2026-01-02T15:04:05Z',
      until: 'it has no effect',
    },
    CREATION_TIMEOUT,
  ],
  Node: [MAINTENANCE_RULE, PRESERVE],
  MachineSet: [CREATION_TIMEOUT],
  MachineDeployment: [
    ...ASKED_OF_MACHINES,
    DELETION_POLICY,
    {
      key: UPDATE_ORDER_ANNOTATION,
      isUnderstood: isUpdateOrder,
      allowed: '<group>/<index> or <group>/<index>/first, such as pool/1',
      until: 'it has no effect',
    },
    {
      key: MAX_REPLACEMENTS_ANNOTATION,
      isUnderstood: isReplacementLimit,
      allowed: 'a number or a percentage such as 20%',
      until: '1 is used',
    },
    CREATION_TIMEOUT,
  ],
} satisfies Record<string, readonly AnnotationRule[]>;

export type AnnotatedKind = keyof typeof ANNOTATION_RULES;

/**
 * Everything that is wrong with the annotations of an object: each with its value, what would be right, and what counts until it is
 * corrected. Undefined when nothing is.
 */
export function invalidAnnotations(kind: AnnotatedKind, object: KubeObject, where = `the ${kind}`): string | undefined {
  const problems = ANNOTATION_RULES[kind].map((rule) => problemWith(rule, object, where));
  return problems.filter((one) => one !== undefined).join(' ') || undefined;
}
