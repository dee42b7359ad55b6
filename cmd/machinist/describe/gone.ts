import type { Event } from '../../../pkg/apis/wire.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { ObjectRef } from '../../../pkg/kube/client/client.ts';
import { events as eventResource } from '../../../pkg/kube/client/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import { optionalMember } from '../../../pkg/apis/optional-member.ts';
import { ageOf } from '../../../pkg/fleet/age.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { type DescribedEvent, eventsOf } from '../../../pkg/fleet/describe/described.ts';
import { eventLines, fieldLines } from '../../../pkg/fleet/describe/layout.ts';
import type { PrintedDescription } from './print-description.ts';
import { isAnswer } from '../../../pkg/fleet/describe/read-named.ts';

/** What Events still tell of an object that no longer exists; printed as it is with `-o json`. */
export interface GoneDescription {
  readonly name: string;
  readonly namespace: string;
  readonly exists: false;
  /** Time of its last Event: it was removed then, or soon after. */
  readonly lastEvent?: string;
  /** Oldest first. */
  readonly events: readonly DescribedEvent[];
}

/**
 * Describes an object that no longer exists by the Events about it, which the API server keeps for an hour by default; undefined when there
 * are none, or they may not be read. Of several objects that had the name in turn, the last one is meant. Throws ApiError.
 */
export async function describeGone(
  { kind }: Pick<Resource<KubeObject>, 'kind'>,
  { namespace = '', name }: ObjectRef,
  cluster: CommandCluster,
): Promise<PrintedDescription | undefined> {
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`;
  const items = await eventsMatching(cluster, namespace, fieldSelector);
  if (items.length === 0) return undefined;
  const description = goneOf({ namespace, name }, items);
  return { description, text: render(kind, description, cluster.now()) };
}

/** None where they may not be read: that the object does not exist is the answer then. */
async function eventsMatching(
  { reader }: CommandCluster,
  namespace: string,
  fieldSelector: string,
): Promise<readonly Event[]> {
  try {
    return (await reader.list(eventResource, { namespace, fieldSelector })).items;
  } catch (err) {
    if (isAnswer(err)) return [];
    throw err;
  }
}

/** What is told of it by its Events, of which there is one at least. */
export function goneOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  items: readonly Event[],
): GoneDescription {
  const lives = [...Map.groupBy(items, ({ involvedObject }) => involvedObject?.uid ?? '').values()].map(eventsOf);
  const events = lives.reduce((newest, one) => (lastOf(one) > lastOf(newest) ? one : newest), lives[0] ?? []);
  return { name, namespace, exists: false, ...optionalMember('lastEvent', lastOf(events)), events };
}

const lastOf = (events: readonly DescribedEvent[]): string => events.at(-1)?.last ?? '';

function render(kind: string, { name, namespace, lastEvent, events }: GoneDescription, nowMs: number): string {
  const reasons = [...new Set(events.map(({ reason }) => reason))].join(', ');
  return [
    ...fieldLines([
      ['Name', name],
      ['Namespace', namespace],
      ['Message', `The ${kind} no longer exists. These are the Events about it: ${reasons}.`],
      ['Last Event', `${lastEvent ?? ''} (${ageOf(lastEvent, nowMs)} ago)`],
    ]),
    ...eventLines(events, nowMs),
  ].join('\n');
}
