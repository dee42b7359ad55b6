import { dump } from 'js-yaml';

import { equalTemplate } from '../../../pkg/apis/machine/v1alpha1/template-equality.ts';
import { REVISION_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../../pkg/apis/meta.ts';
import { CommandError } from '../command-error.ts';
import { shown } from './target.ts';

/** Why a revision was made, if anyone who made it said so. */
const CHANGE_CAUSE_ANNOTATION = 'kubernetes.io/change-cause';

/** One revision of a MachineDeployment: the set that has its template. */
export interface Revision {
  readonly number: number;
  readonly set: MachineSet;
}

/** The revisions of `deployment` among `sets`, oldest first. A set that has no number yet has no revision. */
export function revisionsOf(deployment: MachineDeployment, sets: readonly MachineSet[]): readonly Revision[] {
  return sets
    .filter((set) => controllerOf(set)?.uid === deployment.metadata.uid)
    .map((set) => ({ number: Number(set.metadata.annotations?.[REVISION_ANNOTATION] ?? 0), set }))
    .filter(({ number }) => number > 0)
    .toSorted((a, b) => a.number - b.number);
}

export function historyTable(name: string, revisions: readonly Revision[]): string {
  const rows = revisions.map(({ number, set }) => [
    String(number),
    set.metadata.annotations?.[CHANGE_CAUSE_ANNOTATION] ?? '<none>',
  ]);
  const lines = [['REVISION', 'CHANGE-CAUSE'], ...rows].map(
    ([number = '', cause = '']) => `${number.padEnd(10)}${cause}`,
  );
  return [shown(name), ...lines, ''].join('\n');
}

/** The template of one revision. Throws CommandError when there is no such. */
export function revisionDetails(name: string, revisions: readonly Revision[], number: number): string {
  const revision = revisions.find((one) => one.number === number);
  if (revision === undefined) throw new CommandError('unable to find the specified revision');
  const template = dump(revision.set.spec.template ?? {}, { lineWidth: -1 }).trimEnd();
  const indented = template.split('\n').map((line) => `  ${line}`);
  return [`${shown(name)} with revision #${number}`, 'Machine Template:', ...indented].join('\n');
}

/** What an undo comes to: the revision to go back to, or that the template is of that revision already. */
export type Undo = { readonly kind: 'to'; readonly revision: number } | { readonly kind: 'skip' };

/** To which revision an undo goes: `wanted`, or with 0 the one before the latest. Throws CommandError when there is none. */
export function undoOf(deployment: MachineDeployment, revisions: readonly Revision[], wanted: number): Undo {
  const { name } = deployment.metadata;
  const target = wanted === 0 ? revisions.at(-2) : revisions.find(({ number }) => number === wanted);
  if (target === undefined) {
    throw new CommandError(
      wanted === 0
        ? `no rollout history found for machine deployment "${name}"`
        : `unable to find specified revision ${wanted} in history`,
    );
  }
  if (deployment.spec.paused === true) {
    throw new CommandError(
      "cannot rollback a paused machine deployment; resume it first with 'machinist rollout resume' and try again",
    );
  }
  const isPresent = equalTemplate(target.set.spec.template, deployment.spec.template);
  return isPresent ? { kind: 'skip' } : { kind: 'to', revision: target.number };
}
