import type { KubeObject } from '../../apis/meta.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { CELL_CLIENT_NAME, type CellsConfig } from '../config/cells.ts';

/** A name that several namespaces have. */
export interface Clash {
  readonly name: string;
  /** One of the others. */
  readonly other: string;
}

/**
 * Whose autoscaler a client is, by the names that its certificate shows: what the annotations of the selected namespaces say at this moment,
 * in whatever process they are managed, and also while other settings of theirs are wrong. A client is of one namespace: Nodes and groups of
 * two may be named alike.
 */
export class CellClients {
  readonly #namesIn: CellsConfig['clientNamesIn'];
  /** By name. */
  readonly #cells = new Map<string, Set<string>>();
  /** By namespace. */
  readonly #names = new Map<string, readonly string[]>();
  readonly #handlers: ((cell: string) => void)[] = [];

  constructor(parts: {
    /** The selected ones. */
    readonly namespaces: Pick<Informer<KubeObject>, 'onChange'>;
    readonly namesIn: CellsConfig['clientNamesIn'];
  }) {
    this.#namesIn = parts.namesIn;
    parts.namespaces.onChange((old, current) => this.#changed((current ?? old)?.metadata.name ?? '', current));
  }

  /** The namespaces to which one of these names belongs. */
  cellsOf(names: readonly string[]): readonly string[] {
    return [...new Set(names.flatMap((name) => [...(this.#cells.get(name) ?? [])]))].toSorted();
  }

  /** The names that belong to a namespace. */
  namesOf(cell: string): readonly string[] {
    return this.#names.get(cell) ?? [];
  }

  /** Which name of a namespace is another one's, too, so that nobody may call by it; undefined: none is. */
  clashOf(cell: string): Clash | undefined {
    for (const name of this.namesOf(cell)) {
      const other = this.cellsOf([name]).find((one) => one !== cell);
      if (other !== undefined) return { name, other };
    }
    return undefined;
  }

  /** Calls `changed` for each namespace whose names, or those of another one with the same name, have changed. */
  onChange(changed: (cell: string) => void): void {
    this.#handlers.push(changed);
  }

  #changed(cell: string, current: KubeObject | undefined): void {
    const old = this.namesOf(cell);
    const names = current === undefined ? [] : this.#namesIn(current.metadata.annotations ?? {});
    if (names.join() === old.join()) return;
    const before = this.cellsOf(old);
    for (const name of old) this.#remove(name, cell);
    for (const name of names) this.#cells.set(name, (this.#cells.get(name) ?? new Set()).add(cell));
    if (names.length > 0) this.#names.set(cell, names);
    else this.#names.delete(cell);
    for (const affected of new Set([cell, ...before, ...this.cellsOf(names)]))
      for (const handler of this.#handlers) handler(affected);
  }

  #remove(name: string, cell: string): void {
    const cells = this.#cells.get(name);
    cells?.delete(cell);
    if (cells?.size === 0) this.#cells.delete(name);
  }
}

/** Text for operators; without `other` for whoever may read in the namespace, to whom no other one is named. */
export function describeClash({ name, other }: Omit<Clash, 'other'> & Partial<Clash>): string {
  const whose = other === undefined ? 'another namespace' : `namespace ${other}`;
  return `annotation ${CELL_CLIENT_NAME}: ${JSON.stringify(name)} is also a name of ${whose}, so autoscalers with it are rejected; give each namespace names of its own`;
}
