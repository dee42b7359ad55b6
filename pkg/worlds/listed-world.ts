import type { KubeObject } from '../apis/meta.ts';
import type { Resource } from '../apis/resource.ts';
import type { ServedWorld } from '../controllers/world.ts';
import type { DescribedKind } from '../fleet/describe/described-kind.ts';
import type { FlagSection } from '../operator/config/flag-section.ts';

/** An API that is served beside ours, as far as it is known before anything that serves it is loaded: help and mistakes are answered without. */
export interface ListedWorld {
  /** That of its folder, and of what it loads. */
  readonly name: string;
  readonly flags: FlagSection;
  /** Loads its controllers. */
  readonly load: () => Promise<ServedWorld>;
  /** Its kinds that `machinist describe` explains. */
  readonly described: readonly ListedKind[];
}

/** A kind, and what loads what describes it. */
interface ListedKind {
  readonly resource: Resource<KubeObject>;
  readonly load: () => Promise<DescribedKind>;
}
