import { dump } from 'js-yaml';

import { equalTemplate } from '../../../pkg/apis/machine/v1alpha1/template-equality.ts';
import { classNameOf } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import {
  CHANGED_ON_CREATION_ANNOTATION,
  REVISION_ANNOTATION,
  TEMPLATE_HASH_LABEL,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../../pkg/apis/meta.ts';
import { ageOf } from '../../../pkg/fleet/age.ts';
import { CommandError } from '../command-error.ts';
import { alignedLines } from '../../../pkg/fleet/describe/layout.ts';
import { shown } from './target.ts';

/** Why a revision was made, if anyone who made it said so. */
const CHANGE_CAUSE_ANNOTATION = 'kubernetes.io/change-cause';

const HASH_LABEL_PATH = `metadata.labels.${TEMPLATE_HASH_LABEL}`;

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

/** The revisions as a table; ages, of their MachineSets, count to `nowMs`. */
export function historyTable(name: string, revisions: readonly Revision[], nowMs: number): string {
  const rows = revisions.map(({ number, set: { metadata, spec, status } }) => [
    String(number),
    ageOf(metadata.creationTimestamp, nowMs),
    classNameOf({ spec: spec.template?.spec }),
    String(status?.replicas ?? 0),
    metadata.annotations?.[CHANGE_CAUSE_ANNOTATION] ?? '<none>',
  ]);
  const table = [['REVISION', 'AGE', 'CLASS', 'MACHINES', 'CHANGE-CAUSE'], ...rows];
  return [shown(name), ...alignedLines(table), ''].join('\n');
}

/**
 * How the template of a revision (0: of the latest) differs from that of the one before it, a line for each field. Throws CommandError when
 * there is no such revision, or none before it.
 */
export function revisionDiff(name: string, revisions: readonly Revision[], number: number): string {
  const index = number === 0 ? revisions.length - 1 : revisions.findIndex((one) => one.number === number);
  const [to, from] = [revisions[index], revisions[index - 1]];
  if (to === undefined) throw new CommandError('unable to find the specified revision');
  if (from === undefined)
    throw new CommandError(`revision ${to.number} is the oldest one; there is nothing to compare it with`);
  const [before, after] = [fieldsOf(from.set.spec.template), fieldsOf(to.set.spec.template)];
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
  const lines = changed
    .toSorted()
    .flatMap((path) => [fieldLine('-', path, before), fieldLine('+', path, after)].flat());
  const title = `${shown(name)} revision #${from.number} -> #${to.number}`;
  return [title, ...(lines.length === 0 ? ['The templates are equal.'] : lines)].join('\n');
}

function fieldLine(sign: string, path: string, fields: ReadonlyMap<string, string>): string[] {
  const value = fields.get(path);
  return value === undefined ? [] : [`${sign} ${path}: ${value}`];
}

/** The leaves of an object, by their paths such as `spec.class.name`. The label that tells sets apart differs in each, and says nothing. */
function fieldsOf(value: unknown, path = ''): ReadonlyMap<string, string> {
  if (path === HASH_LABEL_PATH) return new Map();
  if (typeof value !== 'object' || value === null)
    return new Map(value === undefined ? [] : [[path, JSON.stringify(value)]]);
  return new Map(
    Object.entries(value).flatMap(([name, member]) => [
      ...fieldsOf(member, Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`),
    ]),
  );
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

/**
 * To which revision an undo goes: `wanted`, or with 0 the latest one that has not the present template, of which there may be no set yet, nor was
 * changed on its creation. Throws CommandError when there is none.
 */
export function undoOf(deployment: MachineDeployment, revisions: readonly Revision[], wanted: number): Undo {
  const { name } = deployment.metadata;
  const isPresent = ({ set }: Revision): boolean => equalTemplate(set.spec.template, deployment.spec.template);
  const isAskedFor = ({ set }: Revision): boolean =>
    set.metadata.annotations?.[CHANGED_ON_CREATION_ANNOTATION] === undefined;
  const target =
    wanted === 0
      ? revisions.findLast((revision) => !isPresent(revision) && isAskedFor(revision))
      : revisions.find(({ number }) => number === wanted);
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
  return isPresent(target) ? { kind: 'skip' } : { kind: 'to', revision: target.number };
}
