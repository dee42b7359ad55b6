import { parseDurationNs } from '../../duration.ts';
import { isIntOrPercent, resolveIntOrPercent } from '../../int-or-percent.ts';
import { InvalidSelectorError, labelMatcher } from '../../label-selector.ts';
import type { LabelSelector } from '../../meta.ts';
import { TEMPLATE_HASH_LABEL } from './labels.ts';
import type { ClassSpec, MachineConfiguration, MachineTemplateSpec } from './machine.ts';
import type { MachineClass } from './machine-class.ts';
import type { MachineDeployment, MachineDeploymentStrategy, RollingLimits } from './machine-deployment.ts';
import type { MachineSet } from './machine-set.ts';
import {
  capacityMessage,
  durationMessage,
  emptyMessage,
  intOrPercentMessage,
  MESSAGES,
  negativeMessage,
  tooLargeMessage,
} from './messages.ts';

/**
 * What the validation rules of the CRDs refuse, found in objects that were stored without them. A value that is absent
 * counts like null: a typed Go writer knows no difference. Of a Machine each field is obeyed as far as it can be.
 */

/** One field that cannot be obeyed. */
export interface FieldError {
  /** Path from the root of the object, such as `spec.selector`. */
  readonly field: string;
  /** What is wrong, and the remedy. */
  readonly message: string;
}

type Finding = FieldError | undefined;

/** Whatever would keep a MachineDeployment from being reconciled; empty when it is sound. */
export function validateMachineDeployment({ spec }: Pick<MachineDeployment, 'spec'>): FieldError[] {
  if (isEmptySpec(spec)) return [{ field: 'spec', message: MESSAGES.specMissing }];
  const counts = [
    'replicas',
    'minReadySeconds',
    'revisionHistoryLimit',
    'progressDeadlineSeconds',
    'autoPreserveFailedMachineMax',
  ] as const;
  return found([
    ...counts.map((name) => notNegative(spec[name], 'spec', name)),
    ...selectorFindings(spec.selector, spec.template),
    findIf(excludesOwnSets(spec.selector), 'spec.selector', MESSAGES.selectorNamesHash),
    ...templateFindings(spec.template),
    ...strategyFindings(spec.strategy ?? {}, spec.replicas ?? 0),
  ]);
}

/** Whatever would keep a MachineSet from being reconciled; empty when it is sound. */
export function validateMachineSet({ spec }: Pick<MachineSet, 'spec'>): FieldError[] {
  if (isEmptySpec(spec)) return [{ field: 'spec', message: MESSAGES.specMissing }];
  const counts = ['replicas', 'minReadySeconds', 'autoPreserveFailedMachineMax'] as const;
  return found([
    ...counts.map((name) => notNegative(spec[name], 'spec', name)),
    ...selectorFindings(spec.selector, spec.template),
    ...templateFindings(spec.template),
  ]);
}

/** Whatever would keep the Machines of a class from being reconciled; empty when it is sound. */
export function validateMachineClass({ nodeTemplate }: Pick<MachineClass, 'nodeTemplate'>): FieldError[] {
  if (isAbsent(nodeTemplate)) return [];
  const capacity = nodeTemplate.capacity ?? {};
  const resources = ['cpu', 'gpu', 'memory'].map((resource) =>
    findIf(!Object.hasOwn(capacity, resource), 'nodeTemplate.capacity', capacityMessage(resource)),
  );
  const places = (['instanceType', 'region', 'zone'] as const).map((name) =>
    findIf(isEmpty(nodeTemplate[name]), `nodeTemplate.${name}`, emptyMessage(name)),
  );
  return found([...resources, ...places]);
}

/** All findings in one line, for a condition or an event: `spec.selector: …; spec.strategy.type: …`. */
export function describeFieldErrors(errors: readonly FieldError[]): string {
  return errors.map(({ field, message }) => `${field}: ${message}`).join('; ');
}

function selectorFindings(selector: LabelSelector | undefined, template: MachineTemplateSpec | undefined): Finding[] {
  const labels = template?.metadata?.labels ?? {};
  const hasLabels = Object.keys(labels).length > 0;
  const labelsFinding = findIf(!hasLabels, 'spec.template.metadata.labels', MESSAGES.templateLabelsMissing);
  if (isAbsent(selector)) return [{ field: 'spec.selector', message: MESSAGES.selectorMissing }, labelsFinding];

  const parts = Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length;
  if (parts === 0) return [{ field: 'spec.selector', message: MESSAGES.selectorEmpty }, labelsFinding];

  const selects = selectsOrIsInvalid(selector, labels);
  return [
    findIf(selects === 'invalid', 'spec.selector.matchExpressions', MESSAGES.selectorInvalid),
    labelsFinding,
    findIf(hasLabels && selects === false, 'spec.selector', MESSAGES.selectorMismatch),
  ];
}

/**
 * Whether no MachineSet that a MachineDeployment makes would be selected: each has another value of the hash label. Any other
 * mention of that label is refused at creation too, but can be obeyed.
 */
