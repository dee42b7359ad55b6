import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Event } from '../../apis/wire.ts';
import type { Reader } from '../../kube/client/client.ts';

/** What describes a kind; without types, any. */
export interface DescribedKind<T extends KubeObject = KubeObject, Description = unknown> {
  readonly resource: Resource<T>;
  /** What is read beside the object and its Events, and what is made of all of it as it was at `nowMs`. */
  describe(reader: Reader, object: T, told: readonly Event[], nowMs: () => number): Promise<Description>;
  render(description: Description, nowMs: number): string;
}
