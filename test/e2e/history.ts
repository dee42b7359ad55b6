import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { HttpListWatch } from '../../pkg/kube/client/list-watch.ts';
import { machines } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import type { KubeSession } from '../integration/kube-session.ts';
import { NAMESPACE } from './manifests.ts';

/** All Machines, by name, between two changes. */
export type Moment = ReadonlyMap<string, Machine>;

/**
 * Every state that the Machines have been in since it began, in the order of the server: one watch, no change left out. What it
 * does not show has never happened.
 */
export class History implements AsyncDisposable {
  /** The first is the state in the beginning. */
  readonly moments: Moment[];
  readonly #ending = new AbortController();
  readonly #watching: Promise<void>;

  readonly #source: HttpListWatch<Machine>;

  private constructor(source: HttpListWatch<Machine>, first: Moment, resourceVersion: string) {
    this.moments = [first];
    this.#source = source;
    this.#watching = this.#watch(resourceVersion);
  }

  /** Begins with the present. */
  static async begin({ transport, signal }: KubeSession): Promise<History> {
    const source = new HttpListWatch({ transport, resource: machines, selection: { namespace: NAMESPACE } });
    const { items, metadata } = await source.list({ signal });
    return new History(source, new Map(items.map((one) => [one.metadata.name, one])), metadata.resourceVersion);
  }

  /** Phases of one machine, in order, without repetition; `Gone` when it no longer exists. */
  phasesOf(name: string): readonly string[] {
    const all = this.moments
      .slice(this.moments.findIndex((moment) => moment.has(name)))
      .map((moment) => moment.get(name)?.status?.currentStatus?.phase ?? (moment.has(name) ? '' : 'Gone'));
    return all.filter((phase, i) => phase !== all[i - 1]);
  }

  /** Names of all machines that there were. */
  get names(): readonly string[] {
    return [...new Set(this.moments.flatMap((moment) => [...moment.keys()]))].toSorted();
  }

  /** Waits until it shows what the server has now: a watch tells of a change a little later. */
  async caughtUp(): Promise<void> {
    await eventually(async () => {
      const { items } = await this.#source.list({ signal: this.#ending.signal });
      return versionsOf([...(this.moments.at(-1)?.values() ?? [])]) === versionsOf(items);
    });
  }

  async #watch(resourceVersion: string): Promise<void> {
    const { signal } = this.#ending;
    try {
      for await (const event of this.#source.watch({ signal, resourceVersion })) {
        if (event.type === 'ERROR') throw new Error(`the watch ended: ${JSON.stringify(event.object)}`);
        if (event.type === 'BOOKMARK') continue;
        const next = new Map(this.moments.at(-1));
        if (event.type === 'DELETED') next.delete(event.object.metadata.name);
        else next.set(event.object.metadata.name, event.object);
        this.moments.push(next);
      }
      throw new Error('the watch ended by itself');
    } catch (err) {
      if (!signal.aborted) throw err;
    }
  }

  /** Ends the watch; rejects when it had broken off before, because then something may be missing. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error('the history ends'));
    await this.#watching;
  }
}

function versionsOf(all: readonly Machine[]): string {
  const versions = all.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
  return versions.toSorted().join(', ');
}