function excludesOwnSets(selector: LabelSelector | undefined): boolean {
  const { matchLabels, matchExpressions } = selector ?? {};
  return (
    Object.hasOwn(matchLabels ?? {}, TEMPLATE_HASH_LABEL) ||
    (matchExpressions ?? []).some(
      ({ key, operator }) => key === TEMPLATE_HASH_LABEL && (operator === 'In' || operator === 'DoesNotExist'),
    )
  );
}

function selectsOrIsInvalid(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean | 'invalid' {
  try {
    return labelMatcher(withoutNulls(selector))(labels);
  } catch (error) {
    if (error instanceof InvalidSelectorError) return 'invalid';
    throw error;
  }
}

/** What Go writes for an absent list is null. */
function withoutNulls({ matchLabels, matchExpressions }: LabelSelector): LabelSelector {
  return {
    matchLabels: matchLabels ?? {},
    matchExpressions: (matchExpressions ?? []).map((expression) => ({
      ...expression,
      values: expression.values ?? [],
    })),
  };
}

function templateFindings(template: MachineTemplateSpec | undefined): Finding[] {
  const path = 'spec.template.spec';
  return [classFinding(template?.spec?.class, path), ...configurationFindings(template?.spec ?? {}, path)];
}

function classFinding(reference: ClassSpec | undefined, path: string): Finding {
  return findIf(isEmpty(reference?.kind) || isEmpty(reference?.name), `${path}.class`, MESSAGES.classIncomplete);
}

function configurationFindings(configuration: MachineConfiguration, path: string): Finding[] {
  const durations = [
    'creationTimeout',
    'drainTimeout',
    'healthTimeout',
    'inPlaceUpdateTimeout',
    'machinePreserveTimeout',
  ] as const;
  return [
    ...durations.map((name) =>
      findIf(!isAbsentOrDuration(configuration[name]), `${path}.${name}`, durationMessage(name)),
    ),
    notNegative(configuration.maxEvictRetries, path, 'maxEvictRetries'),
  ];
}

function isAbsentOrDuration(text: string | undefined): boolean {
  if (isAbsent(text)) return true;
  const ns = parseDurationNs(text);
  return ns !== undefined && ns >= 0n && !text.startsWith('-');
}

function strategyFindings(strategy: MachineDeploymentStrategy, replicas: number): Finding[] {
  const { type, rollingUpdate, inPlaceUpdate } = strategy;
  const path = 'spec.strategy';
  const limits = [
    ...limitFindings(rollingUpdate, `${path}.rollingUpdate`, replicas),
    ...limitFindings(inPlaceUpdate, `${path}.inPlaceUpdate`, replicas),
  ];
  switch (type) {
    case 'Recreate':
      return limits;
    case 'RollingUpdate':
      return [findIf(!isComplete(rollingUpdate), `${path}.rollingUpdate`, MESSAGES.rollingUpdateIncomplete), ...limits];
    case 'InPlaceUpdate':
      return [
        findIf(!isComplete(inPlaceUpdate), `${path}.inPlaceUpdate`, MESSAGES.inPlaceUpdateIncomplete),
        findIf(
          !['Auto', 'Manual'].includes(inPlaceUpdate?.orchestrationType ?? ''),
          `${path}.inPlaceUpdate.orchestrationType`,
          MESSAGES.orchestrationType,
        ),
        ...limits,
      ];
    default:
      return [{ field: `${path}.type`, message: MESSAGES.strategyType }, ...limits];
  }
}

function isComplete(limits: RollingLimits | undefined): boolean {
  return !isAbsent(limits?.maxSurge) && !isAbsent(limits?.maxUnavailable);
}

function limitFindings(limits: RollingLimits | undefined, path: string, replicas: number): Finding[] {
  return (['maxSurge', 'maxUnavailable'] as const).map((name) => {
    const value = limits?.[name];
    if (isAbsent(value)) return undefined;
    if (!isIntOrPercent(value)) return { field: `${path}.${name}`, message: intOrPercentMessage(name) };
    const isTooLarge = resolveIntOrPercent(value, Math.max(0, replicas), 'up') === undefined;
    return findIf(isTooLarge, `${path}.${name}`, tooLargeMessage(name));
  });
}

function notNegative(value: number | null | undefined, path: string, name: string): Finding {
  const message = name === 'replicas' ? MESSAGES.replicasNegative : negativeMessage(name);
  return findIf((value ?? 0) < 0, `${path}.${name}`, message);
}

function findIf(isWrong: boolean, field: string, message: string): Finding {
  return isWrong ? { field, message } : undefined;
}

function found(findings: readonly Finding[]): FieldError[] {
  return findings.filter((finding) => finding !== undefined);
}

function isAbsent<T>(value: T): value is Extract<T, undefined | null> {
  return value === undefined || value === null;
}

/** What is absent enters as an empty object (normalise.ts). */
function isEmptySpec(spec: object | undefined): boolean {
  if (isAbsent(spec)) return true;
  const isNothing = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return Object.values(spec).every(isNothing);
}

function isEmpty(text: string | undefined): boolean {
  return isAbsent(text) || text === '';
}
