import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';
import type { ObjectRef, Reader } from '../../../pkg/kube/client/client.ts';
import { ApiError } from '../../../pkg/kube/client/errors.ts';
import { events } from '../../../pkg/kube/client/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';

/** An object as it is described to people and to programs. */
export interface PrintedDescription {
  readonly description: unknown;
  readonly text: string;
}

/** Reads what is known of an object. Throws ApiError. */
export async function printDescription<T extends KubeObject, Description>(
  kind: DescribedKind<T, Description>,
  ref: ObjectRef,
  cluster: CommandCluster,
): Promise<PrintedDescription> {
  const { reader } = cluster;
  const object = await reader.get(kind.resource, ref);
  const fieldSelector = `involvedObject.uid=${object.metadata.uid}`;
  const { namespace = '' } = object.metadata;
  const told = await readEvents(reader, namespace, fieldSelector);
  const description = await kind.describe(reader, object, told.items, () => cluster.now());
  const text = kind.render(description, cluster.now());
  const { refusal } = told;
  return refusal === undefined
    ? { description, text }
    : { description: { ...description, eventsRefused: refusal }, text: withRefusal(text, refusal) };
}

/** What is known of an object is worth telling without its Events. */
async function readEvents(
  reader: Reader,
  namespace: string,
  fieldSelector: string,
): Promise<{ readonly items: readonly Event[]; readonly refusal?: string }> {
  try {
    return await reader.list(events, { namespace, fieldSelector });
  } catch (err) {
    if (!ApiError.is(err, 'Forbidden')) throw err;
    return { items: [], refusal: err.status?.message ?? err.message };
  }
}

function withRefusal(text: string, refusal: string): string {
  return `${text.slice(0, text.lastIndexOf('\nEvents:'))}\nEvents: cannot be read: ${refusal}`;
}
