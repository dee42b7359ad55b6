import {
  DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { fromTimestamp } from '../../base/clock/clock.ts';

/** A permission that lasts longer would be forgotten. */
const LONGEST_RELEASE_MS = 86_400_000;

/** Whether somebody has allowed to delete what is held for want of an owner; what is wrong with the permission else. */
export type Release = 'given' | 'none' | 'malformed' | 'expired' | 'too-long';

/** What the annotation of an object permits at this moment. */
export function releaseOf(
  { metadata }: Pick<KubeObject, 'metadata'>,
  nowMs: number,
  annotation: string = DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
): Release {
  const text = metadata.annotations?.[annotation];
  if (text === undefined) return 'none';
  const untilMs = fromTimestamp(text);
  if (untilMs === undefined) return 'malformed';
  if (untilMs <= nowMs) return 'expired';
  return untilMs - nowMs > LONGEST_RELEASE_MS ? 'too-long' : 'given';
}

const RELEASE_PROBLEMS: Readonly<Record<Exclude<Release, 'given'>, string>> = {
  none: '',
  malformed: 'The current value of the annotation is not an RFC 3339 time. ',
  expired: 'The current value of the annotation is in the past. ',
  'too-long': 'The current value of the annotation is more than 24 hours ahead. ',
};

/** What is annotated, as kubectl is told it. */
export interface Annotated {
  readonly kind: string;
  readonly metadata: Pick<KubeObject['metadata'], 'name' | 'namespace'>;
}

/** How what is held is released, for a message. */
export function releaseHint(release: Exclude<Release, 'given'>, annotated: Annotated): string {
  return `${RELEASE_PROBLEMS[release]}To delete them: ${releaseCommand(annotated)}`;
}

/** The same of machines of a MachinePool, or of one, that its runtime does not show. */
export function giveUpHint(release: Exclude<Release, 'given'>, annotated: Annotated): string {
  const command = releaseCommand(annotated, GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION);
  return `${RELEASE_PROBLEMS[release]}If they are gone permanently: ${command}`;
}

/** The command that releases what is held, for an hour. */
export function releaseCommand(
  { kind, metadata: { name, namespace } }: Annotated,
  annotation: string = DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
): string {
  const place = namespace === undefined ? '' : `-n ${namespace} `;
  return `kubectl ${place}annotate --overwrite ${kind} ${name} ${annotation}=$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%SZ)`;
}
