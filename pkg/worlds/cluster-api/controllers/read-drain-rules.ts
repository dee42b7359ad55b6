import type { MachineDrainRule } from '../api/drain-rule.ts';
import { POD_DRAIN_LABEL } from '../api/keys.ts';
import { labelMatcher, type LabelMatcher } from '../../../apis/label-selector.ts';
import type { LabelSelector } from '../../../apis/meta.ts';
import type { Pod } from '../../../apis/wire.ts';
import type { PodRule } from '../../../drain/drain.ts';
import type { DrainedMachine } from '../../../controllers/machine-facts/pod-rules.ts';

/** The label that each namespace has, with its own name. */
const NAMESPACE_NAME_LABEL = 'kubernetes.io/metadata.name';
const LEAVES: PodRule = { behavior: 'leaves', order: 0 };

type Labels = Readonly<Record<string, string>>;

/** A MachineDrainRule that makes no sense. */
export class DrainRuleError extends Error {
  override readonly name = 'DrainRuleError';
}

/** What a drain does about pods, once the labels of their namespaces are known. */
interface ReadRules {
  /** Whether a rule asks for other labels of namespaces than that with their name. */
  readonly needsNamespaces: boolean;
  readonly ruleOf: (pod: Pod, namespaceLabels?: Labels) => PodRule;
}

interface ReadRule {
  readonly rule: PodRule;
  readonly isFor: (machine: DrainedMachine) => boolean;
  readonly takes: (pod: Pod, namespaceLabels: Labels) => boolean;
}

/**
 * What is done about the pods of a machine's Node: as their own label says, else as the first rule by name says that is for the machine and
 * for them. Throws DrainRuleError when any rule makes no sense: nobody knows what it was to keep.
 */
export function podRulesOf(rules: readonly MachineDrainRule[], machine: DrainedMachine): ReadRules {
  const beside = rules.filter(({ metadata }) => metadata.namespace === machine.namespace);
  const sorted = beside.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const read = sorted.map((rule) => ({ rule, ...readRule(rule) })).filter(({ isFor }) => isFor(machine));
  return {
    needsNamespaces: read.some(({ rule }) => rule.spec?.pods?.some(asksForNamespace) === true),
    ruleOf: (pod, labels = {}) => {
      const named = { ...labels, [NAMESPACE_NAME_LABEL]: pod.metadata.namespace ?? '' };
      return ruleByLabel(pod) ?? read.find(({ takes }) => takes(pod, named))?.behaviour ?? LEAVES;
    },
  };
}

/** What the label of a pod says, in any spelling that Cluster API takes; undefined: nothing. */
function ruleByLabel({ metadata }: Pod): PodRule | undefined {
  const value = metadata.labels?.[POD_DRAIN_LABEL]?.toLowerCase().replace('-', '');
  const by = `label ${POD_DRAIN_LABEL}`;
  if (value === 'skip') return { behavior: 'stays', by };
  return value === 'waitcompleted' ? { behavior: 'completes', by } : undefined;
}

function readRule({ metadata, spec }: MachineDrainRule): Omit<ReadRule, 'rule'> & { readonly behaviour: PodRule } {
  try {
    const machines = (spec?.machines ?? []).map(
      (one) => [matcher(one.selector), matcher(one.clusterSelector)] as const,
    );
    const pods = (spec?.pods ?? []).map((one) => [matcher(one.selector), matcher(one.namespaceSelector)] as const);
    return {
      behaviour: { ...behaviourOf(spec?.drain), by: `MachineDrainRule ${metadata.name}` },
      isFor: ({ labels, clusterLabels }) =>
        machines.length === 0 || machines.some(([own, cluster]) => own(labels) && cluster(clusterLabels)),
      takes: (pod, namespaceLabels) =>
        pods.length === 0 || pods.some(([own, namespace]) => own(pod.metadata.labels) && namespace(namespaceLabels)),
    };
  } catch (err) {
    const why = err instanceof Error ? err.message : String(err);
    throw new DrainRuleError(`MachineDrainRule ${metadata.name}: ${why}; correct or delete it`, { cause: err });
  }
}

function behaviourOf(drain: NonNullable<MachineDrainRule['spec']>['drain']): PodRule {
  switch (drain?.behavior) {
    case 'Drain':
      return { behavior: 'leaves', order: drain.order ?? 0 };
    case 'Skip':
      return { behavior: 'stays' };
    case 'WaitCompleted':
      return { behavior: 'completes' };
    default:
      throw new Error(`unknown spec.drain.behavior ${String(drain?.behavior)}`);
  }
}

/** Here an absent selector is one that takes everything. */
function matcher(selector: LabelSelector | undefined): LabelMatcher {
  return labelMatcher(selector ?? {});
}

function asksForNamespace({ namespaceSelector }: { readonly namespaceSelector?: LabelSelector }): boolean {
  const { matchLabels = {}, matchExpressions = [] } = namespaceSelector ?? {};
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  return keys.some((key) => key !== NAMESPACE_NAME_LABEL);
}
