import { TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { isBeingDeleted, refOf } from '../../../apis/meta.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { machines, machineSets } from '../../../kube/client/resource.ts';
import { patchPresent } from '../../replicas/patch-each.ts';
import { next } from '../../../work/reconcile/result.ts';
import type { Collaborators, DeploymentPass, DeploymentStep } from '../step.ts';
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

type LabelDeps = Pick<Collaborators, 'writer' | 'changes'>;

/** Takes the next step for each set that lacks the hash label; the sets' own changes bring the one after. */
export const hashLabel = (deps: LabelDeps): DeploymentStep => ({
  name: 'hash-label',
  async run(pass) {
    const { sets, machinesOf } = pass.observed;
    for (const set of sets) {
      const step = labelStep(set, machinesOf(set));
      if (step !== undefined) await take(deps, pass, set, step);
    }
    return next;
  },
});

/** For a Machine that may not be labelled only the selector of its set waits. */
async function take(
  { writer, changes }: LabelDeps,
  pass: DeploymentPass,
  set: MachineSet,
  step: LabelStep,
): Promise<void> {
  const { key, signal } = pass;
  const labels = { [TEMPLATE_HASH_LABEL]: step.hash };
  switch (step.kind) {
    case 'template': {
      const patch = mergePatchIfUnchanged(set, { spec: { template: { metadata: { labels } } } });
      await writer.patch('change', machineSets, refOf(set), patch, { signal });
      return;
    }
    case 'machines': {
      const { text } = await changes.each(key, step.machines, (one) =>
        patchPresent(writer, machines, one, mergePatch(one, { metadata: { labels } }), signal),
      );
      pass.refusal ??= text;
      return;
    }
    case 'selector': {
      const patch = mergePatchIfUnchanged(set, { metadata: { labels }, spec: { selector: { matchLabels: labels } } });
      await writer.patch('change', machineSets, refOf(set), patch, { signal });
    }
  }
}
