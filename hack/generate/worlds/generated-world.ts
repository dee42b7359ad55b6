import type { Registry } from 'prom-client';

import type { Definition } from '../crds/definition.ts';

/** Keys of a file, whose values are those of the module; `on`, where the comments do not say it: of all of them. */
export interface KeyFile {
  readonly file: string;
  readonly module: Readonly<Record<string, unknown>>;
  readonly on?: string;
  /** Only these: the others are not ours. */
  readonly only?: readonly string[];
}

/** What manifests and pages are generated of, for an API that is served beside ours. */
export interface GeneratedWorld {
  /** Its kinds, which are not installed with ours. */
  readonly definitions: readonly Definition[];
  /** The page on these, for kinds that are not documented elsewhere, and what it begins with. */
  readonly page?: { readonly file: string; readonly introduction: string };
  /** Keys that its driver sets. */
  readonly tags?: KeyFile;
  /** Keys that its controllers set. */
  readonly keys?: KeyFile;
  /** Declares its metrics. */
  readonly metrics?: (registry: Registry) => unknown;
  /** What bounds the values of labels that only its metrics have. */
  readonly bounds?: Readonly<Record<string, string>>;
}
