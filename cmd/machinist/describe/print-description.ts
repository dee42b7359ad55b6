import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import type { ObjectRef, Reader } from '../../../pkg/kube/client.ts';
import { events } from '../../../pkg/kube/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';

export interface DescribedKind<T extends KubeObject, Description> {
  readonly resource: Resource<T>;
  /** What is read beside the object and its Events, and what is made of all of it as it was at `nowMs`. */
  readonly describe: (reader: Reader, object: T, told: readonly Event[], nowMs: () => number) => Promise<Description>;
  readonly render: (description: Description, nowMs: number) => string;
}

/** An object as it is described to people and to programs. */
export interface PrintedDescription {
  readonly description: unknown;
  readonly text: string;
}

/** Reads what is known of an object. Throws ApiError. */
export async function printDescription<T extends KubeObject, Description>(
  { resource, describe, render }: DescribedKind<T, Description>,
  ref: ObjectRef,
  cluster: CommandCluster,
): Promise<PrintedDescription> {
  const { reader } = cluster;
  const object = await reader.get(resource, ref);
  const fieldSelector = `involvedObject.uid=${object.metadata.uid}`;
  const { namespace = '' } = object.metadata;
  const { items } = await reader.list(events, { namespace, fieldSelector });
  const description = await describe(reader, object, items, () => cluster.now());
  return { description, text: render(description, cluster.now()) };
}
