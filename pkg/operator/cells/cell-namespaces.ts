import type { KubeObject } from '../../apis/meta.ts';
import type { Informer } from '../../kube/cache/lister.ts';

/** The namespaces that are to be cells. */
export interface CellNamespaces {
  /** Metadata of one of them that is there. */
  get(name: string): KubeObject | undefined;
  /** Names of all of them. */
  names(): readonly string[];
  /** Calls `changed` with the name of each that changes, as far as anybody tells. */
  onChange(changed: (name: string) => void): void;
  /** Where nobody tells of changes: those that are looked at again and again. */
  readonly looked?: LookedAt;
}

/** Namespaces that are looked at one by one. */
export interface LookedAt {
  /** Looks at one of them now. Throws ApiError. */
  look(name: string, signal: AbortSignal): Promise<void>;
  /** Why it cannot be managed, by the last look. */
  troubleOf(name: string): string | undefined;
  /** When the next look is due. */
  againMs(name: string): number;
}

/** Those that a label selector selects, which are watched. */
export function selectedNamespaces(informer: Pick<Informer<KubeObject>, 'get' | 'list' | 'onChange'>): CellNamespaces {
  return {
    get: (name) => informer.get(name),
    names: () => informer.list().map(({ metadata }) => metadata.name),
    onChange: (changed) => informer.onChange((old, current) => changed(((current ?? old) as KubeObject).metadata.name)),
  };
}
