import type { KubeObject } from '../../apis/meta.ts';
import type { Event } from '../../apis/wire.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import type { New } from '../client/client.ts';
import { apiVersionOf } from '../client/resource.ts';
import type { Resource } from '../../apis/resource.ts';
import type { EventSubject, Occurrence } from './correlator.ts';
import { hexOf, type Random } from '../../base/random/random.ts';

/** Who reports: `component` is part of the contract with users (machineset-controller, …). */
export interface EventSource {
  readonly component: string;
  readonly host?: string;
}

const LONGEST_NAME = 253;
/** Where Events about cluster-scoped objects go. */
const DEFAULT_NAMESPACE = 'default';

/** The subject of an Event about `object`; cached objects do not carry their kind. */
export function subjectOf<T extends KubeObject>(resource: Resource<T>, object: T): EventSubject {
  const { namespace, name, uid } = object.metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid };
}

/** A name for a new Event: the object's, then time and chance in hex, so that a repeated POST meets its first. */
export function eventNameFor(subject: EventSubject, nowMs: number, random: Random): string {
  const suffix = `.${nowMs.toString(16)}${hexOf(random, 8)}`;
  return `${subject.name.slice(0, LONGEST_NAME - suffix.length)}${suffix}`;
}

/** The Event to be created for `count` equal occurrences, the first at `firstMs` and the last at `lastMs` (wall time). */
export function newEvent(
  name: string,
  source: EventSource,
  { subject, type, reason, message }: Occurrence,
  times: { readonly count: number; readonly firstMs: number; readonly lastMs: number },
): New<Event> {
  const { namespace = DEFAULT_NAMESPACE } = subject;
  const { namespace: own, ...involved } = subject;
  return {
    metadata: { name, namespace },
    involvedObject: own === undefined ? involved : { ...involved, namespace: own },
    type,
    reason,
    message,
    source: { ...source },
    reportingComponent: source.component,
    reportingInstance: source.host ?? '',
    firstTimestamp: toTimestamp(times.firstMs),
    lastTimestamp: toTimestamp(times.lastMs),
    count: times.count,
  };
}
