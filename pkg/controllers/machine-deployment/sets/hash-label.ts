import { TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { isBeingDeleted, refOf } from '../../../apis/meta.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { machines, machineSets } from '../../../kube/client/resource.ts';
import { patchEach } from '../../replicas/patch-each.ts';
import { next } from '../../../work/reconcile/result.ts';
import type { DeploymentStep, MachineDeploymentDeps } from '../step.ts';
import { templateHash } from './template-hash.ts';

/** What an adopted set still needs to be told from its siblings by label; undefined when it has all, or has to wait. */
export type LabelStep =
  | { readonly kind: 'template'; readonly hash: string }
  | { readonly kind: 'machines'; readonly hash: string; readonly machines: readonly Machine[] }
  | { readonly kind: 'selector'; readonly hash: string };

/**
 * The next step of giving the hash label to a set that was made without it:
 *
 * | step     | what                             | not before                                                         |
 * |----------|----------------------------------|--------------------------------------------------------------------|
 * | template | its template, so new Machines    |                                                                    |
 * | machines | the Machines that it has         |                                                                    |
 * | selector | the set itself, and its selector | the MachineSet controller has acted on that template: a Machine    |
 * |          |                                  | made from the one before would be let go, and its VM with nobody   |
 */
export function labelStep(set: MachineSet, owned: readonly Machine[]): LabelStep | undefined {
  if (isBeingDeleted(set) || set.spec.selector?.matchLabels?.[TEMPLATE_HASH_LABEL] !== undefined) return undefined;
  const inTemplate = set.spec.template?.metadata?.labels?.[TEMPLATE_HASH_LABEL];
  const hash =
    inTemplate ?? set.metadata.labels?.[TEMPLATE_HASH_LABEL] ?? templateHash(set.spec.template ?? {}, undefined);
  if (inTemplate === undefined) return { kind: 'template', hash };

  const unlabelled = owned.filter(({ metadata }) => metadata.labels?.[TEMPLATE_HASH_LABEL] !== hash);
  if (unlabelled.length > 0) return { kind: 'machines', hash, machines: unlabelled };
  const { status, metadata } = set;
  const isObserved = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  const areSame = [status?.replicas, status?.fullyLabeledReplicas].every((count) => (count ?? 0) === owned.length);
  return isObserved && areSame ? { kind: 'selector', hash } : undefined;
}

/** Takes the next step for each set that lacks the hash label; the sets' own changes bring the one after. */
export const hashLabel = (deps: Pick<MachineDeploymentDeps, 'writer'>): DeploymentStep => ({
  name: 'hash-label',
  async run({ observed: { sets, machinesOf }, signal }) {
    for (const set of sets) {
      const step = labelStep(set, machinesOf(set));
      if (step !== undefined) await take(deps, set, step, signal);
    }
    return next;
  },
});

async function take(
  { writer }: Pick<MachineDeploymentDeps, 'writer'>,
  set: MachineSet,
  step: LabelStep,
  signal: AbortSignal,
): Promise<void> {
  const labels = { [TEMPLATE_HASH_LABEL]: step.hash };
  switch (step.kind) {
    case 'template': {
      const patch = mergePatchIfUnchanged(set, { spec: { template: { metadata: { labels } } } });
      await writer.patch('change', machineSets, refOf(set), patch, { signal });
      return;
    }
    case 'machines':
      await patchEach(writer, machines, step.machines, (one) => mergePatch(one, { metadata: { labels } }), signal);
      return;
    case 'selector': {
      const patch = mergePatchIfUnchanged(set, { metadata: { labels }, spec: { selector: { matchLabels: labels } } });
      await writer.patch('change', machineSets, refOf(set), patch, { signal });
    }
  }
}
