import type { KubeObject } from '../../apis/meta.ts';
import type { ChangeHandler, Informer } from './lister.ts';
import { viewOf, type Views } from './view.ts';

/** A cache of a kind that no namespace has, of which each reader sees all: for readers that come and go. */
export class WholeViews<T extends KubeObject> implements Views<T> {
  readonly #informer: Informer<T>;
  readonly #handlers = new Map<string, ChangeHandler<T>[]>();
  readonly #ofDeliveries = new Map<string, ChangeHandler<T>[]>();
  readonly #failed: (err: unknown) => void;

  /** `failed` as for NamespaceViews. */
  constructor(informer: Informer<T>, failed: (err: unknown) => void) {
    this.#informer = informer;
    this.#failed = failed;
    informer.onChange((old, current) => this.#tellAll(this.#handlers, old, current));
    informer.onDelivered((old, current) => this.#tellAll(this.#ofDeliveries, old, current));
  }

  of(reader: string): Informer<T> {
    const informer = this.#informer;
    return viewOf(informer, {
      get: (key) => informer.get(key),
      list: () => informer.list(),
      byIndex: (index, value) => informer.byIndex(index, value),
      onChange: (handler) => {
        this.#handlers.set(reader, [...(this.#handlers.get(reader) ?? []), handler]);
        for (const object of informer.list()) this.#tell(handler, undefined, object);
      },
      onDelivered: (handler) =>
        void this.#ofDeliveries.set(reader, [...(this.#ofDeliveries.get(reader) ?? []), handler]),
    });
  }

  forget(reader: string): void {
    this.#handlers.delete(reader);
    this.#ofDeliveries.delete(reader);
  }

  #tellAll(
    handlers: ReadonlyMap<string, readonly ChangeHandler<T>[]>,
    old: T | undefined,
    current: T | undefined,
  ): void {
    for (const own of handlers.values()) for (const handler of own) this.#tell(handler, old, current);
  }

  #tell(handler: ChangeHandler<T>, old: T | undefined, current: T | undefined): void {
    try {
      handler(old, current);
    } catch (err) {
      this.#failed(err);
    }
  }
}
